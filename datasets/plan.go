package datasets

import (
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
)

// Input is a file of questions to compose from.
type Input struct {
	Path   string `json:"path"`
	Format Format `json:"format,omitempty"` // "": found out
	Source string `json:"source,omitempty"` // "": the format's, or the records'
	Split  Split  `json:"split,omitempty"`  // "": dealt by the plan's shares
}

// ParseInput reads an input as a command line gives it: the path, and before it
// what has to be said of it, each with its "=": "source=nq,split=test:FILE",
// with source, format and split in any order.
func ParseInput(arg string) (Input, error) {
	head, path, ok := strings.Cut(arg, ":")
	if !ok || !strings.Contains(head, "=") {
		return Input{Path: arg}, nil
	}
	in := Input{Path: path}
	for _, pair := range strings.Split(head, ",") {
		name, value, _ := strings.Cut(pair, "=")
		var err error
		switch name {
		case "source":
			in.Source = value
		case "format":
			in.Format, err = ParseFormat(value)
		case "split":
			in.Split, err = ParseSplit(value)
		default:
			err = fmt.Errorf("unknown setting %q; known are source, format, split", name)
		}
		if err != nil {
			return Input{}, fmt.Errorf("input %q: %w", arg, err)
		}
	}
	if in.Path == "" {
		return Input{}, fmt.Errorf("input %q: no path", arg)
	}
	return in, nil
}

// Plan composes task files from question files.
type Plan struct {
	Inputs    []Input `json:"-"` // recorded as the manifest's inputs
	Horizons  []int   `json:"questions_per_task"`
	Splits    []Split `json:"splits"` // which to write; nil: all
	Seed      uint64  `json:"-"`      // recorded as the manifest's seed
	Shares    Shares  `json:"shares"` // used when an input gives no split
	OneSource bool    `json:"one_source"`
	MaxTasks  int     `json:"max_tasks"` // in each file; 0: as many as the questions suffice for
	Documents bool    `json:"documents"` // write the passages of all inputs as a corpus

	// Skipping bad records and the prompt column, as in [Options] and [NewTaskWriter].
	SkipBad bool               `json:"skip_bad"`
	OnSkip  func(*RecordError) `json:"-"`
	Prompt  func(Task) string  `json:"-"`
}

// Validate reports the first setting that makes no sense.
func (p *Plan) Validate() error {
	if len(p.Inputs) == 0 {
		return errors.New("compose: no input files")
	}
	if len(p.Horizons) == 0 {
		return errors.New("compose: no number of questions a task")
	}
	for _, n := range p.Horizons {
		if n < 1 {
			return fmt.Errorf("compose: %d questions a task, want at least 1", n)
		}
	}
	for _, in := range p.Inputs {
		if in.Split == "" {
			return p.Shares.Validate()
		}
	}
	return nil
}

// splits returns the splits that can hold questions, of those asked for.
func (p *Plan) splits() []Split {
	if p.Splits != nil {
		return p.Splits
	}
	share := map[Split]float64{}
	for _, in := range p.Inputs {
		if in.Split == "" {
			share[Train], share[Dev], share[Test] = p.Shares.Train, p.Shares.Dev, p.Shares.Test
			break
		}
	}
	for _, in := range p.Inputs {
		if in.Split != "" {
			share[in.Split] = 1
		}
	}
	var out []Split
	for _, s := range Splits {
		if share[s] > 0 {
			out = append(out, s)
		}
	}
	return out
}

// Run reads the inputs and writes into dir a file a split and horizon
// ([TasksName]), the corpus if asked for ([DocumentsName]), and the manifest.
func (p *Plan) Run(dir string) (*Manifest, error) {
	if err := p.Validate(); err != nil {
		return nil, err
	}
	if err := Begin(dir); err != nil {
		return nil, err
	}
	settings, err := json.Marshal(p)
	if err != nil {
		return nil, err
	}
	m := &Manifest{Schema: ManifestSchema, Kind: "composed", Seed: p.Seed, Settings: settings}
	c := &Composer{Seed: p.Seed, Shares: p.Shares, OneSource: p.OneSource}
	if err := p.read(c, m, dir); err != nil {
		return nil, err
	}
	refused := c.Refused()
	m.Refused = &refused
	for _, split := range p.splits() {
		for _, n := range p.Horizons {
			tasks, left, err := c.Tasks(split, n, p.MaxTasks)
			if err != nil {
				return nil, fmt.Errorf("compose: %w", err)
			}
			sum, err := WriteTasks(filepath.Join(dir, TasksName(split, n)), split, tasks, p.Prompt)
			if err != nil {
				return nil, err
			}
			m.add(sum, split, n, left)
		}
	}
	return m, m.Write(dir)
}

// read gives all inputs to the composer and writes their passages.
func (p *Plan) read(c *Composer, m *Manifest, dir string) error {
	corpus := (*DocumentWriter)(nil)
	if p.Documents {
		var err error
		if corpus, err = NewDocumentWriter(filepath.Join(dir, DocumentsName)); err != nil {
			return err
		}
	}
	for _, in := range p.Inputs {
		sum, err := p.readInput(in, c, corpus)
		if err != nil {
			if corpus != nil {
				corpus.Abort()
			}
			return err
		}
		m.Inputs = append(m.Inputs, sum)
	}
	if corpus == nil {
		return nil
	}
	sum, err := corpus.Close()
	if err != nil {
		return err
	}
	m.AddDocuments(sum)
	return nil
}

func (p *Plan) readInput(in Input, c *Composer, corpus *DocumentWriter) (InputSum, error) {
	file, err := SumFile(in.Path)
	if err != nil {
		return InputSum{}, err
	}
	r, err := Open(in.Path, Options{Format: in.Format, Source: in.Source, SkipBad: p.SkipBad, OnSkip: p.OnSkip})
	if err != nil {
		return InputSum{}, err
	}
	defer r.Close()
	sum := InputSum{FileSum: file, Format: r.Format(), Source: in.Source, Split: in.Split}
	for rec, err := range r.All() {
		if err != nil {
			return InputSum{}, err
		}
		sum.Questions++
		c.Add(rec.Question, in.Split)
		if corpus == nil {
			continue
		}
		for _, d := range rec.Passages {
			if err := corpus.Write(d); err != nil {
				return InputSum{}, err
			}
		}
	}
	sum.Records, sum.Skipped = r.Records(), r.Skipped()
	return sum, nil
}
