package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/memopd/memopd-bench/model"
	"github.com/memopd/memopd-bench/results"
	"github.com/memopd/memopd-bench/torch"
	"github.com/memopd/memopd-bench/train"
)

// checkOptions holds the settings of bench check-device.
type checkOptions struct {
	Device     string  `flag:"device" help:"what is checked: cuda, cuda:N, or cpu to see the check itself work"`
	Shape      string  `flag:"shape" help:"a published shape by name, or a folder with a config.json: its weights are drawn at random"`
	Prefix     int     `flag:"prefix-tokens" help:"tokens of a task's prefix"`
	Calls      int     `flag:"calls" help:"calls of a trajectory"`
	Response   int     `flag:"response-tokens" help:"sampled tokens of a call"`
	Obs        int     `flag:"observation-tokens" help:"tokens of a call's observation"`
	RCECount   int     `flag:"rce-trajectories" help:"trajectories whose packed log-probs are compared with independent calls"`
	Rows       []int   `flag:"rows" help:"numbers of requests decoded at once"`
	Context    int     `flag:"context-tokens" help:"context of a decoded request"`
	NewTokens  int     `flag:"new-tokens" help:"tokens decoded for a request"`
	Repeats    int     `flag:"repeats" help:"updates that are timed, after one that is not"`
	Chunk      int     `flag:"logits-per-chunk" help:"prediction positions whose logits are made at once"`
	PeakTFLOPS float64 `flag:"peak-tflops" help:"what bf16 matrix products reach on the device, in 10^12 operations a second; the share of it is reported"`
	Seed       uint64  `flag:"seed" help:"seed of weights and trajectories"`
	Threads    int     `flag:"threads" help:"threads of libtorch on the CPU; 0: one a core"`
	Out        string  `flag:"out" help:"file that the results are written to as JSON, after each part anew; empty: none"`
}

func newCheckDevice() *cobra.Command {
	var o checkOptions
	defaults := func() error {
		o = checkOptions{
			Device: "cuda", Shape: "Qwen2.5-3B", Prefix: 600, Calls: 6, Response: 400, Obs: 900, RCECount: 2,
			Rows: []int{1, 16, 64}, Context: 1024, NewTokens: 64, Repeats: 3, Chunk: 1024, PeakTFLOPS: 790,
		}
		return nil
	}
	return command(&cobra.Command{
		Use:   "check-device",
		Short: "Check a device: parity with the CPU, RCE, speed of decoding and of updates",
		Long: `Compares operators and a small model on the device with the CPU, then draws
random weights of a published shape and measures on them: rollout context
equivalence in f32 and bf16, tokens a second of decoding and of training updates,
and the share of the device's bf16 products that updates reach. scripts/gpu-check.sh
runs it where a GPU is.`,
		Example: `  bench check-device --device cuda --out check.json
  bench check-device --device cpu --shape presets/mini/student --calls 3 --rows 2`,
	}, &o, nil, defaults, func(cmd *cobra.Command, _ []string) error { return runCheckDevice(cmd.OutOrStdout(), o) })
}

// checkReport is what bench check-device writes.
type checkReport struct {
	Device     string         `json:"device"`
	Libtorch   string         `json:"libtorch"`
	Shape      string         `json:"shape"`
	Parameters int64          `json:"parameters"`
	Parity     []parityResult `json:"parity"`
	RCE        []rceResult    `json:"rce"`
	Decode     []decodeResult `json:"decode"`
	Update     []updateResult `json:"update"`
	Errors     []string       `json:"errors"`  // of parts that failed
	Seconds    []partSeconds  `json:"seconds"` // of each part
}

type partSeconds struct {
	Part    string  `json:"part"`
	Seconds float64 `json:"seconds"`
}

// deviceCheck is a check under way.
type deviceCheck struct {
	checkOptions
	out    io.Writer
	report checkReport
	config model.Config
}

func runCheckDevice(out io.Writer, o checkOptions) error {
	config, err := shapeOf(o.Shape)
	if err != nil {
		return err
	}
	if o.Calls < 1 || o.Response < 1 || o.Prefix < 1 || o.Obs < 0 || o.Repeats < 1 || o.NewTokens < 2 || o.Context < 1 {
		return errors.New("check-device: prefix, calls, response, context and repeats must be at least 1, new tokens at least 2")
	}
	if err := startTorch(o.Threads); err != nil {
		return err
	}
	config.EOSTokenID = nil // decoding goes on to the last token
	k := &deviceCheck{checkOptions: o, out: out, config: config}
	k.report = checkReport{Device: o.Device, Libtorch: libtorch(), Shape: o.Shape, Parameters: train.Parameters(config)}
	k.part("operators", k.operators)
	k.part("small model", k.smallModel)
	k.part("large model", k.largeModel)
	if n := len(k.report.Errors); n > 0 {
		return fmt.Errorf("check-device: %d parts failed, the first: %s", n, k.report.Errors[0])
	}
	return nil
}

// part runs one part. What fails is noted, and the others go on.
func (k *deviceCheck) part(name string, run func() error) {
	begin := time.Now()
	err := torch.Try(func() error {
		s := torch.NewScope()
		defer s.Close()
		return run()
	})
	seconds := time.Since(begin).Seconds()
	k.report.Seconds = append(k.report.Seconds, partSeconds{name, seconds})
	fmt.Fprintf(k.out, "%s: %.1f s\n", name, seconds)
	if err != nil {
		k.report.Errors = append(k.report.Errors, name+": "+err.Error())
		fmt.Fprintf(k.out, "%s FAILED: %v\n", name, err)
	}
	if k.Out != "" {
		if err := results.WriteJSON(k.Out, k.report); err != nil {
			fmt.Fprintln(os.Stderr, err)
		}
	}
}

// compute is the placement's settings in a type.
func (k *deviceCheck) compute(dtype string, checkpoint bool) train.Compute {
	return train.Compute{Device: k.Device, DType: dtype, CheckpointLayers: checkpoint, LogitsPerChunk: k.Chunk}
}

// largeModel draws weights of the shape and measures on them.
func (k *deviceCheck) largeModel() error {
	torch.Synchronize(k.Device) // fails without such a device, before the weights take their time
	host, err := model.New(k.config, k.Seed)
	if err != nil {
		return err
	}
	policy := host.CloneTo(k.compute(train.BFloat16, false).Trained())
	host.Free()
	defer policy.Free()
	k.part("RCE", func() error { return k.rce(policy) })
	k.part("decoding", func() error { return k.decode(policy) })
	k.part("updates", func() error { return k.updates(policy) })
	return nil
}
