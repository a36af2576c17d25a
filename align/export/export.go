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

// BuildGroups packs the samples of each task in one sequence that stores what they
// begin with once, in the layout aligned. Samples that do not fit one sequence together,
// or whose prefixes are not alike, stand alone. What align rejects is left out and returned.
func BuildGroups(trajectories []*trace.Trajectory, o align.Options) (*Batch, []*align.Rejected, error) {
	b := New("aligned")
	var rejected []*align.Rejected
	var tasks []string
	groups, alone := map[string][]*trace.Trajectory{}, map[string][]*align.Packed{}
	for _, t := range trajectories {
		row, err := align.Compile(t, o)
		var r *align.Rejected
		if errors.As(err, &r) {
			rejected = append(rejected, r)
			continue
		}
		if err != nil {
			return nil, nil, err
		}
		if groups[t.TaskID] == nil {
			tasks = append(tasks, t.TaskID)
		}
		groups[t.TaskID], alone[t.TaskID] = append(groups[t.TaskID], t), append(alone[t.TaskID], row)
	}
	for _, task := range tasks {
		group := groups[task]
		if together, err := align.CompileGroup(group, o); err == nil {
			if err := b.AddGroup(group, []*align.Packed{together}, nil); err != nil {
				return nil, nil, err
			}
			continue
		}
		for i, t := range group {
			if err := b.Add(t, alone[task][i:i+1], nil); err != nil {
				return nil, nil, err
			}
		}
	}
	return b, rejected, nil
}

// New is an empty batch in a layout.
func New(layout string) *Batch {
	return &Batch{Layout: layout, Columns: []string{LogProb}, Metadata: map[string]string{}}
}

// Add appends the rows of one trajectory. values have a number for each of its sampled
// actions, by call and token, or for each action of the rows, spurious ones too.
func (b *Batch) Add(t *trace.Trajectory, rows []*align.Packed, values map[string][]float32) error {
	return b.AddGroup([]*trace.Trajectory{t}, rows, []map[string][]float32{values})
}

// AddGroup appends rows of several trajectories: an action's Trajectory is an index in
// ts. values has one for each of them, or is nil.
func (b *Batch) AddGroup(ts []*trace.Trajectory, rows []*align.Packed, values []map[string][]float32) error {
	columns, first := make([]map[string][]float32, len(ts)), make([][]int, len(ts))
	for i, t := range ts {
		own := map[string][]float32{LogProb: recorded(t)}
		if values != nil {
			for name, column := range values[i] {
				if len(column) != t.SampledTokens() && len(column) != actionsOf(rows, i) {
					return fmt.Errorf("trajectory %q: %d values of %s for %d sampled tokens", t.ID, len(column), name, t.SampledTokens())
				}
				own[name] = column
				if !slices.Contains(b.Columns, name) {
					b.Columns = append(b.Columns, name)
					slices.Sort(b.Columns)
				}
			}
		}
		if err := b.sampled(t); err != nil {
			return err
		}
		columns[i], first[i] = own, offsets(t)
	}
	seen := make([]int, len(ts)) // actions of each so far
	for _, row := range rows {
		s := Sequence{Packed: row, Columns: map[string][]float32{}}
		for i := range ts {
			s.Trajectories = append(s.Trajectories, len(b.Trajectories)+i)
		}
		for _, a := range row.Actions {
			if !taken(ts, a) {
				return fmt.Errorf("trajectory %q: its row has an action of sample %d, call %d, token %d, and nothing was sampled there", row.TrajectoryID, a.Trajectory, a.Call, a.Token)
			}
			for name, column := range columns[a.Trajectory] {
				value := float32(math.NaN()) // nothing is known of what was never sampled
				if len(column) != ts[a.Trajectory].SampledTokens() {
					value = column[seen[a.Trajectory]]
				} else if !a.Spurious() {
					value = column[first[a.Trajectory][a.Call]+a.Token]
				}
				s.Columns[name] = append(s.Columns[name], value)
			}
			seen[a.Trajectory]++
		}
		b.Sequences = append(b.Sequences, s)
	}
	for _, t := range ts {
		b.Trajectories = append(b.Trajectories, Trajectory{t.ID, t.TaskID, t.Reward})
	}
	return nil
}

// actionsOf counts the actions of rows that are a trajectory's, spurious ones too.
func actionsOf(rows []*align.Packed, trajectory int) int {
	n := 0
	for _, row := range rows {
		for _, a := range row.Actions {
			if a.Trajectory == trajectory {
				n++
			}
		}
	}
	return n
}

// taken tells that an action is of a token that a trajectory has, or spurious.
func taken(ts []*trace.Trajectory, a align.Action) bool {
	return a.Spurious() && a.Trajectory < len(ts) ||
		a.Trajectory < len(ts) && a.Call < len(ts[a.Trajectory].Calls) && a.Token < len(ts[a.Trajectory].Calls[a.Call].Output)
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
