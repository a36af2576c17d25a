package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/memopd/memopd-bench/trace"
	"github.com/memopd/memopd-bench/train"
)

// source is where SFT's trajectories come from: recorded ones, or the oracle.
func (o pretrainOptions) source(ctx context.Context, e *environment, mix []horizonShare) (train.Source, error) {
	if len(o.Examples) > 0 {
		return ledgerSource(o.Examples, e.tokenizer.Size())
	}
	return e.oracleSource(ctx, mix), nil
}

// ledgerSource draws from recorded trajectories; ids is the size of the vocabulary
// that theirs must belong to.
func ledgerSource(files []string, ids int) (train.Source, error) {
	var all []*trace.Trajectory
	for _, file := range files {
		read, err := trace.ReadAll(file)
		if err != nil {
			return nil, err
		}
		for _, t := range read {
			if err := usable(t, int32(ids)); err != nil {
				return nil, fmt.Errorf("%s: trajectory %s: %w", file, t.ID, err)
			}
			if t.End == trace.EndAnswered {
				all = append(all, t)
			}
		}
		note("%s: %d trajectories", file, len(read))
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("examples %q: no trajectory that ends with an answer", files)
	}
	return func(seed uint64) (*trace.Trajectory, error) {
		return all[rand.New(rand.NewPCG(seed, 0)).IntN(len(all))], nil
	}, nil
}

// usable reports a trajectory that is not whole or was recorded with another
// vocabulary.
func usable(t *trace.Trajectory, ids int32) error {
	if err := t.Validate(); err != nil {
		return err
	}
	for k, c := range t.Calls {
		for _, list := range [][]int32{c.Context, c.Output, c.Observation} {
			if i := slices.IndexFunc(list, func(id int32) bool { return id >= ids }); i >= 0 {
				return fmt.Errorf("call %d holds the id %d, and the tokenizer has %d: it was recorded with another model's", k, list[i], ids)
			}
		}
	}
	return nil
}
