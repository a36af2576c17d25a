package main

import (
	"context"
	"errors"
	"fmt"
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
	TasksFile string `flag:"tasks-file" help:"composed tasks (Parquet) instead of the mini-wiki's"`
	Index     string `flag:"index" help:"folder of the index that tasks of --tasks-file are searched in"`
	Scripted  string `flag:"scripted" help:"a scripted agent instead of a model: search-each (searches each question, answers nothing)"`
	Model     string `flag:"model" help:"folder of a model with its tokenizer, in Hugging Face's layout, for --tasks-file"`
	Protocol  string `flag:"protocol" help:"prompt for --tasks-file: mem1, mini, or a template's file"`
}

// runReal evaluates on composed tasks.
func (o evalOptions) runReal(ctx context.Context, sampling trace.Sampler) error {
	tasks, err := readTasks(o.TasksFile, o.Tasks)
	if err != nil {
		return err
	}
	if o.Index == "" {
		return errors.New("--tasks-file needs --index, the folder of an index (bench index makes one)")
	}
	index, err := retriever.Open(o.Index, retriever.OpenOptions{})
	if err != nil {
		return err
	}
	defer index.Close()
	protocol, err := agent.LoadProtocol(o.Protocol)
	if err != nil {
		return err
	}
	update, err := agent.UpdateNamed(o.Update)
	if err != nil {
		return err
	}
	name := strings.TrimSuffix(filepath.Base(o.TasksFile), filepath.Ext(o.TasksFile))
	run := evalRun{
		options: o, horizon: name, tasks: tasks, searcher: searcher{index}, dataHash: o.TasksFile,
		agent: agent.Options{Protocol: protocol, Update: update, Sampler: sampling},
		dir:   filepath.Join(o.Out, "eval", name),
	}
	rows, err := o.runRealSubject(ctx, run)
	if err != nil {
		return err
	}
	return printEvaluation(o, rows)
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
		return nil, errors.New("--tasks-file needs --model, a folder with a model, or --scripted")
	}
	tok, err := tokenizer.Load(o.Model)
	if err != nil {
		return nil, err
	}
	run.agent.Tokenizer = tok
	return run.evaluate(ctx, subject{
		variant: filepath.Base(o.Model), from: o.Model,
		load: func() (*model.Decoder, error) { return model.Load(o.Model) },
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
