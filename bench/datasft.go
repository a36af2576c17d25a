package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/memopd/memopd-bench/datasets"
	"github.com/memopd/memopd-bench/remote"
	"github.com/memopd/memopd-bench/results"
	"github.com/memopd/memopd-bench/trace"
)

// sftOptions holds the settings of bench data sft.
type sftOptions struct {
	connecting
	Model         string   `flag:"model" help:"name of the teacher on the server; empty: the first that it lists"`
	Tokenizer     string   `flag:"tokenizer" help:"the student, whose tokenizer makes ids of the teacher's text: a folder with tokenizer.json, a GGUF file, or the name of a fetched model"`
	Data          string   `flag:"data" help:"folder of composed tasks (bench data build)"`
	Split         string   `flag:"split" help:"which tasks of --data"`
	Horizon       []string `flag:"horizon" help:"questions a task, one file of --data each"`
	TasksFile     string   `flag:"tasks-file" help:"one file of composed tasks (Parquet) instead of those in --data"`
	Index         string   `flag:"index" help:"folder of the index that is searched; empty: index in --data"`
	Out           string   `flag:"out" help:"ledger to add to, ending in .jsonl; beside it stand .rejected.jsonl and .report.json"`
	Tasks         int      `flag:"tasks" help:"tasks of each file; 0: all"`
	Examples      int      `flag:"examples" help:"stop asking once so many turns are kept; 0: never"`
	Attempts      int      `flag:"attempts" help:"trajectories of a task at most, until enough are kept"`
	Keep          int      `flag:"keep" help:"trajectories of a task that are kept"`
	Temperature   float64  `flag:"temperature" help:"sampling temperature of the teacher; 0: greedy"`
	TopP          float64  `flag:"top-p" max:"1" help:"nucleus of the teacher's sampling; 1: all"`
	Seed          uint64   `flag:"seed" help:"seed of sampling"`
	TeacherTokens int      `flag:"teacher-tokens" help:"limit of a response in the teacher's tokens; 0: the protocol's"`
	Layout        string   `flag:"layout" help:"chat messages of a call: one-message (all in one user message, as MEM1's client) or turns (responses as the assistant's)"`
	MinF1         float64  `flag:"min-f1" max:"1" help:"least F1 (squad, mean over the questions) of what is kept"`
	MinEM         float64  `flag:"min-em" max:"1" help:"least exact match (squad, mean over the questions) of what is kept"`
	CallTokens    int      `flag:"call-tokens" help:"longest call, context and response, of what is kept, in the student's tokens; 0: any"`
	Strict        bool     `flag:"strict" help:"keep only turns of the form <think> memory </think> and one search or answer, nothing else"`
	speaking
}

func sftDefaults() sftOptions {
	speak := speakingPreset(presetPaper)
	o := sftOptions{
		connecting: defaultConnecting(), Data: realData, Split: string(datasets.Train), Horizon: []string{"q2"},
		Out: filepath.Join("data", "sft", "ledger.jsonl"), Attempts: 4, Keep: 1, Temperature: 0.7, TopP: 1,
		Layout: string(remote.OneMessage), MinF1: 0.8, Strict: true, speaking: speak,
	}
	o.ServerKind = string(remote.OpenAI)
	return o
}

func newDataSFT() *cobra.Command {
	var o sftOptions
	defaults := func() error { o = sftDefaults(); return nil }
	return command(&cobra.Command{
		Use:   "sft",
		Short: "Collect SFT trajectories from a large teacher behind a chat server",
		Long: `Runs a teacher through the agent's protocol on composed tasks and keeps the
trajectories that are right and well formed, as examples for bench pretrain
--examples. The teacher is a chat model behind /v1/chat/completions; its text is
encoded by the student's tokenizer, so that the ledger holds what the student reads
and is to write.

Filters, in this order; each trajectory counts once, under the first that drops it:
  failed        the request or a search failed for good, or did not fit the server
  truncated     a response was cut at the student's token limit (--response-tokens)
  unusable      a response asked for nothing clear
  unanswered    the turns ran out
  format        with --strict: a turn without its <think> memory, or with more around it
  answer_count  another number of answers than of questions
  wrong         F1 below --min-f1 or exact match below --min-em
  too_long      a call of more than --call-tokens
  duplicate     word for word what is kept already
A task is asked again until --keep trajectories are kept or --attempts are spent.

Every trajectory is on disk as soon as it has ended: the kept ones in --out, the
others in OUT.rejected.jsonl, the counts in OUT.report.json. The same command goes
on where a stopped run was: tasks that are done are not asked again, failed
trajectories do not count as attempts, a torn last line is taken off.

To try it with llama.cpp on a CPU (scripts/peers/llama_cpp.sh does these steps):
  pip install 'llama-cpp-python[server]'
  python -m llama_cpp.server --model SmolLM2-135M-Instruct.Q4_1.gguf --n_ctx 4096
  bench data sft --server http://localhost:8000 --server-kind openai --tasks 5 ...
With vLLM or SGLang (vllm serve Qwen/Qwen2.5-72B-Instruct) name --server-kind: stop
tags then come back as written, instead of being put back.`,
		Example: `  bench data sft --server http://localhost:8000 --server-kind vllm --tokenizer Qwen2.5-3B --horizon q2
  bench data sft --server http://localhost:8000 --tokenizer SmolLM2-135M-Instruct --tasks 5 --response-tokens 96 --out data/sft/try.jsonl`,
	}, &o, nil, defaults, func(cmd *cobra.Command, _ []string) error { return runDataSFT(cmd.Context(), o) })
}

func (o sftOptions) validate() error {
	switch {
	case o.Server == "":
		return errors.New("--server is missing: the URL of a chat server")
	case o.Tokenizer == "":
		return errors.New("--tokenizer is missing: the student's")
	case filepath.Ext(o.Out) != ".jsonl":
		return fmt.Errorf("--out %s: want a name that ends in .jsonl", o.Out)
	case o.Attempts < 1 || o.Keep < 1 || o.Keep > o.Attempts:
		return fmt.Errorf("attempts %d, keep %d: want at least 1 attempt, and no more to keep than attempts", o.Attempts, o.Keep)
	}
	return nil
}

func runDataSFT(ctx context.Context, o sftOptions) (err error) {
	if err := o.validate(); err != nil {
		return err
	}
	t, err := o.newTeaching()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, t.close()) }()
	index := o.Index
	if index == "" {
		index = filepath.Join(o.Data, indexFolder)
	}
	opened, err := o.openPassages(ctx, index)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, opened.Close()) }()
	begin := time.Now()
	runErr := t.run(ctx, searcher{opened})
	t.report.Seconds += time.Since(begin).Seconds()
	t.report.Finished = runErr == nil
	if err := errors.Join(runErr, t.writeReport()); err != nil {
		if runErr != nil {
			note("what is done is in %s; the same command goes on from there", o.Out)
		}
		return err
	}
	if err := t.report.print(os.Stdout, o.Out); err != nil {
		return err
	}
	if n := t.report.Ends[trace.EndModelError]; n > 0 && n == t.report.Trajectories {
		return fmt.Errorf("all %d trajectories failed: the reasons are in %s.rejected.jsonl", n, o.base())
	}
	return nil
}

// chat makes the policy that asks the teacher. prompts are the texts of the task
// prefixes by task.
func (o sftOptions) chat(d *dialect, prompts map[string]string) (*remote.Chat, error) {
	connection, err := o.connection(o.Model)
	if err != nil {
		return nil, err
	}
	return remote.NewChat(remote.Kind(o.ServerKind), o.Server, remote.ChatOptions{
		Connection: connection, Temperature: o.Temperature, TopP: o.TopP, MaxNewTokens: o.TeacherTokens,
		Layout: remote.Layout(o.Layout), Tokenizer: d.tokenizer, StopTexts: d.agent.Protocol.StopTags(),
		Prompt: func(r *trace.Request) string { return prompts[r.TaskID] },
	})
}

// taskFiles lists the files of tasks that the options name.
func (o sftOptions) taskFiles() ([]string, error) {
	return evalOptions{common: common{Data: o.Data}, Split: o.Split, Horizon: o.Horizon, real: real{TasksFile: o.TasksFile}}.taskFiles()
}

// readTasks reads the tasks of all files; an id stands once.
func (o sftOptions) readTasks(files []string) ([]datasets.Task, error) {
	var all []datasets.Task
	seen := map[string]bool{}
	for _, file := range files {
		tasks, err := readTasks(file, o.Tasks)
		if errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("%w: %s", err, tasksHint)
		}
		if err != nil {
			return nil, err
		}
		for _, t := range tasks {
			if seen[t.ID] {
				return nil, fmt.Errorf("%s: task %s stands twice", file, t.ID)
			}
			seen[t.ID] = true
		}
		all = append(all, tasks...)
	}
	return all, nil
}

// sftFree are the settings that a run can be taken up with another value of.
var sftFree = []string{
	"server", "server-kind", "api-key-env", "requests", "request-timeout", "request-attempts", "failures-max",
	"out", "tasks", "examples", "attempts", "sampler-rows",
}

// sameSettings compares the settings with those of an earlier run's report.
func (o sftOptions) sameSettings(earlier any) error {
	differences, err := changedSettings(earlier, &o, func(name string) bool { return slices.Contains(sftFree, name) })
	if err == nil && differences != "" {
		err = fmt.Errorf("%s was begun with other settings: %s; choose another --out", o.Out, differences)
	}
	return err
}

// newTeaching opens the ledgers and reads what they hold.
func (o sftOptions) newTeaching() (*teaching, error) {
	path, err := locateModel(o.Tokenizer)
	if err != nil {
		return nil, err
	}
	d, err := modelDialect(o.speaking, path)
	if err != nil {
		return nil, err
	}
	files, err := o.taskFiles()
	if err != nil {
		return nil, err
	}
	tasks, err := o.readTasks(files)
	if err != nil {
		return nil, err
	}
	t := &teaching{options: o, dialect: d, states: map[string]*taskState{}, seen: map[[32]byte]bool{}}
	t.agent = d.agent
	prompts := map[string]string{}
	for _, task := range tasks {
		s := &taskState{task: task}
		t.order = append(t.order, s)
		t.states[task.ID] = s
		var questions []string
		for _, q := range task.Questions {
			questions = append(questions, q.Question)
		}
		prompts[task.ID] = d.agent.Protocol.Prefix(questions)
	}
	if t.chat, err = o.chat(d, prompts); err != nil {
		return nil, err
	}
	if err := t.open(files); err != nil {
		return nil, errors.Join(err, t.close())
	}
	return t, nil
}

// base is the name that the files beside the ledger begin with.
func (o sftOptions) base() string { return strings.TrimSuffix(o.Out, ".jsonl") }

// open reads the report of an earlier run and opens the ledgers.
func (t *teaching) open(taskFiles []string) error {
	o := t.options
	if err := os.MkdirAll(filepath.Dir(o.Out), 0o755); err != nil {
		return err
	}
	config := json.RawMessage(mustConfigJSON(&o))
	manifest := results.NewManifest(config, libtorch())
	for i, file := range taskFiles {
		if err := manifest.AddFile(fmt.Sprintf("tasks %d", i), file); err != nil {
			return err
		}
	}
	t.report = sftReport{Command: commandLine(), Tasks: len(t.order), Manifest: manifest}
	data, err := os.ReadFile(o.base() + ".report.json")
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err == nil {
		var earlier sftReport
		if err := json.Unmarshal(data, &earlier); err != nil {
			return fmt.Errorf("%s.report.json: %w", o.base(), err)
		}
		if earlier.Manifest == nil {
			return fmt.Errorf("%s.report.json: no manifest", o.base())
		}
		if err := o.sameSettings(earlier.Manifest.Config); err != nil {
			return err
		}
		t.report.Seconds = earlier.Seconds
	}
	for _, l := range []struct {
		at   **trace.Appender
		path string
		add  func(*trace.Trajectory)
	}{{&t.kept, o.Out, t.takeKept}, {&t.rejected, o.base() + ".rejected.jsonl", t.takeRejected}} {
		var torn int64
		if *l.at, torn, err = trace.Append(l.path); err != nil {
			return err
		}
		if torn > 0 {
			note("%s: a torn last line of %d bytes is taken off", l.path, torn)
		}
		for tr, err := range trace.All(l.path) {
			if err != nil {
				return err
			}
			l.add(tr)
		}
	}
	return t.writeReport()
}
