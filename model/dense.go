package model

import (
	"math"

	"github.com/memopd/memopd-bench/align"
	"github.com/memopd/memopd-bench/torch"
)

// dense lays the sequences' attention out anew: each is one group whose every
// query meets every key under a mask (L, L). It is the reference that the groups
// of newLayout are measured against; its work and memory grow with the square of
// the sequence.
func (l *layout) dense(batch []*align.Packed) {
	l.groups = nil
	l.back = count(0, len(l.ids))
	start := 0
	for _, p := range batch {
		n := len(p.IDs)
		l.groups = append(l.groups, group{rows: 1, own: n, queries: count(start, n), prefixLengths: []int64{0}, visible: p})
		start += n
	}
}

// denseMask is the additive mask of a whole sequence, (1, 1, L, L) float32: 0
// where (*align.Packed).Visible, minus infinity elsewhere.
func denseMask(p *align.Packed) *torch.Tensor {
	n := len(p.IDs)
	mask := make([]float32, n*n)
	for i := range mask {
		mask[i] = float32(math.Inf(-1))
	}
	block := -1 // the prefix
	for q := range n {
		row := mask[q*n : (q+1)*n]
		for block+1 < len(p.Blocks) && p.Blocks[block+1].Start <= q {
			block++
		}
		if block < 0 {
			clear(row[:q+1])
			continue
		}
		b := &p.Blocks[block]
		if b.Sees == nil {
			clear(row[:p.PrefixLength])
		}
		for _, r := range b.Sees {
			clear(row[r.Start:r.End])
		}
		clear(row[b.Start : q+1])
	}
	return torch.FromFloat32(mask, 1, 1, int64(n), int64(n))
}
