package rollouts

import (
	"fmt"
	"math"
	"slices"

	"github.com/memopd/memopd-bench/trace"
)

// turn is one call as a source has it. Observation is nil where it is not said.
type turn struct {
	context     []int32
	output      []int32
	logProbs    []float32 // nil: none
	observation []int32
	stop        trace.StopReason // "": not said
	limit       int              // new tokens, 0: not said
}

// run is what one record says of a rollout.
type run struct {
	id, task, agent, model string

	turns       []turn
	temperature *float64
	topP        *float64
	topK        *int
	meaning     trace.Meaning
	reward      float64
	scores      map[string]float64
	lacks       []string // what the reader found lacking beyond the usual
}

// check refuses what cannot be a trajectory.
func (r *run) check() error {
	sampled := 0
	for k, t := range r.turns {
		if len(t.context) == 0 {
			return malformed("", "call %d has an empty prompt, so nothing predicts its first token", k)
		}
		sampled += len(t.output)
	}
	if sampled == 0 {
		return lacking(LackIDs, "", "none of its %d calls has sampled ids", len(r.turns))
	}
	return nil
}

// name fills in what the source does not call by a name.
func (r *run) name(place string, n int, format string) {
	if r.id == "" {
		if r.id = place; n > 0 {
			r.id = fmt.Sprintf("%s/%d", place, n)
		}
	}
	if r.task == "" {
		r.task = r.id
	}
	if r.agent == "" {
		r.agent = format
	}
}

// trajectories makes one trajectory of the run, or several where its calls do not
// begin alike: a task prefix has to be one.
func (r *run) trajectories() []*trace.Trajectory {
	var parts [][]turn
	for i, t := range r.turns {
		if i > 0 && t.context[0] == r.turns[i-1].context[0] {
			parts[len(parts)-1] = append(parts[len(parts)-1], t)
			continue
		}
		parts = append(parts, []turn{t})
	}
	lacks := slices.Clone(r.lacks)
	if len(parts) > 1 {
		lacks = append(lacks, LackCommon)
	}
	if r.cutFromTheLeft() {
		lacks = append(lacks, LackBeginnings)
	}
	var all []*trace.Trajectory
	for i, turns := range parts {
		if !slices.ContainsFunc(turns, func(t turn) bool { return len(t.output) > 0 }) {
			continue // a prompt alone, and nothing of it to compare with
		}
		t := r.trajectory(turns, slices.Clone(lacks))
		if i > 0 {
			t.ID = fmt.Sprintf("%s/fork-%d", r.id, i)
		}
		all = append(all, t)
	}
	return all
}

// leftCut is how many ids of a prompt have to stand within an earlier one for it to
// be called cut from the left.
const leftCut = 16

// cutFromTheLeft says whether a prompt begins in the middle of what came before.
func (r *run) cutFromTheLeft() bool {
	for k := 1; k < len(r.turns); k++ {
		before, now := &r.turns[k-1], r.turns[k].context
		n := min(leftCut, len(now))
		earlier := slices.Concat(before.context, before.output)
		if n < 2 || now[0] == earlier[0] {
			continue
		}
		for at := 1; at+n <= len(earlier); at++ {
			if slices.Equal(earlier[at:at+n], now[:n]) {
				return true
			}
		}
	}
	return false
}

func (r *run) trajectory(turns []turn, lacks []string) *trace.Trajectory {
	t := &trace.Trajectory{
		Schema: trace.SchemaVersion, ID: r.id, TaskID: r.task, Agent: r.agent, Model: r.model,
		Prefix: slices.Clone(turns[0].context), Reward: r.reward, Scores: r.scores, End: trace.EndUnknown,
	}
	for _, turn := range turns[1:] {
		t.Prefix = t.Prefix[:commonLength(t.Prefix, turn.context)]
	}
	for k, turn := range turns {
		c := trace.Call{
			Index: k, Context: slices.Clone(turn.context), Output: slices.Clone(turn.output), LogProbs: slices.Clone(turn.logProbs),
			Stop: turn.stop, Outcome: trace.OutcomeUnknown, Observation: slices.Clone(turn.observation), MaxNewTokens: turn.limit,
		}
		if c.Stop == "" || len(c.Output) == 0 {
			c.Stop = trace.StopUnknown
		}
		t.Calls = append(t.Calls, c)
	}
	attribute(t)
	if !slices.ContainsFunc(turns, func(t turn) bool { return t.logProbs != nil }) {
		r.meaning = trace.MeaningProcessed // of none
	}
	t.Sampler, t.Lacks = r.sampler(lacks)
	t.Lacks = append(t.Lacks, lacksOfCalls(t)...)
	slices.Sort(t.Lacks)
	t.Lacks = slices.Compact(t.Lacks)
	return t
}

// sampler is what is known of the settings, and the names of what is not.
func (r *run) sampler(lacks []string) (trace.Sampler, []string) {
	s := trace.Sampler{Meaning: r.meaning}
	if r.temperature != nil && !math.IsNaN(*r.temperature) {
		s.Temperature, s.Greedy = *r.temperature, *r.temperature == 0
	} else {
		lacks = append(lacks, LackTemperature)
	}
	if r.topP != nil {
		s.TopP = *r.topP
	} else {
		lacks = append(lacks, LackTopP)
	}
	if r.topK != nil {
		s.TopK = max(0, *r.topK) // -1 is all, as 0
	} else {
		lacks = append(lacks, LackTopK)
	}
	if s.Meaning == trace.MeaningUnknown {
		lacks = append(lacks, LackMeaning)
	}
	return s, lacks
}

func lacksOfCalls(t *trace.Trajectory) []string {
	var lacks []string
	for i := range t.Calls {
		c := &t.Calls[i]
		switch {
		case len(c.Output) == 0:
			lacks = append(lacks, LackGeneration)
			continue
		case c.Stop == trace.StopUnknown:
			lacks = append(lacks, LackStops)
		}
		if c.LogProbs == nil {
			lacks = append(lacks, LackLogProbs)
		}
	}
	if len(t.Calls) > 1 {
		lacks = append(lacks, LackOrigins)
	}
	return lacks
}

// commonLength counts the ids that two lists begin with alike.
func commonLength(a, b []int32) int {
	n := 0
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}
	return n
}
