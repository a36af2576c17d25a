package train

import (
	"strings"

	"github.com/memopd/memopd-bench/model"
)

// frozen is a model that is not trained, a reference or a teacher, in the type that
// the run computes in.
type frozen struct {
	decoder *model.Decoder // where it rests: the run's device, or the host
	own     bool           // made here
	away    bool           // it is copied to the device for each use
	c       Compute
}

// AtRest is the placement of reference and teacher between their uses: that of
// Frozen, or the host's memory with OffloadFrozen.
func (c PPOConfig) AtRest() model.Placement {
	p := c.Frozen()
	if c.OffloadFrozen {
		p.Device = "cpu"
	}
	return p
}

// freeze takes a model as a constant of the run. It is copied unless it is stored
// where and as the run wants it.
func (c PPOConfig) freeze(d *model.Decoder) *frozen {
	z := &frozen{decoder: d, away: c.OffloadFrozen, c: c.Compute}
	want := c.AtRest()
	if !samePlacement(d.Placement(), want) {
		z.decoder, z.own = d.CloneTo(want), true
	}
	z.decoder.Freeze()
	return z
}

// samePlacement tells whether two placements are one; "cuda" is its first device.
func samePlacement(a, b model.Placement) bool {
	first := func(p model.Placement) model.Placement {
		if p.Device = strings.TrimSuffix(p.Device, ":0"); p.Device == "" {
			p.Device = "cpu"
		}
		return p
	}
	return first(a) == first(b)
}

// use calls f with the model on the run's device.
func (z *frozen) use(f func(d *model.Decoder)) {
	if !z.away {
		f(z.decoder)
		return
	}
	on := z.decoder.CloneTo(z.c.Frozen())
	defer on.Free()
	on.Freeze()
	f(on)
}

// head is the model's head on the run's device, float32; the caller frees it.
func (z *frozen) head() *model.Head { return z.decoder.Head(z.c.Device) }

// free ends what freeze made; nil has nothing.
func (z *frozen) free() {
	if z != nil && z.own {
		z.decoder.Free()
	}
}
