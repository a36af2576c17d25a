package main

import (
	"context"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"github.com/memopd/memopd-bench/agent"
	"github.com/memopd/memopd-bench/datasets"
	"github.com/memopd/memopd-bench/eval"
	"github.com/memopd/memopd-bench/eval/audit"
	"github.com/memopd/memopd-bench/model"
	"github.com/memopd/memopd-bench/model/tokenizer"
	"github.com/memopd/memopd-bench/presets"
	"github.com/memopd/memopd-bench/results"
	"github.com/memopd/memopd-bench/trace"
)

// auditSource holds the settings of where audited trajectories and their model come from.
type auditSource struct {
	Preset string `flag:"preset" help:"whose agent makes fresh rollouts where neither --ledger nor --runs is given: mini or small"`
	common
	Ledger       []string `flag:"ledger" help:"ledgers to audit, .jsonl or .parquet"`
	Runs         string   `flag:"runs" help:"folder of a run or an evaluation: every ledger below it is audited"`
	Trajectories int      `flag:"trajectories" help:"the first so many trajectories; 0: all of the ledgers"`
	Model        string   `flag:"model" help:"the model: a folder in Hugging Face's layout, a GGUF file, a fetched model's name, or a built-in one (mini/student, mini/teacher); empty: the one that sampled"`
	Horizon      string   `flag:"horizon" help:"questions a task of fresh rollouts"`
	Temperature  float64  `flag:"temperature" help:"sampling temperature of fresh rollouts"`
	Seed         uint64   `flag:"seed" help:"seed of fresh rollouts and of what an audit draws"`
	SaveLedger   string   `flag:"save-ledger" help:"file that fresh rollouts are kept in, .jsonl or .parquet"`
	speaking
}

// auditPresets are those whose agents can make fresh rollouts.
var auditPresets = []string{presetMini, presetSmall}

func defaultAuditSource(preset string) (auditSource, error) {
	if !slices.Contains(auditPresets, preset) {
		return auditSource{}, unknownName("preset", preset, auditPresets)
	}
	return auditSource{
		Preset: preset, common: defaultCommon(preset), Trajectories: 64, Horizon: "q2", Temperature: 1, speaking: speakingPreset(preset),
	}, nil
}

// auditInput is what an audit works on. The model has float32 weights; whoever is
// handed it frees it.
type auditInput struct {
	trajectories []*trace.Trajectory
	ledgers      []audit.Ledger
	model        *model.Decoder
	from         string               // where the model came from
	tokenizer    *tokenizer.Tokenizer // nil: the model has none
}

// builtinModel is how trajectories name a checkpoint of the build.
const builtinModel = "builtin "

// open loads trajectories and model, or makes fresh rollouts.
func (s auditSource) open(ctx context.Context, p model.Placement) (*auditInput, error) {
	if len(s.Ledger) == 0 && s.Runs == "" {
		return s.fresh(ctx, p)
	}
	if s.Update != "" {
		if _, err := agent.UpdateNamed(s.Update); err != nil {
			return nil, err
		}
		if s.Update != speakingPreset(s.Preset).Update {
			return nil, fmt.Errorf("--update %s is for fresh rollouts: the trajectories of a ledger have their own", s.Update)
		}
	}
	files := s.Ledger
	if s.Runs != "" {
		found, err := findLedgers(s.Runs)
		if err != nil {
			return nil, err
		}
		files = append(slices.Clone(files), found...)
	}
	in := &auditInput{}
	for _, file := range files {
		if err := in.read(file, s.Trajectories); err != nil {
			return nil, err
		}
	}
	if len(in.trajectories) == 0 {
		return nil, fmt.Errorf("no trajectories in %s", strings.Join(files, ", "))
	}
	if err := s.load(in, p); err != nil {
		return nil, err
	}
	return in, nil
}

// findLedgers lists the ledgers below a folder.
func findLedgers(dir string) ([]string, error) {
	var files []string
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err == nil && !e.IsDir() && (e.Name() == "ledger.jsonl" || e.Name() == "ledger.parquet") {
			files = append(files, path)
		}
		return err
	})
	if err == nil && len(files) == 0 {
		err = fmt.Errorf("no ledger.jsonl or ledger.parquet below %s: bench eval --ledger jsonl keeps one", dir)
	}
	return files, err
}

// read adds a ledger's trajectories, up to limit in all (0: no limit).
func (in *auditInput) read(file string, limit int) error {
	if limit > 0 && len(in.trajectories) >= limit {
		return nil
	}
	sum, err := results.HashFile(file)
	if err != nil {
		return err
	}
	in.ledgers = append(in.ledgers, audit.Ledger{From: file, SHA256: sum})
	for t, err := range trace.All(file) {
		if err != nil {
			return err
		}
		if in.trajectories = append(in.trajectories, t); len(in.trajectories) == limit {
			break
		}
	}
	return nil
}

// presetModel is where the preset's student or teacher is.
func (s auditSource) presetModel(role string) string {
	if onWiki(s.Preset) {
		return builtinModel + s.Preset + "/" + role
	}
	return filepath.Join(pretrainFolder(s.Out, s.Preset, 0), role)
}

// fresh samples the preset's agent on test tasks.
func (s auditSource) fresh(ctx context.Context, p model.Placement) (*auditInput, error) {
	in, e, tasks, err := s.prepare(ctx, p)
	if err != nil {
		return nil, err
	}
	defer e.Close()
	if err = s.sample(ctx, in, e, tasks); err == nil {
		err = s.keep(in)
	}
	if err != nil {
		in.model.Free()
		return nil, err
	}
	return in, nil
}

// prepare loads the model of fresh rollouts and opens where it works, with its tasks.
func (s auditSource) prepare(ctx context.Context, p model.Placement) (_ *auditInput, _ *environment, _ []datasets.Task, err error) {
	in := &auditInput{from: s.Model}
	n, err := datasets.ParseHorizon(s.Horizon)
	if err != nil {
		return nil, nil, nil, err
	}
	if !(s.Temperature > 0) {
		return nil, nil, nil, fmt.Errorf("--temperature is %g, want more than 0: fresh rollouts are sampled", s.Temperature)
	}
	if in.from == "" {
		in.from = s.presetModel(presets.Student)
	}
	if in.model, in.tokenizer, err = loadAudited(&in.from, p); err != nil {
		return nil, nil, nil, err
	}
	defer func() {
		if err != nil {
			in.model.Free()
		}
	}()
	e, err := openEnvironment(ctx, work{preset: s.Preset, data: s.Data, speaking: s.speaking, model: in.from})
	if err != nil {
		return nil, nil, nil, err
	}
	tasks, err := e.Composed(datasets.Test, n, s.Trajectories)
	if err != nil {
		e.Close()
		return nil, nil, nil, err
	}
	return in, e, tasks, nil
}

// sample runs the agent on tasks.
func (s auditSource) sample(ctx context.Context, in *auditInput, e *environment, tasks []datasets.Task) error {
	settings := trace.Sampler{Temperature: s.Temperature, TopP: 1, Seed: s.Seed}
	policy, err := model.NewSampler(in.model, settings, s.Rows)
	if err != nil {
		return err
	}
	options := e.agent
	options.Sampler, options.ContextTokens, options.Model = settings, in.model.Config.MaxPositionEmbeddings, in.from
	bar := newProgress("rollouts", int64(len(tasks)))
	options.Progress = func(p agent.Progress) { bar.set(int64(p.Ended)) }
	shown := make([]agent.Task, len(tasks))
	for i, t := range tasks {
		shown[i] = eval.AgentTask(t)
	}
	in.trajectories, err = agent.Rollout(ctx, policy, searcher{e.index}, options, shown...)
	if err != nil {
		return err
	}
	bar.done()
	return nil
}
