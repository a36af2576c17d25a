package audit

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"math"
	"strings"

	"github.com/memopd/memopd-bench/model"
	"github.com/memopd/memopd-bench/results"
	"github.com/memopd/memopd-bench/torch"
	"github.com/memopd/memopd-bench/train"
)

// CertificateSchema is the version of Certificate's fields.
const CertificateSchema = 1

// Certificate says that layouts passed an audit: of what, under which rule, with
// what. It is given in float32 alone.
type Certificate struct {
	Schema int  `json:"schema"`
	Pass   bool `json:"pass"` // every audited layout passed

	Audited   []string `json:"audited"` // the layouts that the verdict is on
	Rule      string   `json:"rule"`
	Tolerance float64  `json:"tolerance"`
	Clip      float64  `json:"clip"`
	DType     string   `json:"dtype"`
	Device    string   `json:"device"`

	Trajectories         int        `json:"trajectories"`
	Rejected             []Rejected `json:"rejected,omitempty"`
	Calls                int        `json:"calls"`
	Tokens               int        `json:"tokens"`
	GradientTrajectories int        `json:"gradient_trajectories"`

	Layouts []CertifiedLayout `json:"layouts"`

	Model       string   `json:"model"` // sha256 of the weights: names, shapes, values
	ModelFrom   string   `json:"model_from"`
	Tokenizer   string   `json:"tokenizer"` // sha256 of tokenizer.json; "" if the model has none
	Config      string   `json:"config"`    // sha256 of the settings in Manifest
	LedgerFiles []Ledger `json:"ledgers"`

	Manifest *results.Manifest `json:"manifest"` // command, settings, commit, libtorch, machine
}

// Ledger is a file that was audited.
type Ledger struct {
	From   string `json:"from"`
	SHA256 string `json:"sha256"`
}

// CertifiedLayout is a layout's line with its parts and what fails in it.
type CertifiedLayout struct {
	Row
	Role     string    `json:"role"` // "audited", "control", "truth" or "recorded"
	Spurious int       `json:"spurious"`
	Missing  int       `json:"missing"`
	States   int       `json:"other_states"` // tokens whose state differs structurally
	Reasons  []string  `json:"reasons,omitempty"`
	ByCall   []Part    `json:"by_call"`
	Before   Part      `json:"before_first_update"`
	After    Part      `json:"after_first_update"`
	Failures []Failure `json:"failures,omitempty"` // the first ones
	Failed   int       `json:"failed_calls"`       // calls with a failing token; of a wrong mask, trajectories
}

// failuresKept is how many explanations of a layout a certificate holds.
const failuresKept = 8

// Rule states when a layout passes.
func (r *Report) Rule() string {
	return fmt.Sprintf("p99 |Δ log-prob| at most %g; no top-1 flips (ids whose log-probs lie within %g in both passes are tied); no ratio outside 1 ± %g; the actions are exactly the sampled tokens",
		r.Tolerance, r.Tolerance, r.ClipEpsilon)
}

// Verdict is nil when every layout of the names passes, else an error that says
// which do not and why.
func (r *Report) Verdict(names []string) error {
	var errs []error
	for _, name := range names {
		l := r.Named(name)
		switch {
		case l == nil && name == RecordedName:
			errs = append(errs, errors.New("recorded: the ledger has no log-probs that are comparable"))
		case l == nil:
			errs = append(errs, fmt.Errorf("%s: not audited", name))
		case !l.Pass:
			errs = append(errs, fmt.Errorf("%s: %s%s", name, strings.Join(l.Reasons, ", "), l.cause()))
		}
	}
	return errors.Join(errs...)
}

// cause is the first failure's, in words.
func (l *LayoutReport) cause() string {
	if len(l.Failures) == 0 {
		return ""
	}
	return "; first: " + l.Failures[0].String()
}

// String is a failure in words.
func (f Failure) String() string {
	parts := make([]string, len(f.Parts))
	for i, p := range f.Parts {
		parts[i] = string(p)
	}
	if f.Call < 0 {
		return fmt.Sprintf("trajectory %s (%s): %s", f.Trajectory, strings.Join(parts, ", "), f.Detail)
	}
	return fmt.Sprintf("trajectory %s, call %d, token %d, place %d (%s): %s", f.Trajectory, f.Call, f.Token, f.Place, strings.Join(parts, ", "), f.Detail)
}

// Certify writes what the report shows, audited being the layouts that the verdict
// is on. In another type than float32 the error says why there is none.
func (r *Report) Certify(audited []string) (*Certificate, error) {
	if r.DType != train.Float32 {
		return nil, fmt.Errorf("no certificate in %s: its own floor, calls in %s against calls in %s, is p99 %.3g with %d flips, so it cannot tell a wrong state from rounding",
			r.DType, r.DType, train.Float32, r.Floor.P99, r.Floor.Flips)
	}
	c := &Certificate{
		Schema: CertificateSchema, Pass: r.Verdict(audited) == nil, Audited: audited, Rule: r.Rule(), Tolerance: r.Tolerance,
		Clip: r.ClipEpsilon, DType: r.DType, Device: r.Device, Trajectories: len(r.Trajectories), Rejected: r.Rejected,
		Calls: r.Calls, Tokens: r.Tokens, GradientTrajectories: r.GradientTrajectories,
	}
	for _, l := range r.All() {
		c.Layouts = append(c.Layouts, l.certified(audited))
	}
	return c, nil
}

func (l *LayoutReport) certified(audited []string) CertifiedLayout {
	return CertifiedLayout{
		Row: l.Row(), Role: l.Role(audited), Spurious: l.Spurious, Missing: l.Missing, States: l.States, Reasons: l.Reasons,
		ByCall: l.ByCall, Before: l.Before, After: l.After, Failures: l.Failures[:min(len(l.Failures), failuresKept)], Failed: len(l.Failures),
	}
}

// Role says what a layout is in an audit of the named ones.
func (l *LayoutReport) Role(audited []string) string {
	for _, name := range audited {
		if l.Name == name {
			return "audited"
		}
	}
	switch l.Name {
	case RecordedName:
		return RecordedName
	case FloorName:
		return "truth" // in float32 compared with itself
	}
	return roleControl
}

// roleControl is the role of a layout that is expected to fail.
const roleControl = "control"

// HashModel is the sha256 of a decoder's weights: for each parameter its name, its
// shape and its values as float32, little-endian. It is the same for a checkpoint in
// any file form that holds the same values.
func HashModel(d *model.Decoder) (string, error) {
	h := sha256.New()
	err := torch.Try(func() error {
		for _, p := range d.Parameters() {
			s := torch.NewScope()
			fmt.Fprintf(h, "%s %v\n", p.Name, p.Tensor.Shape())
			buffer := make([]byte, 0, 1<<16)
			for _, v := range p.Tensor.Detach().Float32s() {
				buffer = binary.LittleEndian.AppendUint32(buffer, math.Float32bits(v))
				if len(buffer) == cap(buffer) {
					h.Write(buffer)
					buffer = buffer[:0]
				}
			}
			h.Write(buffer)
			s.Close()
		}
		return nil
	})
	return hex.EncodeToString(h.Sum(nil)), err
}
