package main

import (
	"cmp"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/memopd/memopd-bench/model"
	"github.com/memopd/memopd-bench/train"
)

// planOptions holds the settings of bench plan.
type planOptions struct {
	Preset       string    `flag:"preset" help:"defaults: paper, small or mini"`
	Stage        string    `flag:"stage" help:"what is planned: ppo or sft"`
	Student      string    `flag:"student" help:"a published shape by name, or a checkpoint: a folder (its config.json is enough) or a .gguf file"`
	Teacher      string    `flag:"teacher-model" help:"the same of the teacher; none: no teacher"`
	DeviceMemory []float64 `flag:"device-memory" help:"memory of devices in GB of 10^9 bytes; what the driver, libraries and fragmentation take comes out of the 5 to 9 GB more that such devices report"`

	Length         int `flag:"length" help:"packed tokens of a microbatch, one trajectory's or several's; 0: the preset's tokens per microbatch"`
	PrefixTokens   int `flag:"prefix-tokens" help:"tokens of a task's prefix"`
	Calls          int `flag:"calls" help:"calls of the trajectories in a microbatch"`
	ResponseTokens int `flag:"response-tokens" help:"sampled tokens of a call"`
	Rows           int `flag:"rows" help:"requests that are decoded at once"`
	ContextTokens  int `flag:"context-tokens" help:"context and output of a request while it is sampled"`

	PromptsPerStep int    `flag:"prompts-per-step" help:"trajectories of a step"`
	Critic         string `flag:"critic" help:"critic's kind: decoder or head"`
	OffloadFrozen  bool   `flag:"offload-frozen" help:"reference and teacher in the host's memory while they are not scoring"`
	train.Compute
	JSON bool `flag:"json" help:"print the plan as JSON"`
}

func newPlan() *cobra.Command {
	o := planOptions{Preset: "paper"}
	defaults := func() (err error) {
		o, err = planDefaults(o.Preset)
		return err
	}
	return command(&cobra.Command{
		Use:   "plan",
		Short: "Reckon the device memory of a training run, part by part",
		Long: `Reckons what training needs of its device: weights, gradients, moments, copies,
frozen models, activations, keys and values of sampling, logits; which phase of a
step needs most; what fits on the devices given, and which settings to change
where it does not. Nothing is loaded or run.`,
		Example: `  bench plan --preset paper --device-memory 80,141
  bench plan --preset paper --critic head --length 8192
  bench plan --student models/my-checkpoint --teacher-model none`,
	}, &o, &o.Preset, defaults, func(cmd *cobra.Command, _ []string) error { return runPlan(cmd.OutOrStdout(), o) })
}

// planDefaults are a preset's settings of bench plan.
func planDefaults(preset string) (planOptions, error) {
	o := planOptions{
		Preset: preset, Stage: "ppo", DeviceMemory: []float64{80, 141},
		PrefixTokens: 600, Calls: 6, ResponseTokens: 1000, Rows: 128, ContextTokens: 5096,
	}
	switch preset {
	case "paper":
		o.Student, o.Teacher = "Qwen2.5-3B", "Qwen2.5-7B"
	case "small":
		o.Student, o.Teacher = "SmolLM2-135M", "SmolLM2-135M"
		o.Calls, o.ResponseTokens, o.Rows, o.ContextTokens = 3, 200, 4, 4096
	case "mini":
		o.Student, o.Teacher = "mini/student", "mini/teacher"
		o.PrefixTokens, o.Calls, o.ResponseTokens, o.Rows, o.ContextTokens = 40, 60, 15, 32, 512
	default:
		return o, unknownName("preset", preset, []string{"paper", "small", "mini"})
	}
	c := planPPO(preset)
	o.Compute, o.Critic, o.PromptsPerStep, o.OffloadFrozen = c.Compute, c.Critic, c.PromptsPerStep, c.OffloadFrozen
	return o, nil
}

func planPPO(preset string) train.PPOConfig {
	switch preset {
	case "paper":
		return train.PaperPPO()
	case "small":
		return train.SmallPPO()
	}
	return train.MiniPPO()
}

func planSFT(preset string) train.SFTConfig {
	switch preset {
	case "paper":
		return train.PaperSFT()
	case "small":
		return train.SmallSFT()
	}
	return train.MiniSFT()
}

// ppo is the preset's configuration with the options' settings.
func (o planOptions) ppo() train.PPOConfig {
	c := planPPO(o.Preset)
	c.Compute, c.Critic, c.PromptsPerStep, c.OffloadFrozen = o.Compute, o.Critic, o.PromptsPerStep, o.OffloadFrozen
	return c
}

// check reports wrong settings.
func (o planOptions) check() error {
	if o.Stage != "ppo" && o.Stage != "sft" {
		return unknownName("stage", o.Stage, []string{"ppo", "sft"})
	}
	for _, f := range []struct {
		name  string
		value int
	}{{"calls", o.Calls}, {"response-tokens", o.ResponseTokens}, {"rows", o.Rows}, {"context-tokens", o.ContextTokens}, {"prompts-per-step", o.PromptsPerStep}} {
		if f.value < 1 {
			return fmt.Errorf("%s is %d, want at least 1", f.name, f.value)
		}
	}
	for _, gb := range o.DeviceMemory {
		if !(gb > 0) {
			return fmt.Errorf("device-memory has %g, want more than 0", gb)
		}
	}
	return o.ppo().Validate()
}

func (o planOptions) workload() train.Workload {
	w := train.Workload{
		PackedTokens: o.Length, PrefixTokens: o.PrefixTokens, Calls: o.Calls, ResponseTokens: o.ResponseTokens,
		Trajectories: o.PromptsPerStep, SampledRows: o.Rows, ContextTokens: o.ContextTokens,
	}
	if w.PackedTokens == 0 {
		w.PackedTokens = planPPO(o.Preset).TokensPerMicrobatch
		if o.Stage == "sft" {
			sft := planSFT(o.Preset)
			w.PackedTokens = cmp.Or(sft.TokensPerMicrobatch, sft.TokensPerStep) // 0: the whole step at once
		}
	}
	return w
}

// planned is a model of a plan.
type planned struct {
	Name       string `json:"name"`
	Parameters int64  `json:"parameters"`

	config model.Config
}

func planModel(name string) (*planned, error) {
	c, err := shapeOf(name)
	if err != nil {
		return nil, err
	}
	return &planned{name, train.Parameters(c), c}, nil
}

// planReport is what bench plan prints.
type planReport struct {
	Preset   string         `json:"preset"`
	Stage    string         `json:"stage"`
	Student  *planned       `json:"student"`
	Teacher  *planned       `json:"teacher"`
	Compute  train.Compute  `json:"compute"`
	Critic   string         `json:"critic,omitempty"`
	Workload train.Workload `json:"workload"`
	train.MemoryPlan
	Activations struct {
		Kept         int64 `json:"kept"`         // bytes without gradient checkpointing
		Checkpointed int64 `json:"checkpointed"` // with it
	} `json:"activations"`
	Phases  map[train.Phase]int64 `json:"phases"` // bytes
	Devices []planDevice          `json:"devices"`
}

// planDevice says how a plan goes with a device.
type planDevice struct {
	GB       float64        `json:"gb"`
	Bytes    int64          `json:"bytes"`
	Phase    train.Phase    `json:"phase"` // that needs most
	Peak     int64          `json:"peak"`
	Fits     bool           `json:"fits"`
	Each     []train.Advice `json:"each,omitempty"`
	Together *train.Advice  `json:"together,omitempty"`
}

func runPlan(out io.Writer, o planOptions) error {
	r, err := makePlan(o)
	if err != nil {
		return err
	}
	w := r.Workload
	if need := w.PrefixTokens + w.Calls*w.ResponseTokens; o.Stage == "ppo" && need > w.PackedTokens {
		note("a trajectory of %d calls with %d sampled tokens each is longer than a microbatch of %d and stands alone in one: reckon with --length %d", w.Calls, w.ResponseTokens, w.PackedTokens, need)
	}
	if o.JSON {
		return encodeJSON(out, r)
	}
	r.print(out)
	return nil
}

func makePlan(o planOptions) (*planReport, error) {
	if err := o.check(); err != nil {
		return nil, err
	}
	r := &planReport{Preset: o.Preset, Stage: o.Stage, Compute: o.Compute, Workload: o.workload(), Phases: map[train.Phase]int64{}}
	var err error
	if r.Student, err = planModel(o.Student); err != nil {
		return nil, err
	}
	var teacher *model.Config
	if o.Stage == "ppo" {
		r.Critic = o.Critic
		if o.Teacher != train.TeacherNone {
			if r.Teacher, err = planModel(o.Teacher); err != nil {
				return nil, err
			}
			teacher = &r.Teacher.config
		}
	}
	plan := func(checkpoint bool) train.MemoryPlan {
		c, s := o.ppo(), planSFT(o.Preset)
		c.CheckpointLayers, s.Compute = checkpoint, o.Compute
		s.CheckpointLayers = checkpoint
		if o.Stage == "sft" {
			return train.PlanSFT(s, r.Student.config, r.Workload)
		}
		return train.PlanPPO(c, r.Student.config, teacher, r.Workload)
	}
	r.MemoryPlan = plan(o.CheckpointLayers)
	r.Activations.Kept, r.Activations.Checkpointed = activations(plan(false)), activations(plan(true))
	for _, phase := range train.Phases {
		if n := r.In(phase); n > 0 {
			r.Phases[phase] = n
		}
	}
	for _, gb := range o.DeviceMemory {
		d := planDevice{GB: gb, Bytes: int64(gb * 1e9)}
		d.Phase, d.Peak = r.Peak()
		if d.Fits = d.Peak <= d.Bytes; !d.Fits && o.Stage == "ppo" {
			each, together := train.Advise(o.ppo(), r.Student.config, teacher, r.Workload, d.Bytes)
			d.Each, d.Together = each, &together
		}
		r.Devices = append(r.Devices, d)
	}
	return r, nil
}

// activations sums up what a microbatch's layers keep, in bytes.
func activations(p train.MemoryPlan) int64 {
	sum := int64(0)
	for _, part := range p.Parts {
		if strings.HasPrefix(part.Name, "activations") || strings.HasPrefix(part.Name, "compute copies") {
			sum += part.Bytes
		}
	}
	return sum
}
