package audit

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/memopd/memopd-bench/align"
	"github.com/memopd/memopd-bench/model"
	"github.com/memopd/memopd-bench/torch"
)

// twoBlocks is a prefix of 3, and blocks of 2 and 4 that see it.
func twoBlocks() *align.Packed {
	return &align.Packed{
		IDs: make([]int32, 9), Positions: []int32{0, 1, 2, 3, 4, 3, 4, 5, 6}, PrefixLength: 3,
		Blocks:  []align.Block{{Start: 3, End: 5}, {Call: 1, Start: 5, End: 9}},
		Actions: []align.Action{{Index: 4, Predict: 3}, {Call: 1, Index: 8, Predict: 7}},
	}
}

func TestUpdateFLOPsByHand(t *testing.T) {
	c := model.Config{HiddenSize: 8, IntermediateSize: 12, NumHiddenLayers: 2, NumAttentionHeads: 2, NumKeyValueHeads: 1, HeadDim: 4}
	// Pairs: 3*4/2 of the prefix, 2*3 + 2*3/2 and 4*3 + 4*5/2 of the blocks: 37. Weights of a
	// layer: qkv 8*(8+2*4) = 128, the rest 8*8 + 3*8*12 = 352. Products: 9 tokens through 128 + 352
	// + 128, 2 actions through 352 and 8*10 logits: 6336. Attention: 2 layers of width 8, 4 a pair.
	rows := []*align.Packed{twoBlocks()}
	if got, want := updateFLOPs(c, 10, rows, false), 3*(2*6336.0+4*2*8*37); got != want {
		t.Errorf("%v FLOPs, want %v", got, want)
	}
	if got, want := updateFLOPs(c, 10, rows, true), 3*(2*6336.0+4*2*8*81); got != want {
		t.Errorf("%v FLOPs under a dense mask, want %v", got, want)
	}
	rows[0].Blocks[1].Sees = []align.Range{{Start: 0, End: 3}, {Start: 4, End: 5}} // four more
	if got, want := updateFLOPs(c, 10, rows, false), 3*(2*6336.0+4*2*8*41); got != want {
		t.Errorf("%v FLOPs with another place seen, want %v", got, want)
	}
}

// TestSpeedShapes: the tokens that each way runs, by shape.
func TestSpeedShapes(t *testing.T) {
	for _, c := range []struct {
		shape          SpeedShape
		rows, packed   int // tokens
		actions, batch int
	}{
		{SpeedShape{Shape: "memory", Prefix: 40, Calls: 4, CallTokens: 24, ActionShare: 0.25, Trajectories: 2}, 2 * 4 * 64, 2 * (40 + 4*24), 2 * 4 * 6, 2},
		{SpeedShape{Shape: "growing", Prefix: 40, Calls: 3, CallTokens: 20, ActionShare: 0.5, Trajectories: 1}, 3 * 100, 100, 30, 1},
		{SpeedShape{Shape: "samples", Prefix: 40, Calls: 1, CallTokens: 24, ActionShare: 0.25, Trajectories: 3}, 3 * 64, 40 + 18 + 3*6, 18, 1},
	} {
		ts := c.shape.trajectories(100_000, 1) // so many ids that none meet by chance
		for way, tokens := range map[string]int{SpeedRows: c.rows, SpeedPacked: c.packed, SpeedDense: c.packed} {
			batch, err := c.shape.lay(way, ts)
			if err != nil {
				t.Fatalf("%s, %s: %v", c.shape.Shape, way, err)
			}
			got, actions := 0, 0
			for _, p := range batch {
				got, actions = got+len(p.IDs), actions+len(p.Actions)
			}
			if got != tokens || actions != c.actions {
				t.Errorf("%s, %s: %d tokens and %d actions, want %d and %d", c.shape.Shape, way, got, actions, tokens, c.actions)
			}
		}
	}
}

func smallSpeed(d *model.Decoder, shape string) SpeedOptions {
	return SpeedOptions{Clip: DefaultClipEpsilon, Model: d, Rounds: 2, Tolerance: 2e-5, Seed: 3,
		Shape: SpeedShape{Shape: shape, Prefix: 11, Calls: 3, CallTokens: 12, ActionShare: 0.25, Ragged: 0.5, Trajectories: 2}}
}

// TestSpeedComparesFirst: the ways agree in every shape, ragged calls included, and
// are timed; a way in another state, or with another loss, is refused.
func TestSpeedComparesFirst(t *testing.T) {
	d := newModel(t, 4)
	for _, shape := range SpeedShapes {
		r, err := Speed(t.Context(), smallSpeed(d, shape))
		if err != nil {
			t.Fatalf("%s: %v", shape, err)
		}
		for _, w := range r.Ways {
			if !(w.CPU > 0) || !(w.Clock > 0) || len(w.CPURounds) != 2 || !(w.FLOPs > 0) {
				t.Errorf("%s: %+v", shape, w)
			}
		}
		if rows, packed := r.Way(SpeedRows), r.Way(SpeedPacked); rows.Tokens <= r.Way(SpeedConcat).Tokens || packed.Tokens >= rows.Tokens {
			t.Errorf("%s: rows of %d tokens, concatenated %d, packed %d", shape, rows.Tokens, r.Way(SpeedConcat).Tokens, packed.Tokens)
		}
	}
	for _, way := range SpeedWays[1:] {
		r, err := newSpeedRun(smallSpeed(d, "memory"))
		if err != nil {
			t.Fatal(err)
		}
		p := r.batch[way][0]
		p.Positions = slices.Clone(p.Positions)
		p.Positions[5] += 9
		result := &SpeedResult{}
		for _, w := range SpeedWays {
			result.Ways = append(result.Ways, SpeedWay{Way: w})
		}
		if err := r.equal(result); err == nil || !strings.Contains(err.Error(), way+" is not rows") {
			t.Errorf("%s with a wrong position: %v", way, err)
		}
	}
	zero(d)
	o := smallSpeed(d, "memory")
	for _, wrong := range []func(){
		func() { o.Shape.Shape = "ring" }, func() { o.Shape.Calls = 0 }, func() { o.Shape.ActionShare = 0 },
		func() { o.Shape.Ragged = 1 }, func() { o.Shape.Prefix = 400 },
	} {
		o = smallSpeed(d, "memory")
		if wrong(); true {
			if _, err := Speed(t.Context(), o); err == nil {
				t.Errorf("%+v is accepted", o.Shape)
			}
		}
	}
}

func TestSpeedRowKeys(t *testing.T) {
	r := &SpeedResult{Shape: SpeedShape{Prefix: 400, Calls: 4, CallTokens: 250}, Ways: []SpeedWay{
		{Way: SpeedRows, CPU: 2, FLOPs: 9, CPURounds: []float64{2, 4, 3}}, {Way: SpeedConcat, CPU: 1.5}, {Way: SpeedDense, CPU: 1.25},
		{Way: SpeedPacked, CPU: 1, FLOPs: 4.5, CPURounds: []float64{1, 1, 2}},
	}}
	data, err := json.Marshal(r.Row())
	want := `{"prefix":400,"calls":4,"call_tokens":250,"rows_s":2,"concat_s":1.5,"dense_s":1.25,"packed_s":1,"ratio":2,"ideal":2}`
	if err != nil || string(data) != want {
		t.Errorf("%s, %v; want %s", data, err, want)
	}
}

// BenchmarkActorUpdate is each way at the paper's shape on a small model.
func BenchmarkActorUpdate(b *testing.B) {
	d, err := model.New(model.Config{
		ModelType: model.Llama, VocabSize: 1024, HiddenSize: 256, IntermediateSize: 704, NumHiddenLayers: 4, NumAttentionHeads: 4,
		NumKeyValueHeads: 2, HeadDim: 64, MaxPositionEmbeddings: 4096, RMSNormEps: 1e-6, RopeTheta: 10000, TieWordEmbeddings: true,
	}, 1)
	if err != nil {
		b.Fatal(err)
	}
	defer d.Free()
	torch.SetNumThreads(1)
	r, err := newSpeedRun(SpeedOptions{Tolerance: 1e-5, Clip: DefaultClipEpsilon, Model: d, Shape: SpeedShape{Shape: "memory", Prefix: 400, Calls: 4, CallTokens: 250, ActionShare: 0.25, Trajectories: 1}})
	if err != nil {
		b.Fatal(err)
	}
	for _, way := range SpeedWays {
		b.Run(way, func(b *testing.B) {
			var seconds []float64
			for b.Loop() {
				zero(d)
				begin := cpuSeconds()
				r.update(way)
				seconds = append(seconds, cpuSeconds()-begin)
			}
			b.ReportMetric(median(seconds), "cpu-s/update")
		})
	}
	zero(d)
}
