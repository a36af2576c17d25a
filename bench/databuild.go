package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/memopd/memopd-bench/datasets"
	"github.com/memopd/memopd-bench/retriever"
)

// buildOptions holds the settings of bench data build.
type buildOptions struct {
	Dir     string   `flag:"dir" help:"folder of the tasks and the index"`
	Sources []string `flag:"source" help:"question file, NAME=PATH or NAME/SPLIT=PATH, such as nq=NQ-open.dev.jsonl or hotpotqa/train=hotpot_train_v1.1.json; again for more"`
	Corpus  []string `flag:"corpus" help:"passage file for the index, again for more; none: the passages that the question files hold"`
	composing
	indexing
}

// composing holds the settings of putting questions together.
type composing struct {
	Horizon   []string `flag:"horizon" help:"questions a task, one file each: q2, q8, q16, any qN, wikirag"`
	Seed      uint64   `flag:"seed" help:"seed of which questions stand together"`
	Train     float64  `flag:"train-share" help:"share of questions without a split that go to train"`
	Dev       float64  `flag:"dev-share" help:"share that goes to dev"`
	Test      float64  `flag:"test-share" help:"share that goes to test"`
	OneSource bool     `flag:"one-source" help:"questions of one source in a task, as MEM1's script does, instead of mixed"`
	MaxTasks  int      `flag:"max-tasks" help:"most tasks in a file; 0: as many as the questions suffice for"`
	SkipBad   bool     `flag:"skip-bad" help:"count and show bad records and go on, instead of ending with an error"`
}

func defaultComposing() composing {
	return composing{Horizon: []string{"q2", "q8", "q16"}, Seed: 1, Train: 0.8, Dev: 0.1, Test: 0.1}
}

// indexing holds the settings of an index.
type indexing struct {
	Formula           string  `flag:"formula" help:"how documents are ranked: lucene (BM25 as Lucene and Pyserini have it), robertson (as rank-bm25), or bleve (its own variant, with its own k1 and b)"`
	K1                float64 `flag:"k1" help:"how soon a term's repetitions stop counting; Pyserini has 0.9, Lucene 1.2"`
	B                 float64 `flag:"b" max:"1" help:"how much a document's length counts, 0 to 1; Pyserini has 0.4, Lucene 0.75"`
	Epsilon           float64 `flag:"epsilon" max:"1" help:"robertson alone: the floor of negative idf, as a share of the mean idf"`
	Analyser          string  `flag:"analyser" help:"from text to terms: english (as Lucene's), plain (lower case) or whitespace"`
	Fold              bool    `flag:"fold" help:"letters lose their accents"`
	TitleBoost        float64 `flag:"title-boost" help:"weight of a match in the title, on top of the contents, which begin with the title"`
	DocumentsPerShard int     `flag:"documents-per-shard" min:"1" help:"documents a shard, which bound the memory of a build"`
}

func defaultIndexing() indexing {
	d := retriever.DefaultBuildOptions()
	return indexing{
		Formula: "lucene", K1: d.Scoring.K1, B: d.Scoring.B, Epsilon: 0.25,
		Analyser: string(retriever.AnalyserEnglish), DocumentsPerShard: d.DocumentsPerShard,
	}
}

func (o indexing) options() (retriever.BuildOptions, error) {
	build := retriever.DefaultBuildOptions()
	build.Analyser, build.FoldASCII, build.TitleBoost = retriever.Analyser(o.Analyser), o.Fold, o.TitleBoost
	build.DocumentsPerShard = o.DocumentsPerShard
	var err error
	build.Scoring, err = o.scoring()
	return build, err
}

func (o indexing) scoring() (retriever.Scoring, error) {
	switch o.Formula {
	case "lucene":
		return retriever.Scoring{Name: retriever.ScoringLucene, K1: o.K1, B: o.B}, nil
	case "robertson":
		return retriever.Scoring{Name: retriever.ScoringRobertson, K1: o.K1, B: o.B, Epsilon: o.Epsilon}, nil
	case "bleve":
		if d := defaultIndexing(); o.K1 != d.K1 || o.B != d.B {
			return retriever.Scoring{}, errors.New("--k1 and --b are not for bleve's formula, which has its own")
		}
		return retriever.BleveScoring(), nil
	}
	return retriever.Scoring{}, fmt.Errorf("unknown formula %q (known: lucene, robertson, bleve)", o.Formula)
}

func newDataBuild() *cobra.Command {
	var o buildOptions
	defaults := func() error {
		o = buildOptions{Dir: realData, composing: defaultComposing(), indexing: defaultIndexing()}
		o.Horizon = []string{"wikirag", "q2", "q8", "q16"}
		return nil
	}
	return command(&cobra.Command{
		Use:   "build",
		Short: "Make everything that training on real questions needs: tasks and index",
		Long: `Composes tasks of HotpotQA, NQ and other questions and builds the index of the
passages that they are searched in, in one folder. Questions without a split are
dealt out by the shares, alike whatever the seed and the file. What is there
already is left as it is; a build that was stopped is taken up.

Any format of bench data compose and of bench index will do, gzipped or not. The
paper's data are, by their public names:

  HotpotQA   hotpot_train_v1.1.json, hotpot_dev_distractor_v1.json (hotpotqa.github.io)
  NQ         NQ-open.train.jsonl, NQ-open.dev.jsonl (google-research-datasets), or
             FlashRAG's nq and hotpotqa files (RUC-NLPIR/FlashRAG_datasets)
  passages   wiki-18.jsonl.gz (FlashRAG, Search-R1) or psgs_w100.tsv.gz (DPR): 21 million
             passages, some 14 GB; several hours and about twice the room for the index

Files that say which passages an answer rests on (HotpotQA, nq-open-oracle) are the
ones whose questions bench pretrain can make examples of by itself.`,
		Example: `  bench data build --source hotpotqa=hotpot_dev_distractor_v1.json --dir data/hotpot
  bench data build --source hotpotqa=hotpot_dev_official500.jsonl --source nq=nq-open-oracle.jsonl.gz \
      --corpus hotpot_nq_union_searchr1.jsonl.gz --dir data/real
  bench data build --source hotpotqa/train=hotpot_train_v1.1.json --source hotpotqa/test=hotpot_dev_distractor_v1.json \
      --source nq/train=NQ-open.train.jsonl --source nq/test=NQ-open.dev.jsonl --corpus wiki-18.jsonl.gz --dir data/paper`,
	}, &o, nil, defaults, func(cmd *cobra.Command, _ []string) error { return runDataBuild(cmd.Context(), o) })
}

func runDataBuild(ctx context.Context, o buildOptions) error {
	plan, err := o.composing.plan()
	if err != nil {
		return err
	}
	for _, s := range o.Sources {
		in, err := parseSource(s)
		if err != nil {
			return err
		}
		plan.Inputs = append(plan.Inputs, in)
	}
	if len(plan.Inputs) == 0 {
		return errors.New("no question files: give --source NAME=PATH, such as --source nq=NQ-open.dev.jsonl")
	}
	plan.Documents = len(o.Corpus) == 0
	unlock, err := lockFolder(ctx, o.Dir)
	if err != nil {
		return err
	}
	defer unlock()
	m, err := composeOnce(o.Dir, plan)
	if err != nil {
		return err
	}
	index, err := o.indexOnce(ctx)
	if err != nil {
		return err
	}
	if err := printOutputs(o.Dir, m); err != nil {
		return err
	}
	fmt.Printf("%-60s %7d passages\n", filepath.Join(o.Dir, indexFolder), index)
	return nil
}

// parseSource reads NAME=PATH or NAME/SPLIT=PATH.
func parseSource(text string) (datasets.Input, error) {
	name, path, ok := strings.Cut(text, "=")
	name, split, hasSplit := strings.Cut(name, "/")
	if !ok || name == "" || path == "" {
		return datasets.Input{}, fmt.Errorf("source %q: want NAME=PATH or NAME/SPLIT=PATH, such as nq=NQ-open.dev.jsonl", text)
	}
	in := datasets.Input{Path: path, Source: name}
	if !hasSplit {
		return in, nil
	}
	var err error
	if in.Split, err = datasets.ParseSplit(split); err != nil {
		return in, fmt.Errorf("source %q: %w", text, err)
	}
	return in, nil
}

// plan is the composer's plan, without inputs.
func (o composing) plan() (*datasets.Plan, error) {
	plan := &datasets.Plan{
		Seed: o.Seed, Shares: datasets.Shares{Train: o.Train, Dev: o.Dev, Test: o.Test}, OneSource: o.OneSource,
		MaxTasks: o.MaxTasks, SkipBad: o.SkipBad,
		OnSkip: func(e *datasets.RecordError) { note("skipped: %v", e) },
	}
	for _, name := range o.Horizon {
		n, err := datasets.ParseHorizon(name)
		if err != nil {
			return nil, err
		}
		plan.Horizons = append(plan.Horizons, n)
	}
	return plan, nil
}

// composeOnce runs the plan unless the folder holds what it would make.
func composeOnce(dir string, plan *datasets.Plan) (*datasets.Manifest, error) {
	have, err := datasets.ReadManifest(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return plan.Run(dir)
	}
	if err != nil {
		return nil, err
	}
	if err := sameData(have, plan); err != nil {
		return nil, fmt.Errorf("%s holds other data: %w; choose another folder with --dir", dir, err)
	}
	for _, out := range have.Outputs {
		if info, err := os.Stat(filepath.Join(dir, out.Path)); err != nil || info.Size() != out.Bytes {
			note("%s: %s is not what the manifest says; made again", dir, out.Path)
			return plan.Run(dir)
		}
	}
	note("%s: tasks are there already", dir)
	return have, nil
}

// sameData compares what a folder was made from with what a plan would read.
func sameData(have *datasets.Manifest, plan *datasets.Plan) error {
	before, err := settings(have.Settings)
	if err != nil {
		return err
	}
	now, err := settings(plan)
	if err != nil {
		return err
	}
	for _, name := range []string{"questions_per_task", "shares", "one_source", "max_tasks", "documents", "skip_bad"} {
		if before[name] != now[name] {
			return fmt.Errorf("%s was %s, is %s", name, before[name], now[name])
		}
	}
	if have.Kind != "composed" || have.Seed != plan.Seed || len(have.Inputs) != len(plan.Inputs) {
		return fmt.Errorf("%s of seed %d from %d question files", have.Kind, have.Seed, len(have.Inputs))
	}
	for i, in := range plan.Inputs {
		sum, err := datasets.SumFile(in.Path)
		if err != nil {
			return err
		}
		if old := have.Inputs[i]; old.SHA256 != sum.SHA256 || old.Source != in.Source || old.Split != in.Split {
			return fmt.Errorf("source %d was %s (%s %s), is %s (%s %s)", i+1, old.Path, old.Source, old.Split, in.Path, in.Source, in.Split)
		}
	}
	return nil
}

// indexOnce builds the index unless it is there, and returns its size. Passage
// files are compared by name and size: reading tens of gigabytes again to be told
// that nothing is to be done would be no help.
func (o buildOptions) indexOnce(ctx context.Context) (documents int, err error) {
	files := o.Corpus
	if len(files) == 0 {
		files = []string{filepath.Join(o.Dir, datasets.DocumentsName)}
	}
	dir := filepath.Join(o.Dir, indexFolder)
	build, err := o.indexing.options()
	if err != nil {
		return 0, err
	}
	build.Resume = true
	index, err := retriever.Open(dir, retriever.OpenOptions{SkipChecksums: true})
	if errors.Is(err, retriever.ErrNoIndex) || errors.Is(err, retriever.ErrHalfBuilt) {
		if err := buildIndex(ctx, dir, files, retriever.CorpusOptions{SkipBad: o.SkipBad}, build); err != nil {
			if errors.Is(err, retriever.ErrNoDocuments) && len(o.Corpus) == 0 {
				err = fmt.Errorf("%w: the question files hold no passages; name some with --corpus, and another --dir", err)
			}
			return 0, err
		}
		index, err = retriever.Open(dir, retriever.OpenOptions{SkipChecksums: true})
	} else if err == nil {
		note("%s: the index is there already", dir)
	}
	if err != nil {
		return 0, err
	}
	m := index.Manifest()
	if err := errors.Join(o.sameIndex(m, files, build), index.Close()); err != nil {
		return 0, err
	}
	return m.Documents, nil
}

func (o buildOptions) sameIndex(m retriever.Manifest, files []string, build retriever.BuildOptions) error {
	same := m.Scoring == build.Scoring && m.Analyser == build.Analyser && m.FoldASCII == build.FoldASCII && m.TitleBoost == build.TitleBoost &&
		len(m.Inputs) == len(files)
	for i := 0; same && i < len(files); i++ {
		info, err := os.Stat(files[i])
		if err != nil {
			return err
		}
		same = m.Inputs[i].Name == filepath.Base(files[i]) && m.Inputs[i].Bytes == info.Size()
	}
	if same {
		return nil
	}
	names := make([]string, len(m.Inputs))
	for i, in := range m.Inputs {
		names[i] = in.Name
	}
	slices.Sort(names)
	return fmt.Errorf("%s is an index of %s with %s (k1 %g, b %g), the analyser %s (folding %v) and a title boost of %g: choose another folder with --dir, or remove it",
		filepath.Join(o.Dir, indexFolder), strings.Join(names, ", "), m.Scoring.Name, m.Scoring.K1, m.Scoring.B, m.Analyser, m.FoldASCII, m.TitleBoost)
}
