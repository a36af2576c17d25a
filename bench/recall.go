package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"

	"github.com/memopd/memopd-bench/datasets"
	"github.com/memopd/memopd-bench/retriever"
)

// recallOptions holds the settings of bench recall.
type recallOptions struct {
	Index   string   `flag:"index" help:"folder of the index"`
	Sources []string `flag:"source" help:"question file, NAME=PATH, with the titles of gold passages (HotpotQA's own files, nq-open-oracle); again for more"`
	K       []int    `flag:"k" min:"1" help:"numbers of hits, ascending"`
	Titles  bool     `flag:"titles" help:"any passage of a gold title will do, where the file holds the passage's text too"`
	JSON    bool     `flag:"json" help:"print rows as JSON, one a source"`
}

func newRecall() *cobra.Command {
	var o recallOptions
	defaults := func() error {
		o = recallOptions{Index: filepath.Join("data", "index"), K: []int{1, 3, 10}}
		return nil
	}
	return command(&cobra.Command{
		Use:   "recall",
		Short: "How often an index finds the gold passages of questions",
		Long: `Asks each question as it stands and looks for the passages that its answer rests
on: HotpotQA's supporting facts, NQ's gold passage. recall@k is the share of a
question's gold passages among its first k hits, MRR the reciprocal rank of the first.
Files that hold passages name them by title and text; a question without gold
passages is left out, and counted.`,
		Example: `  bench recall --index data/real/index --source nq=nq-open-oracle.jsonl.gz --source hotpotqa=hotpot_dev_distractor_v1.json`,
	}, &o, nil, defaults, func(cmd *cobra.Command, _ []string) error { return o.run(cmd.Context(), cmd.OutOrStdout()) })
}

// recallRow is a line of the result.
type recallRow struct {
	Source    string          `json:"source"`
	Questions int             `json:"questions"`
	LeftOut   int             `json:"left_out"`
	Recall    map[int]float64 `json:"recall"`
	MRR       float64         `json:"mrr"`
}

func (o recallOptions) run(ctx context.Context, w io.Writer) (err error) {
	if len(o.Sources) == 0 {
		return errors.New("no question files: give --source NAME=PATH")
	}
	if len(o.K) == 0 || !slices.IsSorted(o.K) {
		return fmt.Errorf("--k %v: numbers of hits in ascending order are wanted", o.K)
	}
	judged := make([][]retriever.Judged, len(o.Sources))
	rows := make([]recallRow, len(o.Sources))
	for i, source := range o.Sources {
		in, err := parseSource(source)
		if err != nil {
			return err
		}
		if judged[i], rows[i].LeftOut, err = o.judgements(in); err != nil {
			return err
		}
		if len(judged[i]) == 0 {
			return fmt.Errorf("%s: none of %d questions has gold passages", in.Path, rows[i].LeftOut)
		}
		rows[i].Source = in.Source
	}
	index, err := retriever.Open(o.Index, retriever.OpenOptions{})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, index.Close()) }()
	for i := range rows {
		q, err := retriever.Measure(ctx, index, judged[i], o.K)
		if err != nil {
			return fmt.Errorf("%s: %w", o.Sources[i], err)
		}
		rows[i].Questions, rows[i].MRR, rows[i].Recall = q.Queries, q.MRR, map[int]float64{}
		for j, k := range o.K {
			rows[i].Recall[k] = q.Recall[j]
		}
		if err := o.print(w, rows[i]); err != nil {
			return err
		}
	}
	return nil
}

// judgements reads the questions of a file that name gold passages.
func (o recallOptions) judgements(in datasets.Input) (judged []retriever.Judged, leftOut int, err error) {
	r, err := datasets.Open(in.Path, datasets.Options{Source: in.Source})
	if err != nil {
		return nil, 0, err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	for record, err := range r.All() {
		if err != nil {
			return nil, 0, err
		}
		if len(record.Question.Evidence) == 0 {
			leftOut++
			continue
		}
		judged = append(judged, retriever.Judged{Query: record.Question.Question, Gold: o.gold(record)})
	}
	return judged, leftOut, nil
}

func (o recallOptions) gold(r datasets.Record) []retriever.Passage {
	var gold []retriever.Passage
	for _, title := range r.Question.Evidence {
		p := retriever.Passage{Title: title}
		at := slices.IndexFunc(r.Passages, func(d datasets.Document) bool { return d.Title == title })
		if at >= 0 && !o.Titles {
			p.Text = r.Passages[at].Text
		}
		gold = append(gold, p)
	}
	return gold
}

func (o recallOptions) print(w io.Writer, r recallRow) error {
	if o.JSON {
		return json.NewEncoder(w).Encode(r)
	}
	line := fmt.Sprintf("%-12s %6d questions", r.Source, r.Questions)
	for _, k := range o.K {
		line += fmt.Sprintf("  recall@%d %.3f", k, r.Recall[k])
	}
	line += fmt.Sprintf("  MRR %.3f", r.MRR)
	if r.LeftOut > 0 {
		line += fmt.Sprintf("  (%d without gold passages left out)", r.LeftOut)
	}
	_, err := fmt.Fprintln(w, line)
	return err
}
