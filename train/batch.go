package train

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"sort"

	"github.com/memopd/memopd-bench/align"
	"github.com/memopd/memopd-bench/trace"
)

// Source makes the trajectory of a seed: the same one whenever it is asked. Its
// calls are what SFT teaches.
type Source func(seed uint64) (*trace.Trajectory, error)

// pool is a number of steps' worth of examples, each batch of similar length.
type pool struct {
	batches  [][]*align.Packed
	rejected int // trajectories that the limits left out
}

// buildPool makes pool number n of a run. It is a pure function of its
// arguments, so that a resumed run makes it again.
func buildPool(c SFTConfig, source Source, n int) (pool, error) {
	var p pool
	var rows []*align.Packed
	for i := 0; len(rows) < c.ExamplesPerPool; i++ {
		seed := deriveSeed(c.Seed, streamSource, uint64(n), uint64(i))
		t, err := source(seed)
		if err != nil {
			return pool{}, fmt.Errorf("trajectory %d of pool %d: %w", i, n, err)
		}
		more, err := examples(c, t, newRand(c.Seed, streamExamples, uint64(n), uint64(i)))
		var rejected *align.Rejected
		if errors.As(err, &rejected) {
			p.rejected++
			if p.rejected > 100 && len(rows) == 0 {
				return pool{}, fmt.Errorf("pool %d: the first %d trajectories were all rejected, the last one: %w", n, p.rejected, err)
			}
			continue
		}
		if err != nil {
			return pool{}, err
		}
		rows = append(rows, more...)
	}
	sort.SliceStable(rows, func(i, j int) bool { return len(rows[i].IDs) < len(rows[j].IDs) })
	p.batches = cutPadded(rows, c.TokensPerStep)
	order := newRand(c.Seed, streamPool, uint64(n))
	order.Shuffle(len(p.batches), func(i, j int) { p.batches[i], p.batches[j] = p.batches[j], p.batches[i] })
	return p, nil
}

// examples chooses the rows of one trajectory: some of its calls, or the whole
// as a flattened transcript.
func examples(c SFTConfig, t *trace.Trajectory, rng *rand.Rand) ([]*align.Packed, error) {
	limits := align.Options{MaxCallTokens: c.TokensPerCallMax}
	if rng.Float64() < c.FlattenedShare {
		row, err := align.Persistent(t, limits)
		if err != nil {
			return nil, err
		}
		if len(row.IDs) <= c.FlattenedTokensMax {
			return []*align.Packed{row}, nil
		}
	}
	calls, err := align.Calls(t, limits)
	if err != nil {
		return nil, err
	}
	if k := c.CallsPerTrajectory; k > 0 && k < len(calls) {
		rng.Shuffle(len(calls), func(i, j int) { calls[i], calls[j] = calls[j], calls[i] })
		calls = calls[:k]
	}
	return calls, nil
}

// cutPadded cuts rows, sorted by length, into runs whose size after padding to
// the longest row stays within the tokens given. A longer row stands alone.
func cutPadded(rows []*align.Packed, tokens int) [][]*align.Packed {
	var batches [][]*align.Packed
	start, longest := 0, 0
	for i, r := range rows {
		longest = max(longest, len(r.IDs))
		if i > start && longest*(i+1-start) > tokens {
			batches = append(batches, rows[start:i])
			start, longest = i, len(r.IDs)
		}
	}
	if start < len(rows) {
		batches = append(batches, rows[start:])
	}
	return batches
}

// drill makes the copy drill of a step: rows of random ids (none of them 0, the
// padding), each repeated once. The tokens of the repetition are the actions,
// but its first, which nothing foretells.
func drill(c SFTConfig, vocab, step int) []*align.Packed {
	rng := newRand(c.Seed, streamDrill, uint64(step))
	n := c.DrillLengths[rng.IntN(len(c.DrillLengths))]
	rows := make([]*align.Packed, max(1, c.TokensPerStep/(2*n)))
	for i := range rows {
		rows[i] = repetition(rng, vocab, n)
	}
	return rows
}

// repetition is one row of a drill: n random ids as the prefix, and again as a block.
func repetition(rng *rand.Rand, vocab, n int) *align.Packed {
	p := &align.Packed{
		TrajectoryID: "drill",
		IDs:          make([]int32, 2*n),
		Positions:    make([]int32, 2*n),
		PrefixLength: n,
		Blocks:       []align.Block{{Call: 0, Start: n, End: 2 * n}},
	}
	for i := range n {
		id := 1 + rng.Int32N(int32(vocab-1))
		p.IDs[i], p.IDs[n+i] = id, id
		p.Positions[i], p.Positions[n+i] = int32(i), int32(n+i)
	}
	for i := 1; i < n; i++ {
		p.Actions = append(p.Actions, align.Action{Token: i, ID: p.IDs[n+i], Index: n + i, Predict: n + i - 1})
	}
	return p
}

// actionCount is the number of actions in all rows.
func actionCount(rows []*align.Packed) int {
	n := 0
	for _, r := range rows {
		n += len(r.Actions)
	}
	return n
}

// tokenCount is the number of stored tokens in all rows, without padding.
func tokenCount(rows []*align.Packed) int {
	n := 0
	for _, r := range rows {
		n += len(r.IDs)
	}
	return n
}

// actionIDs lists the ids of all actions, in the order of model.Decoder.Hidden.
func actionIDs(rows []*align.Packed) []int64 {
	ids := make([]int64, 0, actionCount(rows))
	for _, r := range rows {
		for _, a := range r.Actions {
			ids = append(ids, int64(a.ID))
		}
	}
	return ids
}
