package results

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Audits are the records that the audit commands wrote, as far as tables and
// plots show them. Each lies in a file whose name has its kind as one of the
// parts between dots; the other parts name the set of trajectories: rce.q2.json
// and mini.q2.rce.json are of the sets "q2" and "mini.q2".
type Audits struct {
	RCE     []RCEAudit
	Teacher []TeacherAudit
	Masks   []MasksAudit
	Updates []UpdatesAudit
	Speed   []SpeedAudit
}

// RCEAudit is a certificate: layouts against the recorded states.
type RCEAudit struct {
	Set          string        `json:"-"`
	Pass         bool          `json:"pass"`
	Rule         string        `json:"rule"`
	Tolerance    float64       `json:"tolerance"` // of a p99, in nats
	DType        string        `json:"dtype"`
	Trajectories int           `json:"trajectories"`
	Calls        int           `json:"calls"`
	Tokens       int           `json:"tokens"` // sampled
	Layouts      []LayoutAudit `json:"layouts"`
}

// ErrorAudit sums up |Δ log-prob| over some tokens, in nats. What was not
// measured is nil.
type ErrorAudit struct {
	Tokens     int      `json:"tokens"`
	P50        *float64 `json:"p50"`
	P99        *float64 `json:"p99"`
	Max        *float64 `json:"max"`
	Flips      *int     `json:"flips"`
	FalseClips int      `json:"false_clips"`
	GradError  *float64 `json:"grad_error"` // relative error of the PPO loss's gradient
}

// LayoutAudit is one layout of a certificate.
type LayoutAudit struct {
	Name string `json:"name"`
	Role string `json:"role"` // audited, control, truth, recorded
	Pass bool   `json:"pass"`
	ErrorAudit
	Spurious int        `json:"spurious"`     // actions that were not sampled
	States   int        `json:"other_states"` // tokens whose state differs structurally
	ByCall   []CallPart `json:"by_call"`
	Before   ErrorAudit `json:"before_first_update"`
	After    ErrorAudit `json:"after_first_update"`
}

// CallPart is the figures of one call.
type CallPart struct {
	Call int `json:"call"`
	ErrorAudit
}

// TeacherAudit compares the teacher in the aligned state with the same teacher
// in the flattened history.
type TeacherAudit struct {
	Set   string        `json:"-"`
	Parts []TeacherPart `json:"result"`
}

// TeacherPart compares over all calls, the first ("before") or the later ones
// ("after" the first memory update). Errors and KL are in nats.
type TeacherPart struct {
	Calls     string   `json:"calls"`
	Tokens    int      `json:"tokens"`
	Agreement *float64 `json:"agreement"` // share of tokens with the same top-1 id
	P50       *float64 `json:"p50"`
	P99       *float64 `json:"p99"`
	Max       *float64 `json:"max"`
	MeanKL    *float64 `json:"mean_kl"` // KL(aligned || persistent)
	Flips     int      `json:"flips"`
}

// MasksAudit compares action domains.
type MasksAudit struct {
	Set   string      `json:"-"`
	Masks []MaskAudit `json:"result"`
}

// MaskAudit is one action domain.
type MaskAudit struct {
	Name      string         `json:"name"`
	Positions int            `json:"positions"`
	Spurious  int            `json:"spurious"` // that were not sampled
	Copies    int            `json:"copies"`   // context copies among them
	Gradients []MaskGradient `json:"gradients"`
}

// MaskGradient compares a loss's gradient with that over the exact domain.
type MaskGradient struct {
	Loss     string   `json:"loss"`
	Relative *float64 `json:"relative"` // its norm over the exact one's
	Cosine   *float64 `json:"cosine"`
}

// UpdatesAudit is a certificate of context updates.
type UpdatesAudit struct {
	Set     string        `json:"-"`
	Pass    bool          `json:"pass"`
	Rule    string        `json:"rule"`
	Updates []UpdateAudit `json:"updates"`
}

// UpdateAudit is one context update.
type UpdateAudit struct {
	Update          string    `json:"update"`
	Paper           string    `json:"paper"` // the paper's name, "" for none
	Trajectories    int       `json:"trajectories"`
	Calls           int       `json:"calls"`
	Tokens          int       `json:"tokens"`
	ContextMean     *float64  `json:"context_mean"`    // tokens that a call saw
	ContextByCall   []float64 `json:"context_by_call"` // the mean of each call
	ContextMax      int       `json:"context_max"`
	P99             *float64  `json:"p99"`
	Max             *float64  `json:"max"`
	Flips           int       `json:"flips"`
	FalseClips      int       `json:"false_clips"`
	PersistentP99   *float64  `json:"persistent_p99"` // of the flattened history
	PersistentFlips int       `json:"persistent_flips"`
	F1              *float64  `json:"f1"`
	Pass            bool      `json:"pass"`
}

// SpeedAudit measures an actor update, packed and one row a call.
type SpeedAudit struct {
	Set      string `json:"-"`
	Model    string `json:"model"`
	Libtorch string `json:"libtorch"`
	Threads  int    `json:"threads"`
	Config   struct {
		Shape string `json:"shape"`
	} `json:"config"`
	Rows []SpeedRow `json:"rows"`
}

// SpeedRow is one shape's processor seconds, medians of rounds.
type SpeedRow struct {
	Prefix     int     `json:"prefix"` // tokens
	Calls      int     `json:"calls"`
	CallTokens int     `json:"call_tokens"`
	Rows       float64 `json:"rows_s"`
	Concat     float64 `json:"concat_s"`
	Dense      float64 `json:"dense_s"`
	Packed     float64 `json:"packed_s"`
	Ratio      float64 `json:"ratio"` // rows over packed
	Ideal      float64 `json:"ideal"` // the same of the FLOPs
}

// auditKinds are the parts of file names that say what a file holds.
var auditKinds = []string{"masks", "rce", "speed", "teacher", "updates"}

// LoadAudits reads the audit records of a folder, in the order of their names; a
// folder that is not there holds none. A JSON file of no known kind is an error.
func LoadAudits(dir string) (Audits, error) {
	var a Audits
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return a, nil
	}
	for _, entry := range entries {
		if err == nil && filepath.Ext(entry.Name()) == ".json" {
			err = a.load(filepath.Join(dir, entry.Name()))
		}
	}
	return a, err
}

func (a *Audits) load(path string) error {
	parts := strings.Split(strings.TrimSuffix(filepath.Base(path), ".json"), ".")
	at := slices.IndexFunc(parts, func(p string) bool { return slices.Contains(auditKinds, p) })
	if at < 0 {
		return fmt.Errorf("%s: no part of the name says what audit it is; known are %s", path, strings.Join(auditKinds, ", "))
	}
	kind := parts[at]
	set := strings.Join(slices.Delete(parts, at, at+1), ".")
	switch kind {
	case "rce":
		return loadAudit(path, &a.RCE, func(r *RCEAudit) { r.Set = set })
	case "teacher":
		return loadAudit(path, &a.Teacher, func(r *TeacherAudit) { r.Set = set })
	case "masks":
		return loadAudit(path, &a.Masks, func(r *MasksAudit) { r.Set = set })
	case "updates":
		return loadAudit(path, &a.Updates, func(r *UpdatesAudit) { r.Set = set })
	}
	return loadAudit(path, &a.Speed, func(r *SpeedAudit) { r.Set = set })
}

func loadAudit[T any](path string, list *[]T, name func(*T)) error {
	var r T
	if err := readRequired(path, &r); err != nil {
		return err
	}
	name(&r)
	*list = append(*list, r)
	return nil
}
