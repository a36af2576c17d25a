package aligntest

import "github.com/memopd/memopd-bench/align"

// Dense is what the blocks of a sequence say of visibility as a matrix [query][key].
func Dense(p *align.Packed) [][]bool {
	sees := make([][]bool, len(p.IDs))
	for q := range sees {
		sees[q] = make([]bool, len(p.IDs))
		for k := 0; q < p.PrefixLength && k <= q; k++ {
			sees[q][k] = true
		}
	}
	for _, b := range p.Blocks {
		before := b.Sees
		if before == nil {
			before = []align.Range{{Start: 0, End: p.PrefixLength}}
		}
		for q := b.Start; q < b.End; q++ {
			for _, r := range before {
				for k := r.Start; k < r.End; k++ {
					sees[q][k] = true
				}
			}
			for k := b.Start; k <= q; k++ {
				sees[q][k] = true
			}
		}
	}
	return sees
}
