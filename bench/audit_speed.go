package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/memopd/memopd-bench/eval/audit"
	"github.com/memopd/memopd-bench/model"
	"github.com/memopd/memopd-bench/results"
	"github.com/memopd/memopd-bench/torch"
)

// auditSpeedOptions holds the settings of bench audit speed.
type auditSpeedOptions struct {
	Model        string  `flag:"model" help:"random weights of a published shape or of 8x384 (8 layers of width 384), or a model: a folder, a GGUF file, mini/student"`
	Shape        string  `flag:"shape" help:"how calls hang together: memory, growing (each sees all before it), samples (memory; the trajectories are of one task)"`
	Prefix       []int   `flag:"prefix" help:"tokens of the task prefix; with lists every combination is measured"`
	Calls        []int   `flag:"calls" help:"calls of a trajectory"`
	CallTokens   []int   `flag:"call-tokens" help:"tokens of a call after the prefix, its output included; growing: that it adds"`
	ActionShare  float64 `flag:"action-share" max:"1" help:"share of a call's tokens that were sampled, the last ones"`
	Ragged       float64 `flag:"ragged" max:"1" help:"calls have between 1 less this and 1 times their tokens"`
	Trajectories int     `flag:"trajectories" help:"in one forward pass"`
	Rounds       int     `flag:"rounds" help:"timed updates a way, the ways in turns"`
	Warmup       int     `flag:"warmup" help:"rounds before them that do not count"`
	Tolerance    float64 `flag:"tolerance" help:"how far a way's loss and gradient may be from the rows', relative; beyond it nothing is timed"`
	Checkpoint   bool    `flag:"gradient-checkpointing" help:"run layers again in the backward pass, in all ways"`
	Memory       bool    `flag:"memory" help:"measure memory too, each way in a process of its own (Linux)"`
	MemoryOf     string  `flag:"memory-of" help:"print the bytes that an update in this way takes, and end: what --memory starts"`
	Threads      int     `flag:"threads" help:"threads of libtorch; 0: one a core"`
	Seed         uint64  `flag:"seed" help:"seed of weights and ids"`
	Out          string  `flag:"out" help:"file name without ending: the table is written to .md, all figures to .json"`
	JSON         bool    `flag:"json" help:"print the rows as JSON on standard output instead of a table"`
}

func newAuditSpeed() *cobra.Command {
	var o auditSpeedOptions
	defaults := func() error {
		o = auditSpeedOptions{
			Model: shape8x384, Shape: "memory", Prefix: []int{400}, Calls: []int{4}, CallTokens: []int{250}, ActionShare: 0.25,
			Trajectories: 1, Rounds: 5, Warmup: 1, Tolerance: 1e-5, Memory: true, Threads: 1,
		}
		return nil
	}
	return command(&cobra.Command{
		Use:   "speed",
		Short: "Time the actor update: padded rows, concatenated rows, packed with a dense mask, packed",
		Long: `Times an actor update (forward, PPO's loss on the sampled tokens, backward) in four ways:
one padded row a call, the rows end to end, packed under a dense mask, and packed with
attention in blocks, as training does it. First it checks that all four have the same
loss and gradient; where they have not, it says so and times nothing.

The ideal is the ratio of the matrix products' FLOPs. Times are processor seconds, which
other programs disturb less than the clock; with several threads read the clock's.`,
		Example: `  bench audit speed
  bench audit speed --prefix 100,400,1600 --calls 2,4,8
  bench audit speed --model SmolLM2-135M --shape growing --rounds 3`,
	}, &o, nil, defaults, func(cmd *cobra.Command, _ []string) error {
		return runAuditSpeed(cmd.Context(), cmd.OutOrStdout(), o)
	})
}

const shape8x384 = "8x384"

// speedModel draws or loads the model, float32 on the CPU.
func speedModel(name string, seed uint64) (*model.Decoder, error) {
	if name == shape8x384 {
		return model.New(model.Config{
			ModelType: model.Llama, VocabSize: 16384, HiddenSize: 384, IntermediateSize: 1024, NumHiddenLayers: 8,
			NumAttentionHeads: 6, NumKeyValueHeads: 2, HeadDim: 64, MaxPositionEmbeddings: 32768,
			RMSNormEps: 1e-5, RopeTheta: 10000, TieWordEmbeddings: true,
		}, seed)
	}
	known := []string{shape8x384}
	for _, p := range published {
		if p.name == name {
			return model.New(p.config, seed)
		}
		known = append(known, p.name)
	}
	d, _, err := loadAudited(&name, model.Placement{})
	if err != nil {
		return nil, fmt.Errorf("%w (shapes with random weights: %s)", err, strings.Join(known, ", "))
	}
	return d, nil
}

// shapes are the combinations of the options' lists.
func (o auditSpeedOptions) shapes() (all []audit.SpeedShape) {
	for _, prefix := range o.Prefix {
		for _, calls := range o.Calls {
			for _, tokens := range o.CallTokens {
				all = append(all, audit.SpeedShape{
					Shape: o.Shape, Prefix: prefix, Calls: calls, CallTokens: tokens,
					ActionShare: o.ActionShare, Ragged: o.Ragged, Trajectories: o.Trajectories,
				})
			}
		}
	}
	return all
}

func runAuditSpeed(ctx context.Context, w io.Writer, o auditSpeedOptions) error {
	shapes := o.shapes()
	if len(shapes) == 0 || o.Rounds < 1 || o.Warmup < 0 {
		return fmt.Errorf("%d shapes, %d rounds, %d for warm-up: want at least 1, 1 and 0", len(shapes), o.Rounds, o.Warmup)
	}
	if err := startTorch(o.Threads); err != nil {
		return err
	}
	d, err := speedModel(o.Model, o.Seed)
	if err != nil {
		return err
	}
	defer d.Free()
	options := func(s audit.SpeedShape) audit.SpeedOptions {
		return audit.SpeedOptions{Model: d, Shape: s, Rounds: o.Rounds, Warmup: o.Warmup, Tolerance: o.Tolerance, Clip: audit.DefaultClipEpsilon, Seed: o.Seed, Checkpoint: o.Checkpoint}
	}
	if o.MemoryOf != "" {
		n, err := audit.SpeedMemory(options(shapes[0]), o.MemoryOf)
		if err == nil {
			_, err = fmt.Fprintln(w, n)
		}
		return err
	}
	title := fmt.Sprintf("Actor update of %s (%d parameters): libtorch %s, %d threads", o.Model, d.NumParameters(), libtorch(), torch.NumThreads())
	note("%s", title)
	manifest := results.NewManifest(json.RawMessage(mustConfigJSON(&o)), libtorch())
	var all []*audit.SpeedResult
	for _, s := range shapes {
		var r *audit.SpeedResult
		if err := torch.Try(func() (err error) { r, err = audit.Speed(ctx, options(s)); return err }); err != nil {
			return err
		}
		if o.Memory {
			if err := o.memory(ctx, r); err != nil {
				return err
			}
		}
		all = append(all, r)
		note("prefix %d, %d calls of %d tokens: %.2fx, ideal %.2fx", s.Prefix, s.Calls, s.CallTokens, r.Ratio(audit.SpeedPacked), r.Ideal(audit.SpeedPacked))
	}
	return printSpeed(w, o, manifest, audit.SpeedTable(title, all), all)
}

// memory measures every way in a process of its own.
func (o auditSpeedOptions) memory(ctx context.Context, r *audit.SpeedResult) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	for i := range r.Ways {
		child := o
		child.Prefix, child.Calls, child.CallTokens = []int{r.Shape.Prefix}, []int{r.Shape.Calls}, []int{r.Shape.CallTokens}
		child.MemoryOf, child.Out = r.Ways[i].Way, ""
		args := []string{"audit", "speed"}
		for _, f := range fields(&child) {
			args = append(args, "--"+f.name+"="+f.String())
		}
		cmd := exec.CommandContext(ctx, self, args...)
		cmd.Env = append(os.Environ(), "MALLOC_MMAP_THRESHOLD_=65536") // see audit.SpeedMemory
		var stderr bytes.Buffer
		cmd.Stderr = &stderr
		out, err := cmd.Output()
		if err != nil {
			return fmt.Errorf("memory of %s: %w: %s", r.Ways[i].Way, err, lastLine(stderr.String()))
		}
		if r.Ways[i].Memory, err = strconv.ParseInt(strings.TrimSpace(string(out)), 10, 64); err != nil {
			return fmt.Errorf("memory of %s: %w", r.Ways[i].Way, err)
		}
	}
	return nil
}

func lastLine(text string) string {
	text = strings.TrimSpace(text)
	return text[strings.LastIndexByte(text, '\n')+1:]
}

// speedRecord is the file with all figures.
type speedRecord struct {
	*results.Manifest
	Model   string               `json:"model"`
	Threads int                  `json:"threads"`
	Rows    []audit.SpeedRow     `json:"rows"`
	Results []*audit.SpeedResult `json:"results"`
}

// printSpeed prints the table, or with --json the rows, and writes the files.
func printSpeed(w io.Writer, o auditSpeedOptions, m *results.Manifest, t *results.Table, all []*audit.SpeedResult) error {
	rows := make([]audit.SpeedRow, len(all))
	for i, r := range all {
		rows[i] = r.Row()
	}
	if o.Out != "" {
		if err := writeSpeed(o, m, t, speedRecord{m, o.Model, torch.NumThreads(), rows, all}); err != nil {
			return err
		}
	}
	if o.JSON {
		return encodeJSON(w, rows)
	}
	return t.WriteText(w)
}

func writeSpeed(o auditSpeedOptions, m *results.Manifest, t *results.Table, record speedRecord) error {
	if err := os.MkdirAll(filepath.Dir(o.Out), 0o755); err != nil {
		return err
	}
	var b bytes.Buffer
	if err := t.WriteMarkdown(&b); err != nil {
		return err
	}
	fmt.Fprintf(&b, "\n    bench %s\n\ncommit %s, %s, %d cores, %s\n", strings.Join(m.Command[1:], " "), m.Commit, m.Machine.CPU, m.Machine.Cores, m.Machine.OS)
	if err := os.WriteFile(o.Out+".md", b.Bytes(), 0o644); err != nil {
		return err
	}
	m.Ended = time.Now().UTC()
	return results.WriteJSON(o.Out+".json", record)
}
