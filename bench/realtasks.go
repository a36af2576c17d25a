package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"

	"github.com/memopd/memopd-bench/agent"
	"github.com/memopd/memopd-bench/datasets"
	"github.com/memopd/memopd-bench/eval"
	"github.com/memopd/memopd-bench/model"
	"github.com/memopd/memopd-bench/model/tokenizer"
	"github.com/memopd/memopd-bench/results"
	"github.com/memopd/memopd-bench/retriever"
	"github.com/memopd/memopd-bench/trace"
)

// realTasks holds the settings of evaluation on composed tasks over real passages.
type realTasks struct {
	TasksFile string `flag:"tasks-file" help:"one file of composed tasks (Parquet) instead of those in --data"`
	Index     string `flag:"index" help:"folder of the index that composed tasks are searched in; empty: index in --data"`
	Scripted  string `flag:"scripted" help:"a scripted agent instead of a model for composed tasks: search-each (searches each question, answers nothing)"`
	Model     string `flag:"model" help:"folder of a model with its tokenizer, in Hugging Face's layout, for composed tasks"`
	Protocol  string `flag:"protocol" help:"prompt for composed tasks: mem1, mini, or a template's file"`
}

// realFiles lists the files of composed tasks that the options name: one file,
// or a file a horizon where --data holds what bench data compose made; nil for
// the mini-wiki.
func (o evalOptions) realFiles() ([]string, error) {
	if o.TasksFile != "" {
		return []string{o.TasksFile}, nil
	}
	m, err := datasets.ReadManifest(o.Data)
	if errors.Is(err, fs.ErrNotExist) || err == nil && m.Kind != "composed" {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	split, err := datasets.ParseSplit(o.Split)
	if err != nil {
		return nil, err
	}
	var files []string
	for _, horizon := range o.Horizon {
		n, err := datasets.ParseHorizon(horizon)
		if err != nil {
			return nil, err
		}
		files = append(files, filepath.Join(o.Data, datasets.TasksName(split, n)))
	}
	return files, nil
}

// runReal evaluates on files of composed tasks.
func (o evalOptions) runReal(ctx context.Context, files []string, sampling trace.Sampler) error {
	if o.Index == "" {
		o.Index = filepath.Join(o.Data, indexFolder)
	}
	index, err := retriever.Open(o.Index, retriever.OpenOptions{})
	if err != nil {
		return err
	}
	defer index.Close()
	var rows []results.TaskRow
	for _, file := range files {
		got, err := o.runFile(ctx, file, index, sampling)
		if err != nil {
			return err
		}
		rows = append(rows, got...)
	}
	return printEvaluation(o, rows)
}

func (o evalOptions) runFile(ctx context.Context, file string, index *retriever.Index, sampling trace.Sampler) ([]results.TaskRow, error) {
	tasks, err := readTasks(file, o.Tasks)
	if err != nil {
		return nil, err
	}
	protocol, err := agent.LoadProtocol(o.Protocol)
	if err != nil {
		return nil, err
	}
	update, err := agent.UpdateNamed(o.Update)
	if err != nil {
		return nil, err
	}
	name := strings.TrimSuffix(filepath.Base(file), filepath.Ext(file))
	run := evalRun{
		options: o, horizon: name, tasks: tasks, searcher: searcher{index}, dataHash: file,
		agent: agent.Options{Protocol: protocol, Update: update, Sampler: sampling},
		dir:   filepath.Join(o.Out, "eval", name),
	}
	return o.runRealSubject(ctx, run)
}

func (o evalOptions) runRealSubject(ctx context.Context, run evalRun) ([]results.TaskRow, error) {
	switch {
	case o.Scripted != "" && o.Model != "":
		return nil, errors.New("--scripted and --model exclude each other")
	case o.Scripted == "search-each":
		words := &wordTokenizer{ids: map[string]int32{}}
		run.agent.Tokenizer, run.agent.Model = words, o.Scripted
		run.options.TimedTasks = 0
		note("tokens are counted as words: a script has no tokenizer")
		shown := make([]agent.Task, len(run.tasks))
		for i, t := range run.tasks {
			shown[i] = eval.AgentTask(t)
		}
		return run.record(ctx, subject{variant: o.Scripted}, agent.NewSearchEach(words, shown...))
	case o.Scripted != "":
		return nil, unknownName("scripted agent", o.Scripted, []string{"search-each"})
	case o.Model == "":
		return nil, errors.New("composed tasks need --model, a folder with a model, or --scripted search-each")
	}
	tok, err := tokenizer.Load(o.Model)
	if err != nil {
		return nil, err
	}
	run.agent.Tokenizer = tok
	return run.evaluate(ctx, subject{
		variant: filepath.Base(o.Model), from: o.Model,
		load: func() (*model.Decoder, error) { return model.Load(o.Model, model.Placement{}) },
	})
}

// readTasks reads the first limit tasks of a file, 0 for all.
func readTasks(path string, limit int) ([]datasets.Task, error) {
	var tasks []datasets.Task
	for t, err := range datasets.ReadTasks(path, datasets.Options{}) {
		if err != nil {
			return nil, err
		}
		if tasks = append(tasks, t); len(tasks) == limit {
			break
		}
	}
	if len(tasks) == 0 {
		return nil, fmt.Errorf("%s holds no tasks", path)
	}
	return tasks, nil
}

// wordTokenizer takes each word for a token, and learns words as they come. It
// serves scripts, which have no model whose tokens could be counted.
type wordTokenizer struct {
	ids   map[string]int32
	words []string
}

// Encode implements agent.Tokenizer.
func (w *wordTokenizer) Encode(text string) []int32 {
	fields := strings.Fields(text)
	out := make([]int32, len(fields))
	for i, f := range fields {
		id, ok := w.ids[f]
		if !ok {
			id = int32(len(w.words))
			w.ids[f] = id
			w.words = append(w.words, f)
		}
		out[i] = id
	}
	return out
}

// Decode implements agent.Tokenizer.
func (w *wordTokenizer) Decode(ids []int32) string {
	out := make([]string, len(ids))
	for i, id := range ids {
		out[i] = w.words[id]
	}
	return strings.Join(out, " ")
}
