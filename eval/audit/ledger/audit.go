// Package ledger audits recorded trajectories without their model: whether a
// record agrees with itself, whether later prompts show the ids that were sampled,
// whether anything was cut, and whether the log-probs mean what a trainer takes
// them for.
//
// A failure is a contradiction: the record does not agree with itself, or a later
// call saw other ids than those that were sampled, or log-probs that cannot be
// those of what was drawn. A warning is what a trainer should know, and what the
// record does not say.
package ledger

import (
	"fmt"
	"slices"

	"github.com/memopd/memopd-bench/model/tokenizer"
	"github.com/memopd/memopd-bench/trace"
)

// Options of an audit; the zero value needs nothing.
type Options struct {
	// Tokenizer says what ids mean, nil: it is not at hand, and what needs it is not checked.
	Tokenizer *tokenizer.Tokenizer
	// StopIDs end an output; empty: they are found in the outputs.
	StopIDs []int32
}

// The checks, in the order of their rows.
const (
	CheckLengths    = "lengths"     // a log-prob for each output id
	CheckLogProbs   = "log-probs"   // finite, at most 0, there
	CheckStops      = "stop tokens" // once, and last
	CheckSpans      = "spans"       // contexts hold what spans claim
	CheckPrefix     = "prefix"      // every context begins with it
	CheckRecord     = "record"      // everything else that a ledger promises
	CheckDrift      = "drift"       // later prompts show the sampled ids
	CheckParts      = "parts"       // later prompts show whole outputs
	CheckOrigins    = "origins"     // where contexts came from is known
	CheckCut        = "cut"         // nothing was cut
	CheckSampler    = "sampler"     // settings are known and fit the log-probs
	CheckLacks      = "lacks"       // the source held everything
	CheckEncoding   = "encoding"    // text of outputs encodes to the same ids
	CheckSeparators = "separators"  // between turns stands the same
)

// Checks lists the names of the checks.
func Checks() []string {
	return []string{CheckLengths, CheckLogProbs, CheckStops, CheckSpans, CheckPrefix, CheckRecord, CheckDrift, CheckParts,
		CheckOrigins, CheckCut, CheckSampler, CheckLacks, CheckEncoding, CheckSeparators}
}

// needsTokenizer says which checks are left out without one.
func needsTokenizer(check string) bool { return check == CheckEncoding || check == CheckSeparators }

// Row is what one check found. Trajectories, Calls and Tokens are what it looked
// at; Failures and Warnings count findings.
type Row struct {
	Check        string   `json:"check"`
	Trajectories int      `json:"trajectories"`
	Calls        int      `json:"calls"`
	Tokens       int      `json:"tokens"`
	Failures     int      `json:"failures"`
	Warnings     int      `json:"warnings"`
	First        *Finding `json:"first"` // the first failure, else the first warning
}

// Finding is one thing that a check found.
type Finding struct {
	Trajectory string `json:"trajectory"`
	Call       int    `json:"call"`  // that it was found in, -1: not of a call
	Token      int    `json:"token"` // what of, by the problem; -1: of none
	Failure    bool   `json:"failure"`
	Problem    string `json:"problem"`

	// Both sides, where ids differ: those recorded and those found in their place.
	Recorded     []int32 `json:"recorded,omitempty"`
	Found        []int32 `json:"found,omitempty"`
	RecordedText string  `json:"recorded_text,omitempty"` // with a tokenizer
	FoundText    string  `json:"found_text,omitempty"`
}

// Audit takes trajectories one by one.
type Audit struct {
	o     Options
	rows  map[string]*Row
	lacks map[string]int
	found []kept
}

// findingsKept bounds what Findings returns of each check.
const findingsKept = 100

// New starts an audit.
func New(o Options) *Audit {
	a := &Audit{o: o, rows: map[string]*Row{}, lacks: map[string]int{}}
	for _, check := range Checks() {
		a.rows[check] = &Row{Check: check}
	}
	return a
}

// Add audits one trajectory. It need not Validate.
func (a *Audit) Add(t *trace.Trajectory) {
	for _, check := range Checks() {
		if !needsTokenizer(check) {
			a.rows[check].Trajectories++
		}
	}
	s := &subject{Audit: a, t: t}
	s.record()
	s.logProbs()
	s.stops()
	s.drift()
	s.cut()
	s.sampler()
	s.lack()
	if a.o.Tokenizer != nil {
		a.rows[CheckEncoding].Trajectories++
		a.rows[CheckSeparators].Trajectories++
		s.encoding()
		s.separators()
	}
}

// Rows lists the checks that were made.
func (a *Audit) Rows() []Row {
	var rows []Row
	for _, check := range Checks() {
		if a.o.Tokenizer != nil || !needsTokenizer(check) {
			rows = append(rows, *a.rows[check])
		}
	}
	return rows
}

// Failures counts the failures of all checks.
func (a *Audit) Failures() int {
	n := 0
	for _, row := range a.rows {
		n += row.Failures
	}
	return n
}

// Lacks counts trajectories by what their sources lack.
func (a *Audit) Lacks() map[string]int { return a.lacks }

// Findings lists what a check found, failures and warnings in order, the first
// hundred of them.
func (a *Audit) Findings(check string) []Finding {
	var all []Finding
	for _, f := range a.found {
		if f.check == check {
			all = append(all, f.Finding)
		}
	}
	return all
}

// subject is the trajectory at hand.
type subject struct {
	*Audit
	t *trace.Trajectory
}

// saw counts what a check looked at.
func (s *subject) saw(check string, calls, tokens int) {
	s.rows[check].Calls += calls
	s.rows[check].Tokens += tokens
}

func (s *subject) fail(check string, f Finding) {
	f.Failure = true
	s.note(check, f)
}

func (s *subject) warn(check string, f Finding) { s.note(check, f) }

func (s *subject) note(check string, f Finding) {
	f.Trajectory = s.t.ID
	if tok := s.o.Tokenizer; tok != nil && (f.Recorded != nil || f.Found != nil) {
		f.RecordedText, f.FoundText = tok.Decode(f.Recorded), tok.Decode(f.Found)
	}
	row := s.rows[check]
	if f.Failure {
		row.Failures++
	} else {
		row.Warnings++
	}
	if row.First == nil || f.Failure && !row.First.Failure {
		row.First = &f
	}
	if row.Failures+row.Warnings <= findingsKept {
		s.found = append(s.found, kept{check, f})
	}
}

// kept is a finding with its check.
type kept struct {
	check string
	Finding
}

// String is one line about the finding.
func (f Finding) String() string {
	where := fmt.Sprintf("%q", f.Trajectory)
	if f.Call >= 0 {
		where += fmt.Sprintf(", call %d", f.Call)
	}
	if f.Token >= 0 {
		where += fmt.Sprintf(", token %d", f.Token)
	}
	text := where + ": " + f.Problem
	if f.Recorded != nil || f.Found != nil {
		text += fmt.Sprintf(": recorded %v, found %v", f.Recorded, f.Found)
	}
	if f.RecordedText != "" || f.FoundText != "" {
		text += fmt.Sprintf(" (%q, %q)", f.RecordedText, f.FoundText)
	}
	return text
}

// some bounds a list of ids for a finding.
func some(ids []int32) []int32 {
	const most = 8
	return slices.Clone(ids[:min(len(ids), most)])
}
