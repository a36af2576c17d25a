package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/memopd/memopd-bench/align"
	"github.com/memopd/memopd-bench/align/aligntest"
	"github.com/memopd/memopd-bench/align/export"
	"github.com/memopd/memopd-bench/model"
	"github.com/memopd/memopd-bench/torch"
	"github.com/memopd/memopd-bench/trace"
	"github.com/memopd/memopd-bench/train"
)

// peerJob is one of scripts/peers/packed_torch.py.
type peerJob struct {
	Batch     string `json:"batch"`
	Model     string `json:"model"`
	Out       string `json:"out"`
	Loss      string `json:"loss"`
	Attention string `json:"attention"`

	name      string
	loss      float64
	gradients map[string][]float64
}

// peersPython finds a Python with torch and transformers.
func peersPython(t *testing.T) string {
	t.Helper()
	python := cmp.Or(os.Getenv("PEERS_PYTHON"), "python3")
	if out, err := exec.Command(python, "-c", "import torch, transformers, safetensors").CombinedOutput(); err != nil {
		t.Skipf("%s has no torch, transformers and safetensors (PEERS_PYTHON names another): %v %s", python, err, out)
	}
	return python
}

// exportModel is a small random llama with grouped heads and a head of its own.
func exportModel(t *testing.T) *model.Decoder {
	t.Helper()
	d, err := model.New(model.Config{
		ModelType: model.Llama, VocabSize: 40, HiddenSize: 32, IntermediateSize: 48, NumHiddenLayers: 3,
		NumAttentionHeads: 4, NumKeyValueHeads: 2, HeadDim: 8, MaxPositionEmbeddings: 512, RMSNormEps: 1e-6, RopeTheta: 10000,
	}, 11)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(d.Free)
	return d
}

// ownRollouts are random trajectories of all context updates whose recorded log-probs
// are the decoder's, moved so far that some ratios are clipped.
func ownRollouts(t *testing.T, d *model.Decoder) []*trace.Trajectory {
	t.Helper()
	rng := rand.New(rand.NewPCG(3, 3))
	var all []*trace.Trajectory
	for i, update := range aligntest.Updates {
		c := aligntest.Small()
		c.Vocab, c.MaxPrefix, c.MaxOutput, c.Update = min(400, d.Config.VocabSize), 20, 15, update
		x := aligntest.Random(rng, c)
		x.ID, x.Reward = fmt.Sprint("rollout", i), 1-float64(i)/2
		rows, err := align.Calls(x, align.Options{})
		if err != nil {
			t.Fatal(err)
		}
		for _, row := range rows {
			s := torch.NewScope()
			torch.NoGrad(func() {
				dist := d.Logits(d.Hidden([]*align.Packed{row})).LogSoftmax(-1)
				for j, a := range row.Actions {
					own := dist.Narrow(0, int64(j), 1).Float32s()[a.ID]
					x.Calls[a.Call].LogProbs[a.Token] = min(0, own+float32(rng.NormFloat64())*0.3)
				}
			})
			s.Close()
		}
		all = append(all, x)
	}
	return all
}

// ownLoss is our loss of a batch, a mean over actions, and the gradients of all weights.
func ownLoss(t *testing.T, d *model.Decoder, b *export.Batch, kind string) (float64, map[string][]float64) {
	t.Helper()
	for _, p := range d.Parameters() {
		p.Tensor.ZeroGrad()
	}
	var rows []*align.Packed
	var ids []int64
	var behaviour, advantages []float32
	for _, s := range b.Sequences {
		rows = append(rows, s.Packed)
		for i, a := range s.Packed.Actions {
			ids = append(ids, int64(a.ID))
			behaviour = append(behaviour, s.Columns[export.LogProb][i])
			advantage := float32(b.Trajectories[s.Trajectories[a.Trajectory]].Reward)
			if column := s.Columns["advantage"]; column != nil {
				advantage = column[i]
			}
			advantages = append(advantages, advantage)
		}
	}
	n := float64(len(ids))
	loss := 0.0
	if kind == "nll" {
		c := train.Compute{Device: "cpu", DType: train.Float32}
		loss = c.BackwardNLL(d, rows, n) / n
	} else {
		s := torch.NewScope()
		dist := d.Logits(d.Hidden(rows)).LogSoftmax(-1)
		logProbs := dist.Gather(-1, torch.FromInt64(ids).Unsqueeze(-1)).Squeeze(-1)
		surrogate := train.ClippedSurrogate(logProbs, torch.FromFloat32(behaviour), torch.FromFloat32(advantages), 0.2)
		if surrogate.ClippedCount == 0 || surrogate.ClippedCount > n/2 {
			t.Errorf("%g of %g ratios are clipped: this tests too little", surrogate.ClippedCount, n)
		}
		mean := surrogate.Loss.DivScalar(n)
		mean.Backward()
		loss = mean.Item()
		s.Close()
	}
	gradients := map[string][]float64{}
	for _, p := range d.Parameters() {
		s := torch.NewScope()
		gradients[p.Name] = p.Tensor.Grad().Float64s()
		s.Close()
	}
	return loss, gradients
}

// The example trains through transformers on what bench export wrote: in every layout
// its loss and its gradient of every weight are ours, for a 4-D mask in both attention
// implementations that have a backward pass on a CPU; FlexAttention gives the loss.
func TestPyTorchTrainsOnExportedBatches(t *testing.T) {
	python, w := peersPython(t), newWorkplace(t)
	torch.SetNumThreads(1)
	mini, err := model.Load("../presets/mini/student", model.Placement{})
	if err != nil {
		t.Fatal(err)
	}
	defer mini.Free()
	var jobs []*peerJob
	for name, d := range map[string]*model.Decoder{"random": exportModel(t), "mini": mini} {
		folder := filepath.Join(w.dir, name)
		if err := d.Save(folder); err != nil {
			t.Fatal(err)
		}
		all := ownRollouts(t, d)
		values := export.Values{}
		rng := rand.New(rand.NewPCG(1, 9))
		for _, x := range all {
			one := make([]float32, x.SampledTokens())
			for i := range one {
				one[i] = float32(rng.NormFloat64())
			}
			values["advantage"] = append(values["advantage"], one)
		}
		jobs = append(jobs, groupJob(t, d, all[0], folder)...)
		for _, layout := range align.Layouts() {
			if name == "mini" && layout.Name != "aligned" && layout.Name != "calls" {
				continue
			}
			b, rejected, err := export.Build(all, layout, align.Options{}, values)
			if err != nil || len(rejected) > 0 {
				t.Fatal(err, rejected)
			}
			path := filepath.Join(folder, layout.Name+".safetensors")
			if err := export.WriteSafetensors(path, b); err != nil {
				t.Fatal(err)
			}
			jobs = append(jobs, exportJobs(t, d, b, path, folder)...)
		}
	}
	runPeers(t, python, w.dir, jobs)
	for _, j := range jobs {
		comparePeer(t, j)
	}
}

// groupJob is the job of two samples of one task in one sequence, which part in the
// last call.
func groupJob(t *testing.T, d *model.Decoder, x *trace.Trajectory, folder string) []*peerJob {
	t.Helper()
	y := *x
	y.ID, y.Reward, y.Calls = "other", -0.25, slices.Clone(x.Calls)
	last := &y.Calls[len(y.Calls)-1]
	last.Output = slices.Clone(last.Output)
	last.Output[len(last.Output)-1] ^= 1
	b, rejected, err := export.BuildGroups([]*trace.Trajectory{x, &y}, align.Options{})
	if err != nil || len(rejected) > 0 || len(b.Sequences) != 1 {
		t.Fatal(err, rejected, len(b.Sequences))
	}
	b.Layout = "group"
	path := filepath.Join(folder, "group.safetensors")
	if err := export.WriteSafetensors(path, b); err != nil {
		t.Fatal(err)
	}
	return exportJobs(t, d, b, path, folder)
}

// Another program's forward pass on exported sequences gives the log-probs that the
// sampler recorded call by call, in the aligned layout and in no flattened one.
func TestTransformersGivesTheSamplersLogProbs(t *testing.T) {
	python, w := peersPython(t), newWorkplace(t)
	w.mustBench("eval --preset smoke --horizon q2,q8 --tasks 4 --timed-tasks 0 --variants sft --policy sample --ledger jsonl")
	student, err := filepath.Abs("../presets/mini/student")
	if err != nil {
		t.Fatal(err)
	}
	var jobs []*peerJob
	for _, layout := range []string{"aligned", "persistent", "mem1"} {
		path := filepath.Join(w.dir, layout+".safetensors")
		w.mustBench("export --ledger runs/smoke/eval/q8/sft/seed-0/ledger.jsonl --layout " + layout + " --out " + path)
		jobs = append(jobs, &peerJob{name: layout, Batch: path, Model: student, Out: path + ".out", Loss: "nll", Attention: "sdpa"})
	}
	runPeers(t, python, w.dir, jobs)
	for _, j := range jobs {
		b, err := export.ReadSafetensors(j.Batch)
		if err != nil {
			t.Fatal(err)
		}
		s := torch.NewScope()
		got, _, err := torch.ReadSafetensors(j.Out)
		if err != nil {
			t.Fatal(err)
		}
		var recorded []float32
		for _, x := range b.Sequences {
			recorded = append(recorded, x.Columns[export.LogProb]...)
		}
		differences := got["log_probs"].Float64s()
		if len(differences) != len(recorded) || len(recorded) < 200 {
			t.Fatalf("%s: %d log-probs of %d actions", j.name, len(differences), len(recorded))
		}
		for i, p := range recorded {
			differences[i] = math.Abs(differences[i] - float64(p))
		}
		slices.Sort(differences)
		p99 := differences[len(differences)*99/100]
		t.Logf("%s: %d actions, p99 of the difference %.3g, largest %.3g", j.name, len(recorded), p99, differences[len(differences)-1])
		if aligned := j.name == "aligned"; aligned != (p99 <= 1e-4) || !aligned && p99 < 1e-2 {
			t.Errorf("%s: p99 of the difference is %g", j.name, p99)
		}
		s.Close()
	}
}

// exportJobs are the peer's jobs of one batch, with our own numbers.
func exportJobs(t *testing.T, d *model.Decoder, b *export.Batch, path, folder string) []*peerJob {
	t.Helper()
	var jobs []*peerJob
	add := func(loss, attention string) {
		j := &peerJob{Batch: path, Model: folder, Loss: loss, Attention: attention}
		j.name = fmt.Sprintf("%s, %s, %s, %s", filepath.Base(folder), b.Layout, loss, attention)
		j.Out = strings.TrimSuffix(path, ".safetensors") + "." + loss + "." + attention + ".out"
		j.loss, j.gradients = ownLoss(t, d, b, loss)
		jobs = append(jobs, j)
	}
	for _, s := range b.Sequences {
		for _, a := range s.Packed.Actions {
			if a.Spurious() { // nothing was recorded of it: no ratio
				add("nll", "sdpa")
				return jobs
			}
		}
	}
	add("ppo", "sdpa")
	if b.Layout == "aligned" {
		add("nll", "eager")
		add("nll", "flex_attention")
	}
	return jobs
}

func runPeers(t *testing.T, python, dir string, jobs []*peerJob) {
	t.Helper()
	list, err := json.Marshal(jobs)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "jobs.json")
	if err := os.WriteFile(path, list, 0o644); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(python, "../scripts/peers/packed_torch.py", path)
	cmd.Env = append(os.Environ(), "TORCHDYNAMO_DISABLE=1", "HF_HUB_OFFLINE=1", "PYTHONDONTWRITEBYTECODE=1")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
}

// comparePeer holds our loss and gradients to the peer's.
func comparePeer(t *testing.T, j *peerJob) {
	t.Helper()
	s := torch.NewScope()
	defer s.Close()
	got, _, err := torch.ReadSafetensors(j.Out)
	if err != nil {
		t.Fatal(err)
	}
	// The terms of the surrogate are of the size of an advantage, 1, and cancel.
	if loss := got["loss"].Item(); !(math.Abs(loss-j.loss) <= 1e-5*max(1, math.Abs(j.loss))) {
		t.Errorf("%s: loss %.9g, ours %.9g", j.name, loss, j.loss)
	}
	if j.Attention == "flex_attention" {
		return
	}
	if n := len(got) - 2; n != len(j.gradients) {
		t.Errorf("%s: gradients of %d weights, ours of %d", j.name, n, len(j.gradients))
	}
	worst, distance, norm := 0.0, 0.0, 0.0
	for name, own := range j.gradients {
		peer := got["grad."+name]
		if peer == nil || int(peer.Numel()) != len(own) {
			t.Fatalf("%s: no gradient of %s, or another size", j.name, name)
		}
		d, n := 0.0, 0.0
		for i, g := range peer.Float64s() {
			d, n = d+(g-own[i])*(g-own[i]), n+own[i]*own[i]
		}
		worst, distance, norm = max(worst, math.Sqrt(d/n)), distance+d, norm+n
	}
	t.Logf("%s: loss %.7g; gradient off by %.2g of its norm, of a single weight by %.2g", j.name, j.loss, math.Sqrt(distance/norm), worst)
	if !(math.Sqrt(distance/norm) <= 1e-5) || !(worst <= 5e-5) {
		t.Errorf("%s: the gradient is off by %.3g of its norm, that of a weight by %.3g", j.name, math.Sqrt(distance/norm), worst)
	}
}

// bench export writes both forms of a ledger, says what it wrote, and explains what it
// cannot.
func TestExportCommand(t *testing.T) {
	w := newWorkplace(t)
	all := ownRollouts(t, exportModel(t))
	for i, x := range all {
		finish(x, i)
	}
	all[1].TaskID, all[1].ID = all[0].TaskID, "another"
	all[1].Prefix, all[1].Calls = all[0].Prefix, all[0].Calls
	if err := trace.WriteAll(filepath.Join(w.dir, "l.jsonl"), all); err != nil {
		t.Fatal(err)
	}
	var got exported
	out := w.mustBench("export --ledger l.jsonl --out b.safetensors --teacher-first-call 1 --json")
	if err := json.Unmarshal([]byte(out), &got); err != nil {
		t.Fatal(err)
	}
	b, err := export.ReadSafetensors(filepath.Join(w.dir, "b.safetensors"))
	if err != nil {
		t.Fatal(err)
	}
	if got.Sequences != len(all) || got.Actions != b.Actions() || got.Tokens != b.Tokens() || got.Layout != "aligned" || len(b.Metadata["ledger_sha256"]) != 64 {
		t.Errorf("%+v, metadata %v", got, b.Metadata)
	}
	if !strings.Contains(b.Metadata["sampler"], `"temperature":1`) {
		t.Errorf("sampler %q", b.Metadata["sampler"])
	}
	if out := w.mustBench("export --ledger l.jsonl --out b.arrow --layout calls --trajectories 2"); !strings.Contains(out, "2 trajectories as") || !strings.Contains(out, "(calls)") {
		t.Error(out)
	}
	if out := w.mustBench("export --ledger l.jsonl --share-samples"); !strings.Contains(out, fmt.Sprintf("%d trajectories as %d sequences", len(all), len(all)-1)) {
		t.Error(out)
	}
	longest := 0
	for _, s := range b.Sequences {
		longest = max(longest, len(s.IDs))
	}
	if out := w.mustBench(fmt.Sprintf("export --ledger l.jsonl --packed-tokens-max %d", longest-1)); !strings.Contains(out, "left out: 1 (packed_tokens)") {
		t.Error(out)
	}
	for _, c := range []struct{ arguments, want string }{
		{"", "names no file"}, {"--ledger l.jsonl --out b.pt", "neither .safetensors nor .arrow"}, {"--ledger nosuch.jsonl", "nosuch.jsonl"},
		{"--ledger l.jsonl --layout flat", "known: aligned, calls"}, {"--ledger l.jsonl --packed-tokens-max 1", "can be laid out (packed_tokens: "},
		{"--ledger l.jsonl --trajectories -1", "want 0 or more"}, {"--ledger l.jsonl --layout calls --share-samples", "not of calls"},
	} {
		if _, stderr, status := w.bench("export " + c.arguments); status == 0 || !strings.Contains(stderr, c.want) {
			t.Errorf("export %s: exit %d, want an error with %q, got\n%s", c.arguments, status, c.want, stderr)
		}
	}
}

// finish fills in what a ledger demands of a random trajectory.
func finish(x *trace.Trajectory, i int) {
	x.TaskID = fmt.Sprint("task", i)
	for k := range x.Calls {
		c := &x.Calls[k]
		c.MaxNewTokens, c.Outcome, c.Query = 100, trace.OutcomeSearch, "q"
		if k == len(x.Calls)-1 {
			c.Outcome, c.Query, c.Observation = trace.OutcomeAnswer, "", nil
		} else if len(c.Observation) == 0 {
			c.Observation = []int32{0}
		}
	}
}

// The example names a file that is none, in one line.
func TestPyTorchExampleRefuses(t *testing.T) {
	python := peersPython(t)
	file := filepath.Join(t.TempDir(), "x.safetensors")
	if err := os.WriteFile(file, []byte("no safetensors"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{file, file + ".lacks"} {
		out, err := exec.CommandContext(t.Context(), python, "../scripts/examples/train_packed.py", path, "model").CombinedOutput()
		if err == nil || strings.Count(string(out), "\n") != 1 || !strings.Contains(string(out), "not a file of bench export") {
			t.Errorf("%v: %s", err, out)
		}
	}
}
