package align

import "fmt"

// Reason classes why a trajectory is not compiled.
type Reason string

// The reasons of a rejection.
const (
	ReasonPackedTokens Reason = "packed_tokens" // longer than Options.MaxPackedTokens
	ReasonCallTokens   Reason = "call_tokens"   // a call longer than Options.MaxCallTokens
	ReasonNoActions    Reason = "no_actions"    // nothing was sampled
	ReasonInconsistent Reason = "inconsistent"  // the record contradicts itself
)

// Rejected is the error of a trajectory that is left out whole. Nothing is ever
// cut to fit: a token that lost part of its context would be another decision.
type Rejected struct {
	TrajectoryID string
	Reason       Reason
	Call         int // the call that it was found in, -1 for the whole trajectory
	Detail       string
}

// Error names the trajectory, the call if one is to blame, the reason and the detail.
func (r *Rejected) Error() string {
	where := fmt.Sprintf("trajectory %q", r.TrajectoryID)
	if r.Call >= 0 {
		where += fmt.Sprintf(", call %d", r.Call)
	}
	return fmt.Sprintf("align: %s rejected (%s): %s", where, r.Reason, r.Detail)
}
