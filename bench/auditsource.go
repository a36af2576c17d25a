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
	"time"

	"github.com/memopd/memopd-bench/agent"
	"github.com/memopd/memopd-bench/align"
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
	if s.Trajectories < 0 {
		return nil, fmt.Errorf("trajectories is %d, want 0 or more", s.Trajectories)
	}
	if len(s.Ledger) == 0 && s.Runs == "" {
		return s.fresh(ctx, p)
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

// load loads the model that --model names, or that sampled the trajectories.
func (s auditSource) load(in *auditInput, p model.Placement) (err error) {
	in.from = s.Model
	if in.from == "" {
		if in.from, err = s.sampledBy(in.trajectories); err != nil {
			return err
		}
	}
	in.model, in.tokenizer, err = loadAudited(&in.from, p)
	if err != nil {
		return err
	}
	if err := in.sameTokenizer(); err != nil {
		in.model.Free()
		return err
	}
	return nil
}

// sampledBy is the one model that the trajectories name, or the run's.
func (s auditSource) sampledBy(trajectories []*trace.Trajectory) (string, error) {
	if s.Runs != "" {
		if path, err := trainedModel(s.Runs); err != nil || path != "" {
			return path, err
		}
	}
	var names []string
	for _, t := range trajectories {
		if !slices.Contains(names, t.Model) {
			names = append(names, t.Model)
		}
	}
	if len(names) > 1 {
		return "", fmt.Errorf("the ledgers were sampled by several models (%s): name one with --model, or audit their ledgers one by one", strings.Join(names, ", "))
	}
	if names[0] == "" {
		return "", errors.New("the ledger does not say which model sampled it: name one with --model")
	}
	return names[0], nil
}

// loadAudited loads a model with its tokenizer, if it has one; from becomes its path.
func loadAudited(from *string, p model.Placement) (*model.Decoder, *tokenizer.Tokenizer, error) {
	name := strings.TrimPrefix(*from, builtinModel)
	if preset, role, ok := strings.Cut(name, "/"); ok {
		if _, err := presets.Checkpoint(preset, role); err == nil {
			*from = builtinModel + name
			d, err := loadBuiltin(preset, role, p)
			if err != nil {
				return nil, nil, err
			}
			tok, err := wikiTokenizer()
			return d, tok, err
		}
	}
	path, err := locateModel(name)
	if err != nil {
		return nil, nil, fmt.Errorf("the model that sampled, or --model: %w", err)
	}
	*from = path
	tok, missing := model.LoadTokenizer(path)
	d, err := model.Load(path, p)
	if err != nil {
		return nil, nil, err
	}
	if missing != nil {
		note("%s: no tokenizer (%v): all rows of its head count as its vocabulary", path, missing)
		return d, nil, nil
	}
	if err := limitVocab(d, tok); err != nil {
		d.Free()
		return nil, nil, fmt.Errorf("%s: %w", path, err)
	}
	return d, tok, nil
}

// sameTokenizer refuses a model that speaks other ids than the one that sampled,
// where that one is still at hand.
func (in *auditInput) sameTokenizer() error {
	name := in.trajectories[0].Model
	if in.tokenizer == nil || name == "" || name == in.from || strings.HasPrefix(name, builtinModel) {
		return nil
	}
	own, err := model.LoadTokenizer(name)
	if err != nil {
		return nil // not at hand: the ids' range is still checked
	}
	if err := sameTokens(own, in.tokenizer); err != nil {
		return fmt.Errorf("%s cannot score what %s sampled: %w", in.from, name, err)
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

// layoutOptions are what layouts are made with: where the agent thinks in
// <think> tags, MEM1's mask hides that part.
func (in *auditInput) layoutOptions() align.Options {
	if in.tokenizer == nil {
		return align.Options{}
	}
	think := align.ThinkTo("</think>", func(ids []int32) string { return in.tokenizer.Decode(ids) })
	for _, t := range in.trajectories {
		for k := range t.Calls {
			if think(t, k) > 0 {
				return align.Options{ThinkLength: think}
			}
		}
	}
	return align.Options{}
}

// keep writes fresh rollouts as a ledger, to hash it, and where --save-ledger says.
func (s auditSource) keep(in *auditInput) error {
	path := s.SaveLedger
	if path == "" {
		dir, err := os.MkdirTemp("", "bench-audit-")
		if err != nil {
			return err
		}
		defer os.RemoveAll(dir)
		path = filepath.Join(dir, "ledger.jsonl")
	}
	if err := trace.WriteAll(path, in.trajectories); err != nil {
		return err
	}
	sum, err := results.HashFile(path)
	from := s.SaveLedger
	if from == "" {
		from = "fresh rollouts of " + in.from
	}
	in.ledgers = []audit.Ledger{{From: from, SHA256: sum}}
	return err
}

// auditRecord is the file of an audit that certifies nothing.
type auditRecord struct {
	Schema    int               `json:"schema"`
	Result    any               `json:"result"`
	Model     string            `json:"model"`             // sha256 of the weights
	Teacher   string            `json:"teacher,omitempty"` // likewise
	ModelFrom string            `json:"model_from"`
	Ledgers   []audit.Ledger    `json:"ledgers"`
	Manifest  *results.Manifest `json:"manifest"`
}

// record writes an audit's result with its inputs' hashes; teacher may be nil.
func (in *auditInput) record(path string, m *results.Manifest, teacher *model.Decoder, result any) (err error) {
	r := auditRecord{Schema: 1, Result: result, ModelFrom: in.from, Ledgers: in.ledgers, Manifest: m}
	if r.Model, err = audit.HashModel(in.model); err != nil {
		return err
	}
	if teacher != nil {
		if r.Teacher, err = audit.HashModel(teacher); err != nil {
			return err
		}
	}
	m.Ended = time.Now().UTC()
	return results.WriteJSON(path, r)
}

// tokenizerHash is the sha256 of the tokenizer's tokenizer.json; "" without one.
func (in *auditInput) tokenizerHash() (string, error) {
	if in.tokenizer == nil {
		return "", nil
	}
	dir, err := os.MkdirTemp("", "bench-audit-")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(dir)
	if err := in.tokenizer.Save(dir); err != nil {
		return "", err
	}
	return results.HashFile(filepath.Join(dir, "tokenizer.json"))
}
