package train

import (
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"

	"github.com/memopd/memopd-bench/align"
	"github.com/memopd/memopd-bench/model"
)

// published are the shapes of published models, and their parameters as counted
// from the files' tensors.
var published = []struct {
	name   string
	config model.Config
	want   int64
}{
	{"Qwen2.5-0.5B", qwen25(896, 24, 14, 2, 4864, 151936, true), 494_032_768},
	{"Qwen2.5-1.5B", qwen25(1536, 28, 12, 2, 8960, 151936, true), 1_543_714_304},
	{"Qwen2.5-3B", qwen25(2048, 36, 16, 2, 11008, 151936, true), 3_085_938_688},
	{"Qwen2.5-7B", qwen25(3584, 28, 28, 4, 18944, 152064, false), 7_615_616_512},
	{"SmolLM2-135M", model.Config{
		ModelType: model.Llama, HiddenSize: 576, NumHiddenLayers: 30, NumAttentionHeads: 9, NumKeyValueHeads: 3,
		HeadDim: 64, IntermediateSize: 1536, VocabSize: 49152, TieWordEmbeddings: true,
	}, 134_515_008},
}

func qwen25(hidden, layers, heads, kv, ffn, vocab int, tied bool) model.Config {
	return model.Config{
		ModelType: model.Qwen2, HiddenSize: hidden, NumHiddenLayers: layers, NumAttentionHeads: heads,
		NumKeyValueHeads: kv, HeadDim: hidden / heads, IntermediateSize: ffn, VocabSize: vocab, TieWordEmbeddings: tied,
	}
}

func TestParametersOfPublishedModels(t *testing.T) {
	for _, m := range published {
		if got := Parameters(m.config); got != m.want {
			t.Errorf("%s has %d parameters, want %d", m.name, got, m.want)
		}
	}
}

// The count is that of a decoder's tensors, for every kind of bias, norm and head.
func TestParametersEqualTheDecoders(t *testing.T) {
	for _, kind := range []string{model.Llama, model.Qwen2, model.Qwen3} {
		for i := range 8 {
			c := tinyModel(t, 1).Config
			c.ModelType, c.TieWordEmbeddings = kind, i&1 == 0
			c.AttentionBias = i&2 != 0 && kind != model.Qwen2
			c.MLPBias = i&4 != 0 && kind == model.Llama
			d, err := model.New(c, 1)
			if err != nil {
				t.Fatal(err)
			}
			if got := Parameters(c); got != int64(d.NumParameters()) {
				t.Errorf("%s, tied %v, biases %v and %v: %d parameters, the decoder has %d",
					kind, c.TieWordEmbeddings, c.AttentionBias, c.MLPBias, got, d.NumParameters())
			}
			d.Free()
		}
	}
}

// The paper's pair by hand, in bytes: 3,085,938,688 and 7,615,616,512 parameters.
func TestPaperPlanByHand(t *testing.T) {
	student, teacher := published[2].config, published[3].config
	w := Workload{PackedTokens: 16384, PrefixTokens: 600, Calls: 6, ResponseTokens: 1000, Trajectories: 128, SampledRows: 128, ContextTokens: 5096}
	c := PaperPPO()
	c.OffloadFrozen = false
	p := PlanPPO(c, student, &teacher, w)
	for name, want := range map[string]int64{
		"student: f32 weights":                    12_343_754_752,
		"student: AdamW moments":                  24_687_509_504,
		"student: gradients":                      12_343_754_752,
		"sampling: weights made ready":            36 * 77_076_992 * 2, // of the layers, bf16
		"sampling: prefixes kept":                 1 << 30,
		"sampling: logits":                        128 * 151936 * 4,
		"teacher: f32 head":                       152064 * 3584 * 4,
		"reference: weights":                      6_171_877_376,
		"teacher: weights":                        15_231_233_024,
		"teacher: last hidden states of the step": 128 * 6 * 1000 * 3584 * 4,
		"critic: f32 weights":                     12_343_754_752 + 2049*4,
		"critic: AdamW moments":                   24_687_509_504 + 2049*8,
		// 36 layers of keys and values, 2 heads of 128, bf16.
		"sampling: keys and values":   128 * 5096 * 36 * 2 * 2 * 128 * 2,
		"activations: layers' inputs": 37 * 16384 * 2048 * 2,
		// Student's and teacher's logits, the head's gradient, and the hidden
		// states' in two copies.
		"logits of a chunk": 2*1024*151936*4 + 151936*2048*4 + 2*6000*2048*4,
	} {
		got := int64(-1)
		for _, part := range p.Parts {
			if part.Name == name {
				got = part.Bytes
			}
		}
		if got != want {
			t.Errorf("%s: %d bytes, want %d", name, got, want)
		}
	}
	if phase, _ := p.Peak(); phase != PhaseUpdate {
		t.Errorf("the peak is in %s, want %s", phase, PhaseUpdate)
	}
	sum := int64(0)
	for _, part := range p.Parts {
		if strings.HasPrefix(part.Name, "sampling") {
			sum += part.Bytes
		}
	}
	if got := p.In(PhaseSample) - sum; got != 3*12_343_754_752+6_171_877_376+15_231_233_024+3*(12_343_754_752+2049*4) {
		t.Errorf("beside sampling itself %d bytes live while it samples", got)
	}
}

// Each change that the advice knows saves where there is something to save, and
// what it proposes together fits, without a change that it could do without.
func TestAdvice(t *testing.T) {
	student, teacher := published[2].config, published[3].config
	w := Workload{PackedTokens: 16384, PrefixTokens: 600, Calls: 6, ResponseTokens: 1000, Trajectories: 128, SampledRows: 200, ContextTokens: 5096}
	lavish := PaperPPO()
	lavish.CheckpointLayers, lavish.OffloadFrozen, lavish.DType = false, false, Float32
	for _, s := range Savings {
		c, x := lavish, w
		s.Apply(&c, &x)
		less := false
		for _, phase := range Phases {
			less = less || PlanPPO(c, student, &teacher, x).In(phase) < PlanPPO(lavish, student, &teacher, w).In(phase)
		}
		if !less {
			t.Errorf("%s saves nothing", s.Name)
		}
	}
	for _, gib := range []int64{74, 131, 500} {
		_, together := Advise(lavish, student, &teacher, w, gib<<30)
		if !together.Fits || together.Peak > gib<<30 {
			t.Fatalf("%d GiB: %+v", gib, together)
		}
		for i := range together.Changes {
			c, x := lavish, w
			for j, name := range together.Changes {
				for _, s := range Savings {
					if s.Name == name && j != i {
						s.Apply(&c, &x)
					}
				}
			}
			if _, bytes := PlanPPO(c, student, &teacher, x).Peak(); bytes <= gib<<30 {
				t.Errorf("%d GiB: fits without %s", gib, together.Changes[i])
			}
		}
	}
	each, together := Advise(lavish, student, &teacher, w, 1<<30)
	if together.Fits || len(each) == 0 {
		t.Errorf("one GiB: %d single changes, together %+v", len(each), together)
	}
}

// measured is a model and a microbatch whose memory is measured: a prefix and
// calls of equal length, the last quarter of each sampled.
func measured() (model.Config, *align.Packed, Workload) {
	config := model.Config{
		ModelType: model.Llama, VocabSize: 4096, HiddenSize: 256, IntermediateSize: 704, NumHiddenLayers: 8,
		NumAttentionHeads: 8, NumKeyValueHeads: 4, HeadDim: 32, MaxPositionEmbeddings: 4096,
		RMSNormEps: 1e-6, RopeTheta: 10000, TieWordEmbeddings: true,
	}
	w := Workload{PackedTokens: 2100, PrefixTokens: 100, Calls: 5, ResponseTokens: 100}
	own := (w.PackedTokens - w.PrefixTokens) / w.Calls
	rng := rand.New(rand.NewPCG(1, 1))
	p := &align.Packed{TrajectoryID: "measured", PrefixLength: w.PrefixTokens}
	for i := range w.PackedTokens {
		p.IDs = append(p.IDs, rng.Int32N(int32(config.VocabSize)))
		position := i
		if i >= w.PrefixTokens {
			position = w.PrefixTokens + (i-w.PrefixTokens)%own
		}
		p.Positions = append(p.Positions, int32(position))
	}
	for k := range w.Calls {
		start := w.PrefixTokens + k*own
		p.Blocks = append(p.Blocks, align.Block{Call: k, Start: start, End: start + own})
		for i := start + own - w.ResponseTokens; i < start+own; i++ {
			p.Actions = append(p.Actions, align.Action{Call: k, ID: p.IDs[i], Index: i, Predict: i - 1})
		}
	}
	return config, p, w
}

const measureChild = "MEMOPD_MEASURE"

// measureBackward prints how far a forward and backward pass raises the memory of
// this process.
func measureBackward(t *testing.T, checkpointing bool) {
	c := Compute{Device: "cpu", DType: Float32, CheckpointLayers: checkpointing, LogitsPerChunk: 128}
	oneThread(t)
	config, packed, _ := measured()
	d, err := model.New(config, 1)
	if err != nil {
		t.Fatal(err)
	}
	defer d.Free()
	if err := os.WriteFile("/proc/self/clear_refs", []byte("5"), 0); err != nil {
		t.Fatal(err)
	}
	before := processKiB(t, "VmRSS")
	c.BackwardNLL(d, []*align.Packed{packed}, 1)
	fmt.Printf("measured %d\n", (processKiB(t, "VmHWM")-before)<<10)
}

// processKiB is a line of /proc/self/status.
func processKiB(t *testing.T, name string) int64 {
	t.Helper()
	data, err := os.ReadFile("/proc/self/status")
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range strings.Split(string(data), "\n") {
		if rest, ok := strings.CutPrefix(line, name+":"); ok {
			n, err := strconv.ParseInt(strings.Fields(rest)[0], 10, 64)
			if err != nil {
				t.Fatal(err)
			}
			return n
		}
	}
	t.Fatalf("/proc/self/status has no %s", name)
	return 0
}

// What a forward and backward pass takes on the CPU, as the kernel sees it, is
// what the plan says, within a fifth. A process of its own is measured.
func TestPlanEqualsMeasured(t *testing.T) {
	if kind := os.Getenv(measureChild); kind != "" {
		measureBackward(t, kind == "true")
		return
	}
	if f, err := os.OpenFile("/proc/self/clear_refs", os.O_WRONLY, 0); err != nil {
		t.Skipf("the peak of this process cannot be measured: %v", err)
	} else {
		f.Close()
	}
	config, _, w := measured()
	for _, again := range []bool{false, true} {
		c := PaperSFT()
		c.Compute = Compute{Device: "cpu", DType: Float32, CheckpointLayers: again, LogitsPerChunk: 128}
		want := int64(0)
		for _, part := range PlanSFT(c, config, w).Parts {
			if part.Name != "student: f32 weights" && part.Name != "student: AdamW moments" && part.Phases[0] == PhaseUpdate {
				want += part.Bytes
			}
		}
		child := exec.Command(os.Args[0], "-test.run=^TestPlanEqualsMeasured$")
		// With a fixed threshold, what is freed goes back to the kernel at once.
		child.Env = append(os.Environ(), measureChild+"="+strconv.FormatBool(again), "MALLOC_MMAP_THRESHOLD_=1000000")
		out, err := child.CombinedOutput()
		if err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		_, rest, ok := strings.Cut(string(out), "measured ")
		got, err := strconv.ParseInt(strings.Fields(rest + " x")[0], 10, 64)
		if !ok || err != nil {
			t.Fatalf("the child says %s", out)
		}
		t.Logf("checkpointing %v: measured %.1f MiB, planned %.1f MiB", again, float64(got)/(1<<20), float64(want)/(1<<20))
		if ratio := float64(got) / float64(want); ratio < 0.8 || ratio > 1.2 {
			t.Errorf("checkpointing %v: measured %.1f MiB, planned %.1f MiB", again, float64(got)/(1<<20), float64(want)/(1<<20))
		}
	}
}
