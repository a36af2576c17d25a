package model

import (
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/memopd/memopd-bench/align"
	"github.com/memopd/memopd-bench/torch"
)

// TestGroupsPadLittle holds the padding of attention down where lengths differ much.
func TestGroupsPadLittle(t *testing.T) {
	rng := rand.New(rand.NewPCG(4, 4))
	var spans []span
	l := &layout{}
	for range 400 {
		n := 10 + rng.IntN(120)
		spans = append(spans, span{start: len(l.ids), length: n})
		l.ids = append(l.ids, make([]int64, n)...)
	}
	l.group(spans)
	padded := 0
	for _, g := range l.groups {
		padded += g.rows * g.own
	}
	if share := float64(padded) / float64(len(l.ids)); share > 1.2 {
		t.Errorf("%d groups hold %.2f times the tokens", len(l.groups), share)
	}
}

// TestGroupsOfTreesPadLittle holds it down where what rows see differs much, too.
func TestGroupsOfTreesPadLittle(t *testing.T) {
	rng := rand.New(rand.NewPCG(4, 5))
	p := &align.Packed{PrefixLength: 300}
	p.IDs, p.Positions = make([]int32, 300), make([]int32, 300)
	branch(rng, p, []align.Range{{Start: 0, End: 300}}, 5)
	l, _, err := newLayout([]*align.Packed{p})
	if err != nil {
		t.Fatal(err)
	}
	_, used := scores(appendSpans(nil, p, 0))
	padded := 0
	for _, g := range l.groups {
		padded += g.rows * g.own * (g.own + g.prefix)
	}
	if share := float64(padded) / float64(used); share > 1.25 || len(p.Blocks) < 30 || len(l.groups) > len(p.Blocks)/2 {
		t.Errorf("%d groups of %d blocks hold %.2f times the scores", len(l.groups), len(p.Blocks), share)
	}
}

// branch appends blocks of random length that see what is given, and below some of them others.
func branch(rng *rand.Rand, p *align.Packed, sees []align.Range, levels int) {
	for range 2 + rng.IntN(2) {
		start, n := len(p.IDs), 20+rng.IntN(200)
		p.IDs, p.Positions = append(p.IDs, make([]int32, n)...), append(p.Positions, make([]int32, n)...)
		p.Blocks = append(p.Blocks, align.Block{Start: start, End: start + n, Sees: sees})
		if levels > 1 && rng.IntN(4) > 0 {
			branch(rng, p, append(append([]align.Range{}, sees...), align.Range{Start: start, End: start + n}), levels-1)
		}
	}
}

// TestMaskIsVisible holds the groups' masks to align's definition of what sees what.
func TestMaskIsVisible(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 5))
	for range 30 {
		p, _ := episode(rng, 50, 1+rng.IntN(5), 2+rng.IntN(12))
		other, _ := episode(rng, 50, 1+rng.IntN(5), 2+rng.IntN(12))
		l, starts, err := newLayout([]*align.Packed{other, p})
		if err != nil {
			t.Fatal(err)
		}
		sees := visible(l)
		for q := range p.IDs {
			for k := range l.ids {
				own := k - starts[1]
				want := own >= 0 && p.Visible(q, own)
				if sees[[2]int{starts[1] + q, k}] != want {
					t.Fatalf("token %d sees %d: %v, want %v (blocks %v)", q, own, !want, want, p.Blocks)
				}
			}
		}
	}
}

// visible reads (query, key) pairs of flat tokens out of a layout's groups, at
// the places whose outputs are used.
func visible(l *layout) map[[2]int]bool {
	sees := map[[2]int]bool{}
	used := map[int]int{} // output place -> flat token
	for token, place := range l.back {
		used[int(place)] = token
	}
	offset := 0
	s := torch.NewScope()
	defer s.Close()
	for i := range l.groups {
		g := &l.groups[i]
		mask := (&Decoder{}).mask(g)
		values, rows := mask.Float32s(), int(mask.Dim(0))
		width := g.prefix + g.own
		for r := range g.rows {
			for c := range g.own {
				token, ok := used[offset+r*g.own+c]
				if !ok {
					continue
				}
				line := values[(min(r, rows-1)*g.own+c)*width:][:width]
				for k, v := range line {
					if v == 0 {
						sees[[2]int{token, int(g.keys[r*width+k])}] = true
					}
				}
			}
		}
		offset += g.rows * g.own
	}
	return sees
}

func TestHiddenRefusesMalformed(t *testing.T) {
	d := newModel(t, tiny(Llama), 1, 1)
	good := func() *align.Packed {
		return &align.Packed{IDs: []int32{1, 2, 3, 4}, Positions: []int32{0, 1, 1, 2}, PrefixLength: 1,
			Blocks: []align.Block{{Call: 0, Start: 1, End: 2}, {Call: 1, Start: 2, End: 4}}, Actions: []align.Action{{Predict: 3}}}
	}
	for name, c := range map[string]struct {
		change func(*align.Packed)
		want   string
	}{
		"gap":       {func(p *align.Packed) { p.Blocks[1].Start = 3 }, "block of call 1"},
		"short":     {func(p *align.Packed) { p.Blocks = p.Blocks[:1] }, "end at 2 of 4"},
		"positions": {func(p *align.Packed) { p.Positions = p.Positions[1:] }, "4 ids and 3 positions"},
		"negative":  {func(p *align.Packed) { p.Positions[2] = -1 }, "position -1"},
		"predict":   {func(p *align.Packed) { p.Actions[0].Predict = 4 }, "prediction position 4"},
		"empty":     {func(p *align.Packed) { *p = align.Packed{} }, "0 ids"},
		"id":        {func(p *align.Packed) { p.IDs[2] = 50 }, "out of range"},
	} {
		p := good()
		c.change(p)
		s := torch.NewScope()
		err := torch.Try(func() error { d.Hidden([]*align.Packed{good(), p}); return nil })
		s.Close()
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v, want %q in it", name, err, c.want)
		}
	}
}

func TestHiddenWithoutActions(t *testing.T) {
	d := newModel(t, tiny(Llama), 1, 1)
	p, _ := episode(rand.New(rand.NewPCG(1, 1)), 50, 2, 5)
	p.Actions = nil
	s := torch.NewScope()
	defer s.Close()
	if got := d.Hidden([]*align.Packed{p}).Shape(); got[0] != 0 || got[1] != 32 {
		t.Errorf("shape %v, want [0 32]", got)
	}
}
