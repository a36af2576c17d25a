package train

import (
	"fmt"
	"math"
	"strconv"

	"github.com/memopd/memopd-bench/align"
)

// The stages of a replay, in order. Each is computed from what the bundle recorded of
// the stages before, so that a difference shows in the stage that made it.
const (
	StageMachine    = "machine"             // libtorch, BLAS kernels, threads, processor: other last bits
	StageConfig     = "config"              // settings of the run and of the bundle
	StageWeights    = "weights"             // hashes of actor, critic, reference, teacher
	StageIDs        = "ids"                 // ids of the compiled sequences
	StageLayout     = "layout"              // positions, visibility, actions; what the teacher sees
	StageRollout    = "rollout"             // log-probs of the sampler, rewards
	StageOrder      = "order"               // seeds, and which trajectories each microbatch holds
	StageBehaviour  = "old log-probs"       // of the policy before the step
	StageReference  = "reference log-probs" //
	StageValues     = "values"              // of the critic
	StageAdvantages = "advantages"          // and returns, of the whole step
	StageLoss       = "loss terms"          // of the microbatch
	StageGradient   = "gradient"            // that it left
)

// Stage is what a replay found in one stage.
type Stage struct {
	Name        string  `json:"stage"`
	Values      int     `json:"values"`      // numbers that were compared
	Differences int     `json:"differences"` // of them that are not the same bits
	Beyond      int     `json:"beyond"`      // of them whose difference is above the tolerance
	Where       string  `json:"where,omitempty"`
	Recorded    string  `json:"recorded,omitempty"` // the first that differs
	Replayed    string  `json:"replayed,omitempty"`
	Largest     number  `json:"largest"`        // absolute difference of numbers
	Note        string  `json:"note,omitempty"` // why less was compared than there is
	tolerance   float64 // of numbers that are computed
}

// Equal tells that all is the same bit for bit, and that something was compared.
func (s *Stage) Equal() bool { return s.Differences == 0 && s.Values > 0 }

// Passed tells that nothing differs by more than the tolerance.
func (s *Stage) Passed() bool { return s.Beyond == 0 }

// aside notes a difference that makes nothing fail by itself.
func (s *Stage) aside(where, recorded, replayed string) {
	s.Values++
	if recorded == replayed {
		return
	}
	if s.Differences++; s.Where == "" {
		s.Where, s.Recorded, s.Replayed = where, recorded, replayed
	}
}

// differ notes a difference; size is NaN where it has none.
func (s *Stage) differ(where, recorded, replayed string, size float64) {
	s.Differences++
	beyond := !(size <= s.tolerance) || s.tolerance == 0
	if beyond {
		s.Beyond++
	}
	if s.Where == "" || beyond && s.Beyond == 1 {
		s.Where, s.Recorded, s.Replayed = where, recorded, replayed
	}
	if size > float64(s.Largest) {
		s.Largest = number(size)
	}
}

// text compares what is no number.
func (s *Stage) text(where, recorded, replayed string) {
	s.Values++
	if recorded != replayed {
		s.differ(where, recorded, replayed, math.NaN())
	}
}

// integers compares whole numbers, and their count.
func integers[T ~int | ~int32 | ~int64](s *Stage, where func(i int) string, recorded, replayed []T) {
	for i := range min(len(recorded), len(replayed)) {
		s.Values++
		if a, b := recorded[i], replayed[i]; a != b {
			s.differ(where(i), fmt.Sprint(a), fmt.Sprint(b), math.NaN())
		}
	}
	if len(recorded) != len(replayed) {
		s.Values++
		s.differ(where(min(len(recorded), len(replayed)))+": how many there are", strconv.Itoa(len(recorded)), strconv.Itoa(len(replayed)), math.NaN())
	}
}

// floats compares numbers by their bits.
func (s *Stage) floats(where func(i int) string, recorded, replayed []float32) {
	for i := range min(len(recorded), len(replayed)) {
		s.Values++
		a, b := recorded[i], replayed[i]
		if math.Float32bits(a) != math.Float32bits(b) && (a == a || b == b) {
			s.differ(where(i), fmt.Sprint(a), fmt.Sprint(b), math.Abs(float64(a)-float64(b)))
		}
	}
	if len(recorded) != len(replayed) {
		s.text(where(0)+": how many there are", strconv.Itoa(len(recorded)), strconv.Itoa(len(replayed)))
	}
}

// double compares two numbers by their bits.
func (s *Stage) double(where string, recorded, replayed number) {
	s.Values++
	a, b := float64(recorded), float64(replayed)
	if math.Float64bits(a) != math.Float64bits(b) && (a == a || b == b) {
		s.differ(where, fmt.Sprint(a), fmt.Sprint(b), math.Abs(a-b))
	}
}

// placeName says what stands at a place of a sequence.
func placeName(p *align.Packed, place int) string {
	name := fmt.Sprintf("trajectory %q, place %d", p.TrajectoryID, place)
	for _, a := range p.Actions {
		if a.Index == place {
			return fmt.Sprintf("%s (call %d, output token %d)", name, a.Call, a.Token)
		}
	}
	if place < p.PrefixLength {
		return name + " (task prefix)"
	}
	for _, b := range p.Blocks {
		if place >= b.Start && place < b.End {
			return fmt.Sprintf("%s (context of call %d)", name, b.Call)
		}
	}
	return name
}

// actionName names action i of a sequence.
func actionName(p *align.Packed, i int) string {
	if i >= len(p.Actions) {
		return fmt.Sprintf("trajectory %q, action %d", p.TrajectoryID, i)
	}
	return fmt.Sprintf("trajectory %q, call %d, token %d", p.TrajectoryID, p.Actions[i].Call, p.Actions[i].Token)
}

// ids compares the tokens of two sequences.
func (s *Stage) ids(recorded, replayed *align.Packed) {
	s.text("trajectory", recorded.TrajectoryID, replayed.TrajectoryID)
	integers(s, func(i int) string { return placeName(recorded, i) }, recorded.IDs, replayed.IDs)
}

// layout compares all but the tokens of two sequences.
func (s *Stage) layout(what string, recorded, replayed *align.Packed) {
	name := func(part string) func(int) string {
		return func(i int) string { return fmt.Sprintf("%s of %s%s", part, what, placeName(recorded, i)) }
	}
	integers(s, name("position"), recorded.Positions, replayed.Positions)
	trajectory := fmt.Sprintf("%strajectory %q", what, recorded.TrajectoryID)
	s.text("prefix of "+trajectory, strconv.Itoa(recorded.PrefixLength), strconv.Itoa(replayed.PrefixLength))
	for i := range max(len(recorded.Blocks), len(replayed.Blocks)) {
		s.text(fmt.Sprintf("block %d of %s", i, trajectory), blockText(recorded, i), blockText(replayed, i))
	}
	for i := range max(len(recorded.Actions), len(replayed.Actions)) {
		s.text("action of "+what+actionName(recorded, i), actionText(recorded, i), actionText(replayed, i))
	}
}

// blockText is a block's places and what it sees.
func blockText(p *align.Packed, i int) string {
	if i >= len(p.Blocks) {
		return "none"
	}
	b := &p.Blocks[i]
	return fmt.Sprintf("call %d, [%d, %d), sees %v", b.Call, b.Start, b.End, seen(p, b))
}

// actionText is an action's places.
func actionText(p *align.Packed, i int) string {
	if i >= len(p.Actions) {
		return "none"
	}
	a := p.Actions[i]
	return fmt.Sprintf("id %d at %d, predicted at %d, in the teacher mask: %v", a.ID, a.Index, a.Predict, a.Teacher)
}
