package train

import (
	"context"
	"errors"
	"math"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/memopd/memopd-bench/align"
	"github.com/memopd/memopd-bench/model"
	"github.com/memopd/memopd-bench/torch"
	"github.com/memopd/memopd-bench/trace"
)

func tinySFT() SFTConfig {
	c := SmokeSFT()
	c.Seed, c.Steps, c.TokensPerStep, c.TokensPerMicrobatch, c.ExamplesPerPool = 3, 12, 200, 120, 40
	c.FlattenedShare, c.FlattenedTokensMax = 0.4, 60
	c.DrillSteps, c.DrillLengths, c.WarmupSteps = 6, []int{4, 8}, 2
	c.LogEvery, c.CheckpointEvery, c.SnapshotSteps = 5, 4, []int{3}
	return c
}

func runSFT(t *testing.T, ctx context.Context, c SFTConfig, dir string, resume bool) (*model.Decoder, error) {
	t.Helper()
	return SFT(ctx, c, SFTParts{Model: tinyModel(t, 1), Source: randomSource, Dir: dir, Resume: resume, TensorBoard: true})
}

// A straight run, a rerun and a run that was stopped in the middle of a pool and
// of a log window and then resumed end alike: weights and metrics.
func TestSFTRerunAndResumeAreIdentical(t *testing.T) {
	c := tinySFT()
	straight, again, resumed := t.TempDir(), t.TempDir(), t.TempDir()
	ctx := context.Background()
	a, err := runSFT(t, ctx, c, straight, false)
	if err != nil {
		t.Fatal(err)
	}
	b, err := runSFT(t, ctx, c, again, false)
	if err != nil {
		t.Fatal(err)
	}
	stopped, cancel := context.WithCancel(ctx)
	drawn := 0
	_, err = SFT(stopped, c, SFTParts{Model: tinyModel(t, 1), Dir: resumed, TensorBoard: true, Source: func(seed uint64) (*trace.Trajectory, error) {
		if drawn++; drawn == 20 { // while the second pool is made
			cancel()
		}
		return randomSource(seed)
	}})
	if !errors.Is(err, context.Canceled) {
		t.Fatalf("cancelled run: %v", err)
	}
	_, step, err := LatestCheckpoint(resumed)
	if err != nil || step == 0 || step == c.Steps {
		t.Fatalf("cancelled run left a checkpoint of step %d (%v)", step, err)
	}
	r, err := runSFT(t, ctx, c, resumed, true)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Free()
	if slices.Equal(weights(a), weights(tinyModel(t, 1).Clone())) {
		t.Error("training left the weights as they were")
	}
	if !slices.Equal(weights(a), weights(b)) || !slices.Equal(weights(a), weights(r)) {
		t.Error("a rerun or a resumed run ends with other weights")
	}
	want := asJSON(t, timeless(t, straight))
	for _, dir := range []string{again, resumed} {
		if got := asJSON(t, timeless(t, dir)); got != want {
			t.Errorf("metrics differ:\n%s\n%s", got, want)
		}
	}
	checkEvents(t, resumed)
	if snapshot, err := model.Load(SnapshotPath(straight, 3), model.Placement{}); err != nil {
		t.Error(err)
	} else {
		snapshot.Free()
	}
	if _, err := os.Stat(CheckpointPath(straight, 4)); !os.IsNotExist(err) {
		t.Errorf("an old checkpoint is kept: %v", err)
	}
}

// Examples from one trajectory alone are learnt by heart.
func TestSFTLearns(t *testing.T) {
	c := tinySFT()
	c.Steps, c.DrillSteps, c.LearningRate, c.FlattenedShare, c.LogEvery = 80, 0, 1e-2, 0, 10
	c.CheckpointEvery, c.SnapshotSteps, c.ExamplesPerPool = 1000, nil, 20
	dir := t.TempDir()
	evaluated := []int{}
	c.EvalEvery = 40
	_, err := SFT(context.Background(), c, SFTParts{
		Model: tinyModel(t, 1), Dir: dir,
		Source: func(uint64) (*trace.Trajectory, error) { return randomSource(1) },
		Eval: func(_ context.Context, step int, _ *model.Decoder) (Record, error) {
			evaluated = append(evaluated, step)
			return Record{{"eval/x", 1}}, nil
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	var losses []float64
	for _, r := range timeless(t, dir) {
		if loss, ok := r.Get("train/loss"); ok {
			losses = append(losses, loss)
		}
	}
	if first, last := losses[0], losses[len(losses)-1]; len(losses) != 8 || !(last < first/4) {
		t.Errorf("losses %v, want the last below a quarter of the first", losses)
	}
	if !slices.Equal(evaluated, []int{40, 80}) {
		t.Errorf("evaluated after steps %v, want 40 and 80", evaluated)
	}
}

// A record is over the steps since the last record, and no others.
func TestSFTRecordsAreOverTheirOwnSteps(t *testing.T) {
	c := tinySFT()
	norms := func(every int) (norms []float64) {
		c.LogEvery = every
		dir := t.TempDir()
		if _, err := runSFT(t, context.Background(), c, dir, false); err != nil {
			t.Fatal(err)
		}
		for _, r := range timeless(t, dir) {
			norm, _ := r.Get("train/grad_norm")
			norms = append(norms, norm)
		}
		return norms
	}
	single, want := norms(1), []float64(nil)
	for start := 0; start < c.Steps; start += 5 {
		steps := single[start:min(start+5, c.Steps)]
		sum := 0.0
		for _, norm := range steps {
			sum += norm
		}
		want = append(want, sum/float64(len(steps)))
	}
	near(t, "gradient norm", norms(5), want, 1e-12)
}

// The embedding moves EmbeddingRate times as fast as the rest, the final norm
// as much slower: AdamW's first step moves every weight by its own rate.
func TestSFTEmbeddingRate(t *testing.T) {
	c := tinySFT()
	c.Steps, c.WarmupSteps, c.WeightDecay, c.LearningRate, c.EmbeddingRate = 1, 0, 0, 1e-3, 4
	d := tinyModel(t, 1)
	before := map[string][]float32{}
	for _, p := range d.Parameters() {
		before[p.Name] = p.Tensor.Float32s()
	}
	if _, err := SFT(context.Background(), c, SFTParts{Model: d, Source: randomSource, Dir: t.TempDir()}); err != nil {
		t.Fatal(err)
	}
	for _, p := range d.Parameters() {
		moved := 0.0
		for i, v := range p.Tensor.Float32s() {
			moved = max(moved, math.Abs(float64(v-before[p.Name][i])))
		}
		want := 1e-3
		switch p.Name {
		case "model.embed_tokens.weight":
			want = 4e-3
		case "model.norm.weight":
			want = 0.25e-3
		}
		if math.Abs(moved-want) > 0.02*want {
			t.Errorf("%s moved by %g, want %g", p.Name, moved, want)
		}
	}
}

// The loss is the mean negative log-likelihood of the output tokens alone, each
// given its call's context: recomputed here from every token of each row.
func TestSFTLossIsOverOutputsAlone(t *testing.T) {
	d := tinyModel(t, 1)
	x, err := randomSource(5)
	if err != nil {
		t.Fatal(err)
	}
	calls, err := align.Calls(x, align.Options{})
	if err != nil {
		t.Fatal(err)
	}
	s := torch.NewScope()
	defer s.Close()
	want := 0.0
	for _, c := range x.Calls {
		ids := append(slices.Clone(c.Context), c.Output...)
		dist := d.Logits(d.HiddenAll([][]int32{ids})).LogSoftmax(-1).Float32s()
		for i := len(c.Context); i < len(ids); i++ {
			want -= float64(dist[(i-1)*tinyVocabulary+int(ids[i])])
		}
	}
	near(t, "loss", []float64{defaultCompute().BackwardNLL(d, calls, 1)}, []float64{want}, 1e-5)
}

// A step's gradient is that of the mean over its output tokens, in microbatches
// or at once.
func TestSFTGradientIsTokenMean(t *testing.T) {
	c := tinySFT()
	rows := drill(c, tinyVocabulary, 0)
	for _, tokens := range []int{0, 20} {
		c.TokensPerMicrobatch = tokens
		r, err := openSFT(c, SFTParts{Model: tinyModel(t, 1), Source: randomSource, Dir: t.TempDir()})
		if err != nil {
			t.Fatal(err)
		}
		c.BackwardNLL(r.model, rows, float64(actionCount(rows)))
		want := torch.GradNorm(r.optimizer.tensors)
		_, norm := r.update(rows)
		near(t, "gradient norm", []float64{norm}, []float64{want}, 1e-5)
		r.optimizer.Free()
	}
}

func TestPoolsAreCutToSize(t *testing.T) {
	c := tinySFT()
	c.DrillSteps = 0
	p, err := buildPool(c, randomSource, 0)
	if err != nil {
		t.Fatal(err)
	}
	examples, flattened := 0, 0
	var lengths []int
	for _, rows := range p.batches {
		longest := 0
		lengths = append(lengths, len(rows[0].IDs))
		for _, r := range rows {
			longest = max(longest, len(r.IDs))
			if r.Blocks[0].Call == -1 {
				flattened++
			}
		}
		if len(rows) > 1 && longest*len(rows) > c.TokensPerStep {
			t.Errorf("a step of %d tokens, want at most %d", longest*len(rows), c.TokensPerStep)
		}
		examples += len(rows)
	}
	if slices.IsSorted(lengths) {
		t.Errorf("steps come sorted by length: %v", lengths)
	}
	if examples < c.ExamplesPerPool || flattened == 0 || flattened == examples {
		t.Errorf("%d examples, %d of them flattened", examples, flattened)
	}
	again, err := buildPool(c, randomSource, 0)
	if err != nil || asJSON(t, again.batches) != asJSON(t, p.batches) {
		t.Errorf("the pool made again is another one (%v)", err)
	}
	other, err := buildPool(c, randomSource, 1)
	if err != nil || asJSON(t, other.batches) == asJSON(t, p.batches) {
		t.Errorf("the next pool is the same one (%v)", err)
	}
	c.TokensPerCallMax = 1
	if _, err := buildPool(c, randomSource, 0); err == nil {
		t.Error("a source whose trajectories are all rejected was accepted")
	}
}

func TestDrillsRepeat(t *testing.T) {
	c := tinySFT()
	rows := drill(c, tinyVocabulary, 4)
	if len(rows) == 0 {
		t.Fatal("no rows")
	}
	for _, r := range rows {
		n := len(r.IDs) / 2
		if !slices.Contains(c.DrillLengths, n) || !slices.Equal(r.IDs[:n], r.IDs[n:]) || slices.Contains(r.IDs, 0) {
			t.Errorf("row %v is no drill", r.IDs)
		}
		if len(r.Actions) != n-1 || r.Actions[0].Index != n+1 || r.Actions[0].Predict != n || r.Actions[n-2].ID != r.IDs[2*n-1] {
			t.Errorf("actions %+v of a drill of %d", r.Actions, n)
		}
	}
	if asJSON(t, rows) != asJSON(t, drill(c, tinyVocabulary, 4)) || asJSON(t, rows) == asJSON(t, drill(c, tinyVocabulary, 6)) {
		t.Error("a drill is no function of its step")
	}
}

// A source whose weights diverge is stopped, not saved.
func TestSFTStopsWhenItDiverges(t *testing.T) {
	d := tinyModel(t, 1)
	torch.NoGrad(func() { d.Parameters()[0].Tensor.Fill_(math.NaN()) })
	dir := t.TempDir()
	if _, err := SFT(context.Background(), tinySFT(), SFTParts{Model: d, Source: randomSource, Dir: dir}); err == nil {
		t.Error("NaN weights were trained")
	}
	if _, _, err := LatestCheckpoint(dir); !errors.Is(err, ErrNoCheckpoint) {
		t.Errorf("a diverged run left a checkpoint: %v", err)
	}
	if _, err := os.Stat(filepath.Join(dir, "snapshots")); !os.IsNotExist(err) {
		t.Error("a diverged run left a snapshot")
	}
}
