package model

import (
	"slices"

	"github.com/memopd/memopd-bench/torch"
)

// opening is a context that is to be run, for a cache row. Its first prefix
// tokens are likely to stand at the head of other contexts.
type opening struct {
	ids    []int32
	prefix int
	row    int
}

// prefillPlan is how a number of openings are run in one pass: what of them is
// kept already is looked up, what several of them begin with is run once.
type prefillPlan struct {
	layout *layout
	spans  []span
	past   []pastPart
	pick   []int64 // the flat last token of each opening
	source []int64 // the keys that go into the cache, in the order of rows and places
	rows   []int
	places []int
	fresh  []*freshPrefix
	ran    []int // the tokens that are run for each opening
}

// pastPart is the beginning of a kept sequence.
type pastPart struct {
	entry  *prefixEntry
	tokens int
}

// freshPrefix is a prefix that is not kept yet.
type freshPrefix struct {
	ids   []int32
	users int
	keys  []int64 // nil until it is laid out
}

// beginning is what an opening finds at hand.
type beginning struct {
	entry  *prefixEntry
	common int          // tokens in common with it
	fresh  *freshPrefix // nil: the prefix is kept already, or is not to be
}

// plan lays openings out.
func (s *prefixStore) plan(openings []opening) *prefillPlan {
	p := &prefillPlan{layout: &layout{}}
	found := make([]beginning, len(openings))
	for i, o := range openings {
		found[i] = s.find(p, o)
	}
	offsets := map[*prefixEntry]int{}
	for _, part := range p.past {
		offsets[part.entry] = p.layout.past
		p.layout.past += part.tokens
	}
	for i, o := range openings {
		p.lay(o, found[i], offsets)
	}
	p.layout.group(p.spans)
	return p
}

// find looks up what is at hand of an opening, and notes it in the plan.
func (s *prefixStore) find(p *prefillPlan, o opening) beginning {
	var b beginning
	b.entry, b.common = s.match(o.ids)
	if b.entry != nil {
		p.use(b.entry, b.tokens(o))
	}
	if o.prefix < reuseMin || b.common >= o.prefix || s.bytesMax == 0 {
		return b
	}
	ids := o.ids[:o.prefix]
	for _, f := range p.fresh {
		if slices.Equal(f.ids, ids) {
			f.users++
			b.fresh = f
			return b
		}
	}
	b.fresh = &freshPrefix{ids: ids, users: 1}
	p.fresh = append(p.fresh, b.fresh)
	return b
}

// tokens is how many kept tokens are used: the last token of a context must run, for its logits.
func (b *beginning) tokens(o opening) int { return min(b.common, len(o.ids)-1) }

// use notes that so many tokens of an entry are attended to.
func (p *prefillPlan) use(e *prefixEntry, tokens int) {
	for i := range p.past {
		if p.past[i].entry == e {
			p.past[i].tokens = max(p.past[i].tokens, tokens)
			return
		}
	}
	p.past = append(p.past, pastPart{e, tokens})
}

// lay appends what an opening has to run.
func (p *prefillPlan) lay(o opening, b beginning, offsets map[*prefixEntry]int) {
	before := len(p.layout.ids)
	keys := count(offsets[b.entry], b.tokens(o))
	if f := b.fresh; f != nil && f.users > 1 {
		if f.keys == nil {
			f.keys = p.run(f.ids, keys)
		}
		keys = f.keys
	}
	if len(keys) < len(o.ids) {
		keys = p.run(o.ids, keys)
	}
	if f := b.fresh; f != nil && f.keys == nil {
		f.keys = keys[:len(f.ids)]
	}
	p.pick = append(p.pick, keys[len(keys)-1]-int64(p.layout.past))
	p.source = append(p.source, keys...)
	for place := range o.ids {
		p.rows, p.places = append(p.rows, o.row), append(p.places, place)
	}
	p.ran = append(p.ran, len(p.layout.ids)-before)
}

// run appends a span with the tokens of ids for which there are no keys yet, and
// returns the keys of all.
func (p *prefillPlan) run(ids []int32, keys []int64) []int64 {
	l := p.layout
	start, length := len(l.ids), len(ids)-len(keys)
	for place := len(keys); place < len(ids); place++ {
		l.ids, l.positions = append(l.ids, int64(ids[place])), append(l.positions, int32(place))
	}
	p.spans = append(p.spans, span{start, length, keys})
	return append(slices.Clone(keys), count(l.past+start, length)...)
}

// prefill runs openings, stores their keys and values in their cache rows, keeps
// their prefixes, and returns the logits (openings, V) after each one's last token.
func (d *Decoder) prefill(c *cache, store *prefixStore, p *prefillPlan) *torch.Tensor {
	s := torch.NewScope()
	defer s.Close()
	w := &prefillKeys{plan: p, cache: c, index: c.index(p.rows, p.places)}
	defer w.drop()
	if p.layout.past > 0 || len(p.source) != len(p.layout.ids) {
		w.source = d.ints(p.source)
	}
	for _, f := range p.fresh {
		if store.fits(len(f.ids)) {
			w.fresh = append(w.fresh, &prefixEntry{ids: slices.Clone(f.ids)})
			w.freshKeys = append(w.freshKeys, d.ints(f.keys))
		}
	}
	logits := d.Logits(d.run(p.layout, p.pick, w))
	for _, e := range w.fresh {
		store.put(e)
	}
	w.fresh = nil
	store.trim()
	return s.Keep(logits)
}

// prefillKeys is a prefill's side of cached: it puts kept keys before the new ones and
// stores all where they belong.
type prefillKeys struct {
	plan          *prefillPlan
	cache         *cache
	index, source *torch.Tensor  // source nil: the flat tokens in their order
	fresh         []*prefixEntry // to be kept
	freshKeys     []*torch.Tensor
}

// drop frees what a failed pass leaves.
func (w *prefillKeys) drop() {
	for _, e := range w.fresh {
		e.free()
	}
}

func (w *prefillKeys) join(layer int, k, v *torch.Tensor) (allK, allV *torch.Tensor) {
	if len(w.plan.past) > 0 {
		var ks, vs []*torch.Tensor
		for _, part := range w.plan.past {
			ks = append(ks, part.entry.keys[layer].Narrow(0, 0, int64(part.tokens)))
			vs = append(vs, part.entry.values[layer].Narrow(0, 0, int64(part.tokens)))
		}
		k, v = torch.Cat(append(ks, k), 0), torch.Cat(append(vs, v), 0)
	}
	for i, e := range w.fresh {
		e.keys = append(e.keys, k.IndexSelect(0, w.freshKeys[i]).Own())
		e.values = append(e.values, v.IndexSelect(0, w.freshKeys[i]).Own())
	}
	if w.source == nil {
		w.cache.write(layer, w.index, k, v)
	} else {
		w.cache.write(layer, w.index, k.IndexSelect(0, w.source), v.IndexSelect(0, w.source))
	}
	return k, v
}
