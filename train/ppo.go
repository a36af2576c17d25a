package train

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"time"

	"github.com/memopd/memopd-bench/align"
	"github.com/memopd/memopd-bench/model"
	"github.com/memopd/memopd-bench/torch"
	"github.com/memopd/memopd-bench/trace"
	"github.com/memopd/memopd-bench/train/events"
)

// Rollout samples the trajectories of a step with the policy, rewards and
// scores set. The same policy, step and seed give the same trajectories.
type Rollout func(ctx context.Context, step int, policy *model.Decoder, seed uint64) ([]*trace.Trajectory, error)

// PPOParts are what PPO works on and with.
type PPOParts struct {
	// Initial holds the SFT weights: the policy and a decoder critic start from
	// them, and it stays as it is, the frozen reference. Models in the placement of
	// the configuration's AtRest are used as they are, others are copied to it.
	Initial *model.Decoder
	// Teacher is nil exactly when the configuration says none. Its tokenizer is the
	// student's, and so is its Vocab.
	Teacher *model.Decoder
	Rollout Rollout
	Dir     string // the run's folder: metrics and checkpoints
	Threads int    // that an operator may use; 0: as the calling OS thread has it
	Resume  bool   // go on from the latest checkpoint in Dir, if there is one

	Save func(dir string, d *model.Decoder) error // writes a model, nil: d.Save(dir)
	Eval Evaluate                                 // nil: no evaluation
	Log  func(Record)                             // sees every record, nil: none

	// ThinkLength divides a call's output for the layout mem1 (align.Options).
	ThinkLength ThinkLength

	TensorBoard bool // write event files (package events) beside the metrics
}

// PPO trains a compact-memory agent as MemOPD does (arXiv 2608.07068). Each step
// samples trajectories, compiles each into one packed sequence whose actions
// keep their memory states, and updates the policy with
//
//	L_actor = L_PPO-clip - c_H entropy + lambda L_teacher
//
// over mini-batches of whole trajectories, the critic with the clipped value loss.
// What the teacher sees (c.Teacher) is the only thing that makes the variants.
//
// It returns the trained policy. When ctx is cancelled it finishes the step,
// writes a checkpoint and returns the policy and an error that wraps ctx.Err().
func PPO(ctx context.Context, c PPOConfig, p PPOParts) (*model.Decoder, error) {
	defer holdThread(p.Threads)()
	r, err := openPPO(c, p)
	if err != nil {
		return nil, fmt.Errorf("ppo: %w", err)
	}
	defer r.free()
	for r.state.Step < c.Steps {
		if err := r.evaluate(ctx); err != nil {
			return r.policy, fmt.Errorf("ppo: evaluate after step %d: %w", r.state.Step, err)
		}
		if err := r.step(context.WithoutCancel(ctx)); err != nil {
			return nil, fmt.Errorf("ppo: step %d: %w", r.state.Step+1, err)
		}
		if err := r.save(ctx.Err() != nil); err != nil {
			return nil, fmt.Errorf("ppo: %w", err)
		}
		if err := ctx.Err(); err != nil {
			return r.policy, fmt.Errorf("ppo: stopped after step %d: %w", r.state.Step, err)
		}
	}
	if err := r.evaluate(ctx); err != nil {
		return r.policy, fmt.Errorf("ppo: evaluate after step %d: %w", r.state.Step, err)
	}
	return r.policy, nil
}

// ppoState is what a resumed run needs beside weights and moments: everything
// random is a function of the seed and the step.
type ppoState struct {
	Schema  int       `json:"schema"`
	Config  PPOConfig `json:"config"`
	Initial string    `json:"initial"` // fingerprint of the initial weights
	Teacher string    `json:"teacher"` // fingerprint of the teacher's, "" without one
	Step    int       `json:"step"`    // steps finished
}

type ppoRun struct {
	c         PPOConfig
	p         PPOParts
	policy    *model.Decoder
	critic    *critic
	reference *frozen
	teacher   *frozen // nil without one

	actorOptimizer, criticOptimizer *optimizer

	state     ppoState
	evaluated int            // step of the last evaluation, -1: none
	events    *events.Writer // nil: none

	frozenHashes map[string]WeightHashes // of models that do not change, once a bundle has asked
}

// openPPO starts a run, or takes it up from its latest checkpoint.
func openPPO(c PPOConfig, p PPOParts) (*ppoRun, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	if err := c.available(); err != nil {
		return nil, err
	}
	if (p.Teacher == nil) != (c.Teacher == TeacherNone) {
		return nil, fmt.Errorf("teacher is %q, and a teacher's weights are given: %v", c.Teacher, p.Teacher != nil)
	}
	if p.Teacher != nil && p.Teacher.Vocab() != p.Initial.Vocab() {
		return nil, fmt.Errorf("the teacher gives logits for %d ids, the student for %d, and a KL needs the same: where both have one tokenizer and differ in rows beyond it, limit both to its size (LimitVocab)",
			p.Teacher.Vocab(), p.Initial.Vocab())
	}
	if p.Save == nil {
		p.Save = func(dir string, d *model.Decoder) error { return d.Save(dir) }
	}
	if err := os.MkdirAll(p.Dir, 0o755); err != nil {
		return nil, err
	}
	r := &ppoRun{c: c, p: p, evaluated: -1}
	r.state = ppoState{Schema: checkpointSchema, Config: c, Initial: fingerprint(p.Initial)}
	if p.Teacher != nil {
		r.state.Teacher = fingerprint(p.Teacher)
	}
	from, _, err := LatestCheckpoint(p.Dir)
	switch {
	case p.Resume && err == nil:
		if err := r.load(from); err != nil {
			return nil, fmt.Errorf("resume from %s: %w", from, err)
		}
		r.events = newEvents(p.TensorBoard, p.Dir, r.state.Step+1)
		return r, nil
	case err == nil:
		return nil, fmt.Errorf("%s holds a run already: resume it, or choose another folder", p.Dir)
	case !errors.Is(err, ErrNoCheckpoint):
		return nil, err
	}
	r.events = newEvents(p.TensorBoard, p.Dir, 0)
	return r, r.start()
}

// step is one PPO step. It ends with its record.
func (r *ppoRun) step(ctx context.Context) error {
	clock := phases{last: time.Now()}
	trajectories, err := r.p.Rollout(ctx, r.state.Step, r.policy, deriveSeed(r.c.Seed, streamRollout, uint64(r.state.Step)))
	if err != nil {
		return fmt.Errorf("rollouts: %w", err)
	}
	clock.end("gen")
	return torch.Try(func() error {
		s := torch.NewScope()
		defer s.Close()
		batch, err := compileBatch(r.c, r.options(), trajectories)
		if err != nil {
			return err
		}
		clock.end("compile")
		rce, err := r.checkRCE(batch)
		if errors.Is(err, ErrRCE) {
			return errors.Join(err, r.bundleViolation(batch, trajectories, err))
		}
		if err != nil {
			return err
		}
		clock.end("rce")
		r.score(batch)
		clock.end("score")
		if err := r.estimate(batch); err != nil {
			return err
		}
		clock.end("adv")
		bundle, err := r.openBundle(batch, r.c.BundleWeights)
		if err != nil {
			return err
		}
		defer bundle.discard()
		if bundle != nil {
			clock.end("bundle")
		}
		stats, err := r.update(batch, bundle.watch())
		clock.end("update")
		if failed := bundle.write(batch, trajectories, err); failed != nil || err != nil {
			return errors.Join(err, failed)
		}
		if bundle != nil {
			clock.end("bundle")
		}
		r.state.Step++
		return r.record(batch, trajectories, rce, stats, &clock)
	})
}

// rceCheck is a step's RCE, the gate's in float32.
type rceCheck struct {
	RCE
	compute *RCE // the same in the type that the run computes in, where that is another
}

// checkRCE compares packed and independent log-probs on some of the batch. Whether
// the states are the same shows to the last bits in float32 alone: a run in bf16 is
// checked in float32 on the weights that it trains, which costs two float32 passes
// over the checked trajectories, and its own rounding is recorded beside.
func (r *ppoRun) checkRCE(b *stepBatch) (rceCheck, error) {
	n := min(r.c.RCETrajectoriesPerStep, len(b.samples))
	rng := newRand(r.c.Seed, streamRCE, uint64(r.state.Step))
	var trajectories []*trace.Trajectory
	var packed []*align.Packed
	for _, i := range rng.Perm(len(b.samples))[:n] {
		trajectories = append(trajectories, b.samples[i].trajectory)
		packed = append(packed, b.samples[i].packed)
	}
	measure := func(d *model.Decoder) (RCE, error) {
		return MeasureRCE(r.c.Compute, d, trajectories, packed, r.options(), r.c.Temperature)
	}
	var check rceCheck
	var err error
	if check.RCE, err = measure(r.policy.In(torch.Float32)); err != nil {
		return check, err
	}
	if r.c.DType != Float32 {
		own, err := measure(r.policy)
		if err != nil {
			return check, err
		}
		check.compute = &own
	}
	if r.c.Layout != LayoutAligned {
		return check, nil // what the wrong states cost is asked, so it is recorded alone
	}
	return check, check.Check(r.c.RCETolerance)
}

// phases measures the wall-clock seconds of a step's phases.
type phases struct {
	last    time.Time
	names   []string
	seconds map[string]float64
}

// end closes the phase that began where the last one ended; one that comes twice adds up.
func (p *phases) end(name string) {
	now := time.Now()
	if p.seconds == nil {
		p.seconds = map[string]float64{}
	}
	if _, again := p.seconds[name]; !again {
		p.names = append(p.names, name)
	}
	p.seconds[name] += now.Sub(p.last).Seconds()
	p.last = now
}

// total is the sum of all phases.
func (p *phases) total() float64 {
	sum := 0.0
	for _, name := range slices.Sorted(maps.Keys(p.seconds)) {
		sum += p.seconds[name]
	}
	return sum
}
