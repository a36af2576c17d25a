package main

import (
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/memopd/memopd-bench/model"
	"github.com/memopd/memopd-bench/model/tokenizer"
	"github.com/memopd/memopd-bench/train"
)

// modelShowOptions holds the settings of bench model show.
type modelShowOptions struct {
	Preset string `flag:"preset" help:"whose settings the memory of training is for: paper, small or mini"`
	Length int    `flag:"length" help:"packed tokens of a microbatch, for the memory of training"`
	JSON   bool   `flag:"json" help:"print JSON"`
}

func newModelShow() *cobra.Command {
	var o modelShowOptions
	defaults := func() error {
		o = modelShowOptions{Preset: "paper", Length: 8192}
		return nil
	}
	return command(&cobra.Command{
		Use:   "show FOLDER|FILE.gguf|NAME",
		Args:  cobra.ExactArgs(1),
		Short: "Show what a checkpoint is: sizes, types, tokenizer, template, memory of training",
		Long: `Shows what a checkpoint says of itself, without loading its weights: architecture,
parameters and their types, tokenizer, chat template, the device memory that
training takes (bench plan has it part by part). What cannot be used here is named,
and the rest shown. A NAME is a model that was fetched; nothing is downloaded.`,
		Example: `  bench model show SmolLM2-135M-Instruct
  bench model show models/my-checkpoint --preset small --length 4096 --json`,
	}, &o, nil, defaults, func(cmd *cobra.Command, args []string) error {
		return runModelShow(cmd.OutOrStdout(), o, args[0])
	})
}

// modelReport is what bench model show prints.
type modelReport struct {
	*model.Description
	Memory []trainingMemory `json:"training_memory"`
}

// trainingMemory is what a stage of training takes of its device.
type trainingMemory struct {
	Preset string      `json:"preset"`
	Stage  string      `json:"stage"`
	Length int         `json:"length"` // packed tokens of a microbatch
	Phase  train.Phase `json:"phase"`  // that takes most
	Bytes  int64       `json:"bytes"`
}

func runModelShow(w io.Writer, o modelShowOptions, name string) error {
	if o.Length < 1 {
		return fmt.Errorf("length is %d, want at least 1", o.Length)
	}
	settings, err := planDefaults(o.Preset)
	if err != nil {
		return err
	}
	settings.Length = o.Length
	path, err := locateModel(name)
	if err != nil {
		return err
	}
	d, err := model.Describe(path)
	if err != nil {
		return err
	}
	r := modelReport{Description: d}
	if d.Tokenizer != nil {
		if _, err := model.LoadTokenizer(path); err != nil {
			d.Problems = append(d.Problems, fmt.Sprintf("tokenizer: %v", err))
		}
	}
	if d.Config != nil {
		r.Memory = memoryOf(*d.Config, settings)
	}
	if o.JSON {
		err = encodeJSON(w, r)
	} else {
		r.print(w)
	}
	if err == nil && len(d.Problems) > 0 {
		return fmt.Errorf("%s cannot be used: %s", path, strings.Join(d.Problems, "; "))
	}
	return err
}

// memoryOf reckons both stages with a preset's settings, PPO without a teacher.
func memoryOf(c model.Config, settings planOptions) []trainingMemory {
	var out []trainingMemory
	for _, p := range []struct {
		stage string
		plan  train.MemoryPlan
	}{
		{"sft", train.PlanSFT(planSFT(settings.Preset), c, settings.workload())},
		{"ppo", train.PlanPPO(settings.ppo(), c, nil, settings.workload())},
	} {
		phase, bytes := p.plan.Peak()
		out = append(out, trainingMemory{settings.Preset, p.stage, settings.Length, phase, bytes})
	}
	return out
}

func (r modelReport) print(w io.Writer) {
	line := func(name, format string, args ...any) {
		fmt.Fprintf(w, "%-15s %s\n", name, fmt.Sprintf(format, args...))
	}
	bytes := int64(0)
	for _, f := range r.Files {
		bytes += f.Bytes
	}
	line("path", "%s", r.Path)
	line("weights", "%s, %s, files: %d", r.Format, byteSize(bytes), len(r.Files))
	line("architecture", "%s", orUnknown(r.ModelType))
	if c := r.Config; c != nil {
		line("", "%d layers, hidden %d, feed-forward %d, %d heads and %d for keys of %d", c.NumHiddenLayers, c.HiddenSize, c.IntermediateSize,
			c.NumAttentionHeads, c.NumKeyValueHeads, c.HeadDim)
		line("context", "%d tokens", c.MaxPositionEmbeddings)
	}
	if r.Config != nil && (r.Parameters == 0 || len(r.Problems) > 0) {
		line("parameters", "%d by the configuration, %d in weights that could be read", train.Parameters(*r.Config), r.Parameters)
	} else {
		line("parameters", "%d, of which embeddings %d%s", r.Parameters, r.Embeddings, r.tied())
	}
	var types []string
	for _, t := range r.Types {
		types = append(types, fmt.Sprintf("%s %.1f%% (%d tensors)", t.Type, 100*float64(t.Parameters)/float64(max(1, r.Parameters)), t.Tensors))
	}
	line("types", "%s", orUnknown(strings.Join(types, ", ")))
	r.printTokenizer(line)
	for _, m := range r.Memory {
		line(m.Stage+" memory", "%s at length %d, most in phase %s (preset %s%s)", byteSize(m.Bytes), m.Length, m.Phase, m.Preset, map[bool]string{true: ", no teacher"}[m.Stage == "ppo"])
	}
	for _, p := range r.Problems {
		line("not supported", "%s", p)
	}
}

func (r modelReport) tied() string {
	if r.Config != nil && r.Config.TieWordEmbeddings {
		return " (the head is the same)"
	}
	return ""
}

func (r modelReport) printTokenizer(line func(name, format string, args ...any)) {
	if t := r.Tokenizer; t != nil {
		line("tokenizer", "%s of %s: %d ids, %d merges, %d special", t.Kind, t.In, t.Size, t.Merges, t.Special)
	} else {
		line("tokenizer", "none")
	}
	if r.Rows > 0 {
		line("vocabulary", "%d rows, %d beyond the tokenizer", r.Rows, r.Beyond)
	}
	var ends []string
	for _, id := range r.EOS {
		text := fmt.Sprint(id)
		if r.Tokenizer != nil && r.Tokenizer.Token(id) != "" {
			text += " " + r.Tokenizer.Token(id)
		}
		ends = append(ends, text)
	}
	line("ends at", "%s", orUnknown(strings.Join(ends, ", ")))
	if r.Template == "" {
		line("chat template", "none")
		return
	}
	known := "not recognised"
	if c, ok := tokenizer.DetectChatTemplate(r.Template); ok {
		known = c.Name()
	}
	line("chat template", "%s, %d characters of %s", known, len(r.Template), r.TemplateIn)
}

func orUnknown(text string) string {
	if text == "" {
		return "not known"
	}
	return text
}
