package train

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/memopd/memopd-bench/align"
	"github.com/memopd/memopd-bench/model"
	"github.com/memopd/memopd-bench/torch"
	"github.com/memopd/memopd-bench/train/events"
)

// Evaluate scores a decoder after a number of steps; its metrics become a record.
type Evaluate func(ctx context.Context, step int, d *model.Decoder) (Record, error)

// SFTParts are what SFT works on and with.
type SFTParts struct {
	Model   *model.Decoder // trained in place, unless it is placed elsewhere or the run is resumed
	Source  Source
	Dir     string // the run's folder: metrics, checkpoints, snapshots
	Threads int    // that an operator may use; 0: as the calling OS thread has it
	Resume  bool   // go on from the latest checkpoint in Dir, if there is one

	Save func(dir string, d *model.Decoder) error // writes a model, nil: d.Save(dir)
	Eval Evaluate                                 // nil: no evaluation
	Log  func(Record)                             // sees every record, nil: none

	TensorBoard bool // write event files (package events) beside the metrics
}

// SFT teaches a decoder the sampled outputs of the source's trajectories: an
// example is one call, with loss on its output tokens alone (the paper's
// turn-level examples), or, for the FlattenedShare, a whole transcript. Half of
// the first DrillSteps are copy drills. One batch of the pool, a length-sorted
// run of examples, is one optimiser step.
//
// It returns the trained decoder, which is another one than p.Model when it was
// resumed, or p.Model has not the placement of the configuration's Trained. When ctx is cancelled it finishes the step, writes a checkpoint and
// returns an error that wraps ctx.Err().
func SFT(ctx context.Context, c SFTConfig, p SFTParts) (*model.Decoder, error) {
	defer holdThread(p.Threads)()
	r, err := openSFT(c, p)
	if err != nil {
		return nil, fmt.Errorf("sft: %w", err)
	}
	defer r.optimizer.Free()
	for r.state.Step < c.Steps {
		if err := r.evaluate(ctx); err != nil {
			return r.model, fmt.Errorf("sft: evaluate after step %d: %w", r.state.Step, err)
		}
		if err := r.step(); err != nil {
			return nil, fmt.Errorf("sft: step %d: %w", r.state.Step+1, err)
		}
		if err := r.save(ctx.Err() != nil); err != nil {
			return nil, fmt.Errorf("sft: %w", err)
		}
		if err := ctx.Err(); err != nil {
			return r.model, fmt.Errorf("sft: stopped after step %d: %w", r.state.Step, err)
		}
	}
	if err := r.evaluate(ctx); err != nil {
		return nil, fmt.Errorf("sft: evaluate after step %d: %w", r.state.Step, err)
	}
	return r.model, nil
}

// sftState is what a resumed run needs beside weights and moments. The pool
// itself is made again from its number.
type sftState struct {
	Schema int       `json:"schema"`
	Config SFTConfig `json:"config"`
	Step   int       `json:"step"`  // steps finished
	Pool   int       `json:"pool"`  // number of the current pool
	Batch  int       `json:"batch"` // next batch in it

	Tokens   int64     `json:"tokens"`   // trained on so far, without padding
	Rejected int       `json:"rejected"` // trajectories left out so far
	Window   sftWindow `json:"window"`   // sums since the last record
}

// sftWindow sums up what the next record reports.
type sftWindow struct {
	Steps       int     `json:"steps"`
	Tokens      int     `json:"tokens"`
	Loss        float64 `json:"loss"` // sum of nats over LossTokens
	LossTokens  int     `json:"loss_tokens"`
	Drill       float64 `json:"drill"` // the same of copy drills
	DrillTokens int     `json:"drill_tokens"`
	Norm        float64 `json:"norm"` // sum of gradient norms over Steps

	Seconds     float64 `json:"seconds"`
	DataSeconds float64 `json:"data_seconds"`
}

type sftRun struct {
	c         SFTConfig
	p         SFTParts
	model     *model.Decoder
	optimizer *optimizer
	state     sftState
	pool      pool
	evaluated int            // step of the last evaluation, -1: none
	events    *events.Writer // nil: none
}

// openSFT starts a run, or takes it up from its latest checkpoint.
func openSFT(c SFTConfig, p SFTParts) (*sftRun, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	if err := c.available(); err != nil {
		return nil, err
	}
	if p.Save == nil {
		p.Save = func(dir string, d *model.Decoder) error { return d.Save(dir) }
	}
	if err := os.MkdirAll(p.Dir, 0o755); err != nil {
		return nil, err
	}
	r := &sftRun{c: c, p: p, model: p.Model, evaluated: -1}
	r.state = sftState{Schema: checkpointSchema, Config: c}
	from, _, err := LatestCheckpoint(p.Dir)
	switch {
	case p.Resume && err == nil:
		if err := r.load(from); err != nil {
			return nil, fmt.Errorf("resume from %s: %w", from, err)
		}
		r.events = newEvents(p.TensorBoard, p.Dir, r.state.Step+1)
	case err == nil:
		return nil, fmt.Errorf("%s holds a run already: resume it, or choose another folder", p.Dir)
	case !errors.Is(err, ErrNoCheckpoint):
		return nil, err
	default:
		if err := r.start(); err != nil {
			return nil, err
		}
		r.events = newEvents(p.TensorBoard, p.Dir, 0)
	}
	return r, r.fillPool()
}

func (r *sftRun) start() error {
	if want := r.c.Trained(); !samePlacement(r.model.Placement(), want) {
		r.model = r.model.CloneTo(want)
	}
	r.optimizer = newOptimizer(r.model.Parameters(), r.adam())
	_, err := rewindRecords(filepath.Join(r.p.Dir, MetricsFile), -1)
	return err
}

func (r *sftRun) adam() adamConfig {
	return adamConfig{LearningRate: r.c.LearningRate, Beta1: r.c.AdamBeta1, Beta2: r.c.AdamBeta2,
		Epsilon: r.c.AdamEpsilon, WeightDecay: r.c.WeightDecay, Rates: map[string]float64{
			"model.embed_tokens.weight": r.c.EmbeddingRate, "model.norm.weight": 1 / r.c.EmbeddingRate,
		}}
}

// fillPool makes the pool that the state names, and goes on to the next where
// that one is used up.
func (r *sftRun) fillPool() (err error) {
	if r.pool.batches != nil && r.state.Batch < len(r.pool.batches) {
		return nil
	}
	if r.pool.batches != nil {
		r.state.Rejected += r.pool.rejected
		r.state.Pool, r.state.Batch = r.state.Pool+1, 0
	}
	r.pool, err = buildPool(r.c, r.p.Source, r.state.Pool)
	return err
}

// step draws rows, takes one optimiser step, and appends a record when one is due.
func (r *sftRun) step() error {
	started := time.Now()
	isDrill := r.state.Step < r.c.DrillSteps && r.state.Step%2 == 0
	var rows []*align.Packed
	if isDrill {
		rows = r.drill(r.state.Step)
	} else {
		if err := r.fillPool(); err != nil {
			return err
		}
		rows = r.pool.batches[r.state.Batch]
		r.state.Batch++
	}
	dataReady := time.Now()

	var loss, norm float64
	err := torch.Try(func() error {
		loss, norm = r.update(rows)
		return nil
	})
	if err != nil {
		return err
	}
	if !(loss < 1e9) {
		return fmt.Errorf("the loss is %g: training has diverged", loss)
	}

	w := &r.state.Window
	w.Steps, w.Tokens, w.Norm = w.Steps+1, w.Tokens+tokenCount(rows), w.Norm+norm
	if isDrill {
		w.Drill, w.DrillTokens = w.Drill+loss, w.DrillTokens+actionCount(rows)
	} else {
		w.Loss, w.LossTokens = w.Loss+loss, w.LossTokens+actionCount(rows)
	}
	w.DataSeconds += dataReady.Sub(started).Seconds()
	w.Seconds += time.Since(started).Seconds()
	r.state.Tokens += int64(tokenCount(rows))
	r.state.Step++
	if r.state.Step%r.c.LogEvery == 0 || r.state.Step == r.c.Steps {
		return r.record()
	}
	return nil
}

// drill is the copy drill of a step, of ids that the model gives logits for.
func (r *sftRun) drill(step int) []*align.Packed { return drill(r.c, r.model.Vocab(), step) }

// update is forward, backward and step on rows; it returns the summed loss in
// nats and the gradient norm before clipping.
func (r *sftRun) update(rows []*align.Packed) (loss, norm float64) {
	s := torch.NewScope()
	defer s.Close()
	perMicrobatch := r.c.TokensPerMicrobatch
	if perMicrobatch == 0 {
		perMicrobatch = 1 << 62
	}
	total := float64(actionCount(rows))
	r.optimizer.ZeroGrad()
	for _, micro := range cutPadded(rows, perMicrobatch) {
		loss += r.c.BackwardNLL(r.model, micro, total)
	}
	norm = r.optimizer.clip(r.c.GradientNormMax)
	r.optimizer.SetLR(r.c.LearningRate *
		CosineSchedule(r.state.Step, r.c.Steps, r.c.WarmupSteps, r.c.LearningRateFloor))
	r.optimizer.Step()
	return loss, norm
}

// BackwardNLL adds to the gradients of a decoder in the placement Trained that of
// the negative log-likelihood of all actions of rows, divided by total, and returns
// its sum in nats. It is what SFT does with each microbatch.
func (c Compute) BackwardNLL(d *model.Decoder, rows []*align.Packed, total float64) (loss float64) {
	s := torch.NewScope()
	defer s.Close()
	all := c.on(torch.FromInt64(actionIDs(rows), int64(actionCount(rows))))
	f := d.Forward(rows, c.forward())
	c.chunkedBackward(d, f, 1, func(start, end int, logDistribution *torch.Tensor) bool {
		ids := all.Narrow(0, int64(start), int64(end-start))
		logProbs := picked(logDistribution, ids)
		loss -= logProbs.Sum().Item()
		t := terms{IDs: ids, Picked: logProbs.ZerosLike().Fill_(-1 / total)}
		t.gradient(logDistribution, 1)
		return true
	})
	return loss
}
