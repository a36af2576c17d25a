package align

import "github.com/memopd/memopd-bench/trace"

// corrupted lays calls out with one shared prefix and then spoils one part of the
// state, or several: MemOPD's controls (its corruption study). Only the prefix is stored once,
// so that every call has tokens of its own to spoil.
func corrupted(spoils ...func(*Packed)) func(*trace.Trajectory, Options) ([]*Packed, error) {
	return one(func(t *trace.Trajectory, o Options) (*Packed, error) {
		p, err := compileBlocks(t, o)
		if err != nil {
			return nil, err
		}
		for _, spoil := range spoils {
			spoil(p)
		}
		return p, nil
	})
}

// seeAll shows each token all that stand before it, of other calls too.
func seeAll(p *Packed) {
	p.Blocks = []Block{{Call: -1, Start: p.PrefixLength, End: len(p.IDs)}}
}

// march numbers the tokens through, where each call should go on from the prefix.
func march(p *Packed) {
	for i := range p.Positions {
		p.Positions[i] = int32(i)
	}
}

// compileBlocks is Compile with PrefixOnly.
func compileBlocks(t *trace.Trajectory, o Options) (*Packed, error) {
	o.PrefixOnly = true
	return Compile(t, o)
}
