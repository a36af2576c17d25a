package page

import (
	"errors"
	"fmt"

	"github.com/memopd/memopd-bench/align"
	"github.com/memopd/memopd-bench/trace"
)

// fits refuses rows that cannot be drawn: those that are not the trajectory's, or
// contradict themselves.
func fits(t *trace.Trajectory, rows []*align.Packed) error {
	if len(rows) == 0 {
		return errors.New("no rows")
	}
	for i, p := range rows {
		n := len(p.IDs)
		if n == 0 || len(p.Positions) != n || p.PrefixLength < 0 || p.PrefixLength > n {
			return fmt.Errorf("row %d: %d ids, %d positions, a prefix of %d", i, n, len(p.Positions), p.PrefixLength)
		}
		at := p.PrefixLength
		for _, b := range p.Blocks {
			if b.Start != at || b.End < b.Start || b.End > n {
				return fmt.Errorf("row %d: block [%d, %d) after place %d", i, b.Start, b.End, at)
			}
			at = b.End
		}
		for _, a := range p.Actions {
			ok := a.Index >= 0 && a.Index < n && a.Predict >= 0 && a.Predict < n
			if ok && !a.Spurious() {
				ok = a.Call >= 0 && a.Call < len(t.Calls) && a.Token < len(t.Calls[a.Call].Output)
			}
			if !ok {
				return fmt.Errorf("row %d: action %+v is outside of it or of the record", i, a)
			}
		}
	}
	return nil
}
