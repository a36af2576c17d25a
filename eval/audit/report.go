package audit

import (
	"encoding/json"
	"math"

	"github.com/memopd/memopd-bench/align"
)

// Report is what an RCE audit found. The slices Trajectories and each layout's
// Tokens are parallel to what was audited, rejected trajectories left out.
type Report struct {
	Trajectories []Trajectory
	Rejected     []Rejected // trajectories that no layout takes
	Calls        int        // that sampled something
	Tokens       int        // sampled

	Tolerance     float64
	ClipEpsilon   float64
	DType, Device string
	// GradientTrajectories is how many of the first trajectories GradError is over.
	GradientTrajectories int

	Layouts []LayoutReport
	// Recorded compares the log-probs that the sampler recorded with the truth; nil
	// where the ledger has none that are comparable. It has no logits, so no flips.
	Recorded *LayoutReport
	// Incomparable are the trajectories whose recorded log-probs are left out.
	Incomparable []Rejected
	// UnknownTemperature counts trajectories that do not say theirs: 1 is taken.
	UnknownTemperature int
	// Floor is the layout calls in the type that is audited, nil in float32: what
	// that type's rounding alone does.
	Floor *LayoutReport
}

// Trajectory names a trajectory of a report.
type Trajectory struct {
	ID          string
	Calls       int // that sampled something
	Tokens      int
	Temperature float64
	First       int // index of its first token among those of a layout
}

// Rejected is a trajectory that was left out, and why.
type Rejected struct {
	ID     string `json:"id"`
	Reason string `json:"reason"`
}

// LayoutReport compares a layout with the truth. Errors are in nats; a value that
// was not measured is NaN.
type LayoutReport struct {
	Name       string  `json:"name"`
	Tokens     int     `json:"tokens"`
	P50        float64 `json:"p50"` // of |log-prob - true log-prob|
	P99        float64 `json:"p99"`
	Max        float64 `json:"max"`
	Flips      int     `json:"flips"`
	FalseClips int     `json:"false_clips"`
	MaxDLogit  float64 `json:"max_dlogit"` // over tokens and vocabulary
	GradError  float64 `json:"grad_error"` // |g - true g| / |true g| over all weights, of the PPO loss
	Pass       bool    `json:"pass"`

	Spurious int      // actions that were not sampled
	Missing  int      // sampled tokens that are no actions
	States   int      // sampled tokens whose state differs structurally from the true one
	Reasons  []string // why it does not pass

	ByCall []Part // by the call's index, calls that sampled something
	Before Part   // call 0: before the first memory update
	After  Part   // the calls after it

	Failures []Failure // the first failing token of each call of each trajectory
	Records  []Token   // all tokens, in the order of the ledger
}

// Part is a LayoutReport's figures over some of the tokens.
type Part struct {
	Call       int     `json:"call"` // index of the call; -1: several
	Tokens     int     `json:"tokens"`
	P50        float64 `json:"p50"`
	P99        float64 `json:"p99"`
	Max        float64 `json:"max"`
	Flips      int     `json:"flips"`
	FalseClips int     `json:"false_clips"`
	MaxDLogit  float64 `json:"max_dlogit"`
	GradError  float64 `json:"grad_error"` // NaN in ByCall
}

// Token is one sampled token in a layout.
type Token struct {
	Trajectory int // index in Report.Trajectories
	Call       int
	Token      int // index in the call's output
	ID         int32
	Row, Place int // where it stands in the layout's rows; -1: it is no action there

	LogProb float32 // true
	Error   float64 // |log-prob - true log-prob|; +Inf where one is no number
	DLogit  float64 // largest |logit - true logit| over the vocabulary
	Top     int32   // most probable id, in truth
	Flip    bool
	Clip    bool // a false clip
	Same    bool // its state is structurally the true one
}

// failed tells whether a token is one that speaks against its layout.
func (t Token) failed(tolerance float64) bool {
	return t.Error > tolerance || t.Flip || t.Clip || t.Row < 0
}

// Failure explains why a token failed.
type Failure struct {
	Trajectory string       `json:"trajectory"`
	Call       int          `json:"call"`
	Token      int          `json:"token"`
	Row        int          `json:"row"`   // of the layout's rows of this trajectory
	Place      int          `json:"place"` // of the action in the row
	Error      Number       `json:"error"`
	Flip       bool         `json:"flip"`
	Clip       bool         `json:"clip"`
	Parts      []align.Part `json:"parts"` // of the state that differ
	At         int          `json:"at"`    // the place in the row that is wrong, or sees what it should not
	Detail     string       `json:"detail"`
}

// Number is a float64 whose JSON is null where it is no finite number.
type Number float64

// MarshalJSON implements json.Marshaler.
func (n Number) MarshalJSON() ([]byte, error) {
	if math.IsNaN(float64(n)) || math.IsInf(float64(n), 0) {
		return []byte("null"), nil
	}
	return json.Marshal(float64(n))
}

// MarshalJSON writes the layout's Row.
func (l LayoutReport) MarshalJSON() ([]byte, error) { return json.Marshal(l.Row()) }

// MarshalJSON writes null for what was not measured.
func (p Part) MarshalJSON() ([]byte, error) {
	return json.Marshal(struct {
		Call       int    `json:"call"`
		Tokens     int    `json:"tokens"`
		P50        Number `json:"p50"`
		P99        Number `json:"p99"`
		Max        Number `json:"max"`
		Flips      int    `json:"flips"`
		FalseClips int    `json:"false_clips"`
		MaxDLogit  Number `json:"max_dlogit"`
		GradError  Number `json:"grad_error"`
	}{p.Call, p.Tokens, Number(p.P50), Number(p.P99), Number(p.Max), p.Flips, p.FalseClips, Number(p.MaxDLogit), Number(p.GradError)})
}

// Row is a line of bench audit rce --json. A figure that was not measured, or is
// not finite, is null.
type Row struct {
	Name       string `json:"name"`
	Tokens     int    `json:"tokens"`
	P50        Number `json:"p50"`
	P99        Number `json:"p99"`
	Max        Number `json:"max"`
	Flips      *int   `json:"flips"`
	FalseClips int    `json:"false_clips"`
	MaxDLogit  Number `json:"max_dlogit"`
	GradError  Number `json:"grad_error"`
	Pass       bool   `json:"pass"`
}

// Row is the layout's line.
func (l *LayoutReport) Row() Row {
	r := Row{
		Name: l.Name, Tokens: l.Tokens, P50: Number(l.P50), P99: Number(l.P99), Max: Number(l.Max), FalseClips: l.FalseClips,
		MaxDLogit: Number(l.MaxDLogit), GradError: Number(l.GradError), Pass: l.Pass,
	}
	if l.Name != RecordedName {
		r.Flips = &l.Flips
	}
	return r
}

// RecordedName is the Name of Report.Recorded.
const RecordedName = "recorded"

// FloorName is the Name of Report.Floor.
const FloorName = "calls"

// All lists the layouts, the floor if there is one, and the recorded log-probs.
func (r *Report) All() []*LayoutReport {
	var all []*LayoutReport
	for i := range r.Layouts {
		all = append(all, &r.Layouts[i])
	}
	for _, l := range []*LayoutReport{r.Floor, r.Recorded} {
		if l != nil {
			all = append(all, l)
		}
	}
	return all
}

// Rows lists the lines of all of them.
func (r *Report) Rows() []Row {
	var rows []Row
	for _, l := range r.All() {
		rows = append(rows, l.Row())
	}
	return rows
}

// Named is the layout of a name (RecordedName too), nil if it was not audited.
func (r *Report) Named(name string) *LayoutReport {
	for _, l := range r.All() {
		if l.Name == name {
			return l
		}
	}
	return nil
}
