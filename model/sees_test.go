package model

import (
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/memopd/memopd-bench/align"
	"github.com/memopd/memopd-bench/torch"
)

// sighted makes a sequence of random blocks that see random places before them,
// some of them the prefix, some nothing.
func sighted(rng *rand.Rand, vocab int) *align.Packed {
	p := &align.Packed{TrajectoryID: "s", PrefixLength: rng.IntN(6)}
	token := func(position int) {
		p.IDs = append(p.IDs, rng.Int32N(int32(vocab)))
		p.Positions = append(p.Positions, int32(position))
	}
	for i := range p.PrefixLength {
		token(i)
	}
	for k := range 1 + rng.IntN(6) {
		b := align.Block{Call: k, Start: len(p.IDs), Sees: randomRanges(rng, len(p.IDs))}
		if rng.IntN(4) == 0 {
			b.Sees = nil
		}
		for range 1 + rng.IntN(7) {
			token(rng.IntN(60))
		}
		b.End = len(p.IDs)
		p.Blocks = append(p.Blocks, b)
	}
	for q := 1; q < len(p.IDs); q++ {
		p.Actions = append(p.Actions, align.Action{ID: p.IDs[q], Index: q, Predict: q - 1})
	}
	return p
}

// randomRanges are ranges of [0, end), in order, that may touch; not nil.
func randomRanges(rng *rand.Rand, end int) []align.Range {
	ranges := []align.Range{}
	for at := rng.IntN(3); at < end && rng.IntN(5) > 0; {
		r := align.Range{Start: at, End: min(end, at+1+rng.IntN(4))}
		ranges = append(ranges, r)
		at = r.End + rng.IntN(3)
	}
	return ranges
}

// TestBlocksSeeTheirPlaces holds attention over blocks that see any places to
// align's definition of what sees what.
func TestBlocksSeeTheirPlaces(t *testing.T) {
	rng := rand.New(rand.NewPCG(6, 6))
	for range 60 {
		checkVisible(t, []*align.Packed{sighted(rng, 50), sighted(rng, 50)})
	}
	prefix := []int32{1, 2, 3, 4}
	single := func(sees []align.Range) *align.Packed {
		return &align.Packed{IDs: prefix, Positions: prefix, PrefixLength: 2, Blocks: []align.Block{{Start: 2, End: 4, Sees: sees}}}
	}
	for _, c := range []struct {
		p    *align.Packed
		rows int
	}{
		{single(nil), 1},
		{single([]align.Range{{Start: 0, End: 2}}), 1},
		{single([]align.Range{{Start: 0, End: 1}, {Start: 1, End: 2}}), 1},
		{single([]align.Range{}), 2},
		{single([]align.Range{{Start: 1, End: 2}}), 2},
	} {
		checkVisible(t, []*align.Packed{c.p})
		if spans := appendSpans(nil, c.p, 0); len(spans) != c.rows {
			t.Errorf("a block that sees %v: %d rows, want %d", c.p.Blocks[0].Sees, len(spans), c.rows)
		}
	}
}

// checkVisible compares a batch's layout with Visible, all places of all sequences.
func checkVisible(t *testing.T, batch []*align.Packed) {
	t.Helper()
	l, starts, err := newLayout(batch)
	if err != nil {
		t.Fatal(err)
	}
	sees := visible(l)
	for i, p := range batch {
		for q := range p.IDs {
			for k := range l.ids {
				own := k - starts[i]
				if want := p.Visible(q, own); sees[[2]int{starts[i] + q, k}] != want {
					t.Fatalf("sequence %d: token %d sees %d: %v, want %v (prefix %d, blocks %v)", i, q, own, !want, want, p.PrefixLength, p.Blocks)
				}
			}
		}
	}
}

// TestUnseenTokensChangeNothing perturbs tokens one by one: hidden states move
// where a change can reach, and nowhere else.
func TestUnseenTokensChangeNothing(t *testing.T) {
	d := newModel(t, tiny(Qwen2), 3, 2)
	rng := rand.New(rand.NewPCG(7, 7))
	for range 12 {
		checkPerturbed(t, d, sighted(rng, 50))
	}
}

// checkPerturbed changes the id at each place and compares with what can be reached.
func checkPerturbed(t *testing.T, d *Decoder, p *align.Packed) {
	t.Helper()
	before := hiddenAt(d, p)
	for k := range p.IDs {
		changed := *p
		changed.IDs = append([]int32{}, p.IDs...)
		changed.IDs[k] = (p.IDs[k] + 1) % int32(d.Vocab())
		after := hiddenAt(d, &changed)
		reach := reached(p, k, len(d.layers))
		for q := range p.IDs {
			if moved := gap(before[q], after[q]) > 1e-6; moved != reach[q] {
				t.Fatalf("a change at %d moves %d: %v, want %v (prefix %d, blocks %v)", k, q, moved, reach[q], p.PrefixLength, p.Blocks)
			}
		}
	}
}

// reached lists the places whose states hang on place k: a layer each step from
// one place to another that sees it.
func reached(p *align.Packed, k, layers int) []bool {
	reach := make([]bool, len(p.IDs))
	reach[k] = true
	for range layers {
		next := append([]bool{}, reach...)
		for q := k + 1; q < len(p.IDs); q++ {
			for via := k; via < q && !next[q]; via++ {
				next[q] = reach[via] && p.Visible(q, via)
			}
		}
		reach = next
	}
	return reach
}

// hiddenAt is the hidden state of every place.
func hiddenAt(d *Decoder, p *align.Packed) [][]float32 {
	all := *p
	all.Actions = nil
	for q := range p.IDs {
		all.Actions = append(all.Actions, align.Action{Predict: q})
	}
	s := torch.NewScope()
	defer s.Close()
	flat := d.Hidden([]*align.Packed{&all}).Float32s()
	width := len(flat) / len(p.IDs)
	out := make([][]float32, len(p.IDs))
	for q := range out {
		out[q] = flat[q*width : (q+1)*width]
	}
	return out
}

func TestHiddenRefusesMalformedSees(t *testing.T) {
	d := newModel(t, tiny(Llama), 1, 1)
	for name, sees := range map[string][]align.Range{
		"its own tokens":  {{Start: 0, End: 3}},
		"later tokens":    {{Start: 3, End: 4}},
		"an empty range":  {{Start: 1, End: 1}},
		"a negative one":  {{Start: -1, End: 1}},
		"out of order":    {{Start: 1, End: 2}, {Start: 0, End: 1}},
		"over each other": {{Start: 0, End: 2}, {Start: 1, End: 2}},
	} {
		p := &align.Packed{IDs: []int32{1, 2, 3, 4}, Positions: []int32{0, 1, 2, 3}, PrefixLength: 1, Blocks: []align.Block{
			{Call: 0, Start: 1, End: 2}, {Call: 1, Start: 2, End: 4, Sees: sees}}, Actions: []align.Action{{Predict: 3}}}
		s := torch.NewScope()
		err := torch.Try(func() error { d.Hidden([]*align.Packed{p}); return nil })
		s.Close()
		if err == nil || !strings.Contains(err.Error(), "block of call 1 at 2 sees [") {
			t.Errorf("%s: error %v", name, err)
		}
	}
}
