package align

import (
	"fmt"
	"slices"

	"github.com/memopd/memopd-bench/trace"
)

// trie holds what calls see and sample after the task prefix, each common
// beginning once. Positions go on from the prefix in every call, so that equal
// beginnings are equal tokens at equal positions: the same states.
type trie struct {
	root  *node // of no tokens
	share bool  // beginnings are stored once; else each call has a node of its own
	paths []path
}

// path is a call that sampled something.
type path struct {
	trajectory, call int
	leaf             *node // where it ends, or a little before the node's end
	length           int   // tokens after the prefix
}

// node is a run of tokens that the same calls share. One that has children has
// several.
type node struct {
	parent           *node
	depth            int // tokens between the prefix and the node
	ids              []int32
	children         []*node // in order of first use
	place            int     // among the parent's children
	byID             map[int32]*node
	trajectory, call int // whose tokens they are, -1: of several
	start            int // physical place, once laid out
}

// add inserts the call's context after the prefix and its output.
func (t *trie) add(trajectory, call int, ids []int32) {
	n, at := t.root, 0
	if t.share {
		n, at = t.descend(trajectory, call, ids)
	}
	switch rest := ids[at:]; {
	case len(rest) == 0:
	case n != t.root && len(n.children) == 0:
		n.ids = append(n.ids, rest...) // the call goes on where another ended
	default:
		child := &node{parent: n, depth: at, ids: rest, trajectory: trajectory, call: call}
		n.adopt(child, t.share)
		n = child
	}
	t.paths = append(t.paths, path{trajectory, call, n, len(ids)})
}

// descend follows ids as far as they are there, and marks and splits nodes on the
// way: ids[:at] end with the node n.
func (t *trie) descend(trajectory, call int, ids []int32) (n *node, at int) {
	for n = t.root; at < len(ids); {
		next := n.byID[ids[at]]
		if next == nil {
			return n, at
		}
		common := commonLength(next.ids, ids[at:])
		at += common
		if common < len(next.ids) && at < len(ids) {
			next = next.split(common)
		}
		next.use(trajectory, call)
		n = next
	}
	return n, at
}

// use notes that a call goes through the node.
func (n *node) use(trajectory, call int) {
	if n.trajectory != trajectory {
		n.trajectory, n.call = -1, -1
	}
	if n.call != call {
		n.call = -1
	}
}

// split puts the first tokens of a node into a new one above it.
func (n *node) split(length int) *node {
	upper := &node{parent: n.parent, depth: n.depth, ids: n.ids[:length:length], trajectory: n.trajectory, call: n.call}
	n.parent.replace(n, upper)
	n.depth += length
	n.ids = n.ids[length:]
	upper.adopt(n, true)
	return upper
}

func (n *node) replace(old, child *node) {
	child.place = old.place
	n.children[old.place] = child
	n.byID[child.ids[0]] = child
}

func (n *node) adopt(child *node, index bool) {
	child.parent, child.place = n, len(n.children)
	n.children = append(n.children, child)
	if !index {
		return
	}
	if n.byID == nil {
		n.byID = map[int32]*node{}
	}
	n.byID[child.ids[0]] = child
}

func commonLength(a, b []int32) int {
	n := min(len(a), len(b))
	for i := range n {
		if a[i] != b[i] {
			return i
		}
	}
	return n
}

// lay stores the nodes below n as blocks, each after what it sees.
func (b *builder) lay(n *node, sees []Range) {
	for _, child := range n.children {
		child.start = len(b.p.IDs)
		b.p.IDs = append(b.p.IDs, child.ids...)
		for i := range child.ids {
			b.p.Positions = append(b.p.Positions, int32(b.p.PrefixLength+child.depth+i))
		}
		block := Block{Trajectory: child.trajectory, Call: child.call, Start: child.start, End: len(b.p.IDs)}
		if n.parent != nil {
			block.Sees = sees
		}
		b.p.Blocks = append(b.p.Blocks, block)
		b.lay(child, ranges(append(slices.Clip(sees), Range{block.Start, block.End})...))
	}
}

// actions appends the sampled tokens of a path.
func (b *builder) actions(t *trace.Trajectory, p path) {
	output := t.Calls[p.call].Output
	first := p.length - len(output)
	places := p.places(max(first-1, 0)) // from the place that predicts the first one, if it is not the prefix's last
	for i, id := range output {
		a := Action{Trajectory: p.trajectory, Call: p.call, Token: i, ID: id, Predict: b.p.PrefixLength - 1,
			Teacher: b.o.Teacher == nil || b.o.Teacher(t, p.call, i)}
		a.Index = places[len(places)-len(output)+i]
		if first+i > 0 {
			a.Predict = places[len(places)-len(output)+i-1]
		}
		b.p.Actions = append(b.p.Actions, a)
	}
}

// places are the physical places of the tokens of a path from number first on.
func (p path) places(first int) []int {
	places := make([]int, p.length-first)
	for n, end := p.leaf, p.length; end > first; end, n = min(end, n.depth), n.parent {
		for i := max(first, n.depth); i < end; i++ {
			places[i-first] = n.start + i - n.depth
		}
	}
	return places
}

// compile packs the calls of trajectories that have the prefix of the first.
func compile(ts []*trace.Trajectory, o Options) (*Packed, error) {
	tree := &trie{root: &node{}, share: !o.PrefixOnly}
	b := newBuilder(ts[0], o)
	if len(ts) > 1 {
		b.p.TrajectoryID = fmt.Sprintf("%s and %d more", ts[0].ID, len(ts)-1)
	}
	for i, t := range ts {
		for k := range t.Calls {
			if c := &t.Calls[k]; len(c.Output) > 0 {
				tree.add(i, k, slices.Concat(c.Context[len(t.Prefix):], c.Output))
			}
		}
	}
	b.lay(tree.root, []Range{{0, b.p.PrefixLength}})
	for _, p := range tree.paths {
		b.actions(ts[p.trajectory], p)
	}
	return b.finish()
}
