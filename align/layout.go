package align

import (
	"fmt"
	"strings"

	"github.com/memopd/memopd-bench/trace"
)

// Layout is a way to lay a trajectory out in training rows. Its actions that are
// not spurious are those of Compile, one to one and in order, so that two layouts
// can be compared action by action.
type Layout struct {
	Name        string
	Description string // one line, for tables and help

	// Rows lays a trajectory out. The error is a *Rejected.
	Rows func(t *trace.Trajectory, o Options) ([]*Packed, error)
}

// Layouts lists the layouts, the aligned one first.
func Layouts() []Layout {
	return []Layout{
		{"aligned", "each call's ids, positions and visibility in one packed sequence", one(Compile)},
		{"calls", "one row a call: the states of the rollout themselves", Calls},
		{"persistent", "the flattened history: marching positions, all earlier tokens visible", one(Persistent)},
		{"visibility", "each call's ids and positions, but all earlier tokens visible", corrupted(seeAll)},
		{"positions", "each call's ids and visibility, but positions that march on from call to call", corrupted(march)},
		{"both", "each call's ids, but marching positions and all earlier tokens visible", corrupted(seeAll, march)},
		{"mem1", "the flattened history under the mask and positions of MEM1's published training", one(MEM1)},
		{"trajectory-mask", "each call's state, but observations taken for actions too", one(TrajectoryMask)},
		{"response-mask", "each call's state, but observations and context copies taken for actions too", one(ResponseMask)},
	}
}

// LayoutNamed returns the layout of a name.
func LayoutNamed(name string) (Layout, error) {
	var known []string
	for _, l := range Layouts() {
		if l.Name == name {
			return l, nil
		}
		known = append(known, l.Name)
	}
	return Layout{}, fmt.Errorf("unknown layout %q (known: %s)", name, strings.Join(known, ", "))
}

// one makes a list of a single row.
func one(compile func(*trace.Trajectory, Options) (*Packed, error)) func(*trace.Trajectory, Options) ([]*Packed, error) {
	return func(t *trace.Trajectory, o Options) ([]*Packed, error) {
		p, err := compile(t, o)
		if err != nil {
			return nil, err
		}
		return []*Packed{p}, nil
	}
}
