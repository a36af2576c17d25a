package page

import (
	"github.com/memopd/memopd-bench/align"
	"github.com/memopd/memopd-bench/trace"
)

// Audit is what a page shows. Errors are |log-prob - true log-prob| in nats; a figure
// that was not measured is NaN.
type Audit struct {
	Title    string
	Subtitle string // one line: how much was audited, with what

	Pass    bool
	Verdict string // the verdict in a sentence
	Rule    string // when a layout passes

	Tolerance   float64 // of the 99th percentile
	ClipEpsilon float64

	Rows     []Row
	Failures []Failure
	Hashes   []Fact // of the certificate
	Settings []Fact
	Notes    []string

	Trajectories []Trajectory // those that are shown token by token
	Total        int          // trajectories audited

	// Text is a token's text; nil: ids are shown.
	Text func(id int32) string
}

// Row is a layout over all trajectories.
type Row struct {
	Layout      string
	Description string
	Role        string // "audited", "control", …
	Figures
	MaxDLogit float64
	GradError float64
	States    int // sampled tokens whose state differs; -1: not known
	Spurious  int // actions that were not sampled
	Missing   int // sampled tokens that are no actions
	Pass      bool
	Reasons   []string // why it does not pass

	Before, After Figures   // the first memory update
	ByCall        []Figures // by the call's index
	Published     *Published
}

// Figures sum up the errors of some tokens.
type Figures struct {
	Call          int // of ByCall
	Tokens        int
	P50, P99, Max float64
	Flips         int // -1: not measured
	FalseClips    int
}

// Published are numbers that others measured for a layout, as words; "" for none.
type Published struct {
	Source                         string
	Tokens, P99, Flips, FalseClips string
}

// Failure explains why a layout fails: the first failing token of a call.
type Failure struct {
	Layout     string
	Trajectory string
	Call       int // -1: of the whole trajectory
	Token      int
	Place      int
	Error      float64
	Flip, Clip bool
	Parts      []string // of the state that differ
	Detail     string
	More       int // calls of this layout that fail too and are not shown
}

// Fact is a name with a value.
type Fact struct{ Name, Value string }

// Trajectory is one that is shown in all layouts.
type Trajectory struct {
	Record  *trace.Trajectory
	Layouts []LayoutView
}

// LayoutView is a trajectory in one layout.
type LayoutView struct {
	Name        string
	Description string
	Rows        []*align.Packed
	Tokens      []TokenError // of the sampled tokens, in the order of the ledger
}

// TokenError is what became of a sampled token.
type TokenError struct {
	Call, Token int
	Error       float64
	Flip, Clip  bool
}
