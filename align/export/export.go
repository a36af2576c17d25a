// Package export writes packed batches as files that other programs train on:
// ids, positions, what each block sees, actions with the places that predict them,
// and one number an action of whatever is known of it. docs/EXPORT.md describes
// the files. It is pure Go.
package export

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/memopd/memopd-bench/align"
	"github.com/memopd/memopd-bench/trace"
)

// SchemaVersion is written into each file; it changes when a field changes its meaning.
const SchemaVersion = 1

// LogProb is the column of the log-probs that the sampler recorded; NaN where it
// recorded none.
const LogProb = "log_prob"

// Batch is a number of sequences in one layout.
type Batch struct {
	Layout       string
	Trajectories []Trajectory
	Sequences    []Sequence
	Columns      []string          // names of what Sequence.Columns hold, sorted
	Metadata     map[string]string // what else the file says of its origin
}

// Trajectory is what a batch keeps of a trajectory.
type Trajectory struct {
	ID, TaskID string
	Reward     float64
}

// Sequence is one row of a batch. Trajectories are the places in Batch.Trajectories
// of its samples: an action's Trajectory is an index in that list.
type Sequence struct {
	*align.Packed
	Trajectories []int
	Columns      map[string][]float32 // one value an action of Packed; NaN: none
}

// Values are numbers of the sampled actions of trajectories: [trajectory][action],
// actions by call and token.
type Values map[string][][]float32

// Build lays trajectories out, one after another. What align rejects is left out and
// returned. More columns than LogProb come from values, which may be nil; it is an
// error if they have not one number an action.
func Build(trajectories []*trace.Trajectory, layout align.Layout, o align.Options, values Values) (*Batch, []*align.Rejected, error) {
	b := New(layout.Name)
	var rejected []*align.Rejected
	for i, t := range trajectories {
		rows, err := layout.Rows(t, o)
		var r *align.Rejected
		if errors.As(err, &r) {
			rejected = append(rejected, r)
			continue
		}
		if err != nil {
			return nil, nil, err
		}
		own := map[string][]float32{}
		for name, all := range values {
			if len(all) != len(trajectories) {
				return nil, nil, fmt.Errorf("column %s: values of %d trajectories, not %d", name, len(all), len(trajectories))
			}
			own[name] = all[i]
		}
		if err := b.Add(t, rows, own); err != nil {
			return nil, nil, err
		}
	}
	return b, rejected, nil
}

// New is an empty batch in a layout.
func New(layout string) *Batch {
	return &Batch{Layout: layout, Columns: []string{LogProb}, Metadata: map[string]string{}}
}

// Add appends the rows of one trajectory. values have a number for each of its sampled
// actions, by call and token.
func (b *Batch) Add(t *trace.Trajectory, rows []*align.Packed, values map[string][]float32) error {
	own := map[string][]float32{LogProb: recorded(t)}
	for name, column := range values {
		if len(column) != t.SampledTokens() {
			return fmt.Errorf("trajectory %q: %d values of %s for %d sampled tokens", t.ID, len(column), name, t.SampledTokens())
		}
		own[name] = column
		if !slices.Contains(b.Columns, name) {
			b.Columns = append(b.Columns, name)
			slices.Sort(b.Columns)
		}
	}
	if err := b.sampled(t); err != nil {
		return err
	}
	first := offsets(t)
	for _, row := range rows {
		s := Sequence{Packed: row, Trajectories: []int{len(b.Trajectories)}, Columns: map[string][]float32{}}
		for _, a := range row.Actions {
			if a.Trajectory != 0 || a.Call >= len(t.Calls) || !a.Spurious() && a.Token >= len(t.Calls[a.Call].Output) {
				return fmt.Errorf("trajectory %q has no token %d in call %d of sample %d", t.ID, a.Token, a.Call, a.Trajectory)
			}
			for name, column := range own {
				value := float32(math.NaN()) // nothing is known of what was never sampled
				if !a.Spurious() {
					value = column[first[a.Call]+a.Token]
				}
				s.Columns[name] = append(s.Columns[name], value)
			}
		}
		b.Sequences = append(b.Sequences, s)
	}
	b.Trajectories = append(b.Trajectories, Trajectory{t.ID, t.TaskID, t.Reward})
	return nil
}

// samplerKey holds, as JSON, the settings that all trajectories were sampled with, or
// "mixed".
const samplerKey = "sampler"

// sampled notes the settings of a trajectory's sampler.
func (b *Batch) sampled(t *trace.Trajectory) error {
	settings := t.Sampler
	settings.Seed = 0
	text, err := json.Marshal(settings)
	if err != nil {
		return fmt.Errorf("trajectory %q: %w", t.ID, err)
	}
	switch before, ok := b.Metadata[samplerKey]; {
	case !ok:
		b.Metadata[samplerKey] = string(text)
	case before != string(text):
		b.Metadata[samplerKey] = "mixed"
	}
	return nil
}

// offsets are the places of the calls' first tokens among a trajectory's sampled tokens.
func offsets(t *trace.Trajectory) []int {
	first := make([]int, len(t.Calls))
	n := 0
	for k := range t.Calls {
		first[k] = n
		n += len(t.Calls[k].Output)
	}
	return first
}

// recorded are the recorded log-probs of all sampled tokens, NaN where there are none.
func recorded(t *trace.Trajectory) []float32 {
	var all []float32
	for _, c := range t.Calls {
		if len(c.LogProbs) == len(c.Output) {
			all = append(all, c.LogProbs...)
			continue
		}
		for range c.Output {
			all = append(all, float32(math.NaN()))
		}
	}
	return all
}

// blocks are a sequence's blocks as files hold them: the prefix first, as a block that
// sees nothing before it, and what each sees in full.
func (s *Sequence) blocks() []align.Block {
	var all []align.Block
	if s.PrefixLength > 0 {
		all = append(all, align.Block{Call: -1, End: s.PrefixLength, Sees: []align.Range{}})
	}
	for _, b := range s.Blocks {
		if b.Sees == nil {
			b.Sees = []align.Range{}
			if s.PrefixLength > 0 {
				b.Sees = []align.Range{{Start: 0, End: s.PrefixLength}}
			}
		}
		all = append(all, b)
	}
	return all
}

// Tokens counts the stored tokens of all sequences.
func (b *Batch) Tokens() int {
	n := 0
	for _, s := range b.Sequences {
		n += len(s.IDs)
	}
	return n
}

// Actions counts the actions of all sequences.
func (b *Batch) Actions() int {
	n := 0
	for _, s := range b.Sequences {
		n += len(s.Packed.Actions)
	}
	return n
}
