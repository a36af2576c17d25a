package train

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"path/filepath"

	"github.com/memopd/memopd-bench/model"
	"github.com/memopd/memopd-bench/torch"
)

// evaluate runs the evaluation that is due after the steps so far, once.
func (r *ppoRun) evaluate(ctx context.Context) error {
	step := r.state.Step
	due := r.c.EvalEvery > 0 && (step%r.c.EvalEvery == 0 || step == r.c.Steps)
	if r.p.Eval == nil || !due || r.evaluated == step {
		return nil
	}
	scores, err := r.p.Eval(ctx, step, r.policy)
	if ctx.Err() != nil {
		return errors.Join(ctx.Err(), r.save(true))
	}
	if err != nil {
		return err
	}
	r.evaluated = step
	return r.emit(append(Record{{StepMetric, float64(step)}}, scores...))
}

func (r *ppoRun) emit(m Record) error {
	if r.p.Log != nil {
		r.p.Log(m)
	}
	if err := appendRecord(filepath.Join(r.p.Dir, MetricsFile), m); err != nil {
		return err
	}
	return appendEvents(r.events, m)
}

// save writes the checkpoint when it is due, or when forced.
func (r *ppoRun) save(force bool) error {
	step := r.state.Step
	if !force && step%r.c.CheckpointEvery != 0 && step != r.c.Steps {
		return nil
	}
	err := writeFolder(CheckpointPath(r.p.Dir, step), func(dir string) error {
		if err := r.writeWeights(dir); err != nil {
			return err
		}
		return writeJSON(filepath.Join(dir, "state.json"), r.state)
	})
	if err != nil {
		return err
	}
	return pruneCheckpoints(r.p.Dir, r.c.CheckpointKeepEvery)
}

// writeWeights writes weights and moments to a folder; restore takes them.
func (r *ppoRun) writeWeights(dir string) error {
	if err := r.p.Save(filepath.Join(dir, "actor"), r.policy); err != nil {
		return err
	}
	if err := torch.WriteSafetensors(filepath.Join(dir, "critic.safetensors"), r.critic.parameters(), nil); err != nil {
		return err
	}
	if err := r.actorOptimizer.save(filepath.Join(dir, "optimizer_actor.safetensors")); err != nil {
		return err
	}
	return r.criticOptimizer.save(filepath.Join(dir, "optimizer_critic.safetensors"))
}

// restore makes the run's parts from weights and moments that writeWeights wrote.
func (r *ppoRun) restore(from string) error {
	policy, err := model.Load(filepath.Join(from, "actor"), r.c.Trained())
	if err != nil {
		return err
	}
	if err := policy.LimitVocab(r.p.Initial.Vocab()); err != nil {
		return err
	}
	if err := r.build(policy); err != nil {
		return err
	}
	if err := loadTensors(filepath.Join(from, "critic.safetensors"), r.critic.parameters()); err != nil {
		return err
	}
	if err := r.actorOptimizer.load(filepath.Join(from, "optimizer_actor.safetensors")); err != nil {
		return err
	}
	return r.criticOptimizer.load(filepath.Join(from, "optimizer_critic.safetensors"))
}

// start makes policy, critic and optimisers of a new run.
func (r *ppoRun) start() error {
	if err := r.build(r.p.Initial.CloneTo(r.c.Trained())); err != nil {
		return err
	}
	if err := dropBundles(r.p.Dir, 0); err != nil {
		return err
	}
	_, err := rewindRecords(filepath.Join(r.p.Dir, MetricsFile), -1)
	return err
}

// build makes the parts around a policy, which it takes over.
func (r *ppoRun) build(policy *model.Decoder) (err error) {
	r.policy = policy
	if r.c.KLCoefficient != 0 {
		r.reference = r.c.freeze(r.p.Initial)
	}
	if r.p.Teacher != nil {
		r.teacher = r.c.freeze(r.p.Teacher)
	}
	if r.critic, err = newCritic(r.c, r.p.Initial); err != nil {
		return err
	}
	adam := adamConfig{Beta1: r.c.AdamBeta1, Beta2: r.c.AdamBeta2, Epsilon: r.c.AdamEpsilon, WeightDecay: r.c.WeightDecay}
	adam.LearningRate = r.c.LearningRate
	r.actorOptimizer = newOptimizer(r.policy.Parameters(), adam)
	adam.LearningRate = r.c.CriticLearningRate
	r.criticOptimizer = newOptimizer(r.critic.parameters(), adam)
	return nil
}

// load takes up the run from a checkpoint's folder.
func (r *ppoRun) load(from string) error {
	var saved ppoState
	if err := readJSON(filepath.Join(from, "state.json"), &saved); err != nil {
		return err
	}
	if saved.Schema != checkpointSchema {
		return fmt.Errorf("schema version %d, want %d", saved.Schema, checkpointSchema)
	}
	saved.Config.since()
	if err := sameConfig(saved.Config, r.c, "steps", "eval_every", "checkpoint_every", "checkpoint_keep_every", "bundle_every", "bundle_weights"); err != nil {
		return err
	}
	if saved.Initial != r.state.Initial || saved.Teacher != r.state.Teacher {
		return errors.New("the initial or the teacher's weights are not those that the run began with")
	}
	if err := r.restore(from); err != nil {
		return err
	}
	r.state.Step = saved.Step
	if err := dropBundles(r.p.Dir, saved.Step); err != nil {
		return err
	}
	records, err := rewindRecords(filepath.Join(r.p.Dir, MetricsFile), saved.Step)
	if err != nil {
		return err
	}
	r.evaluated = lastEvaluation(records, "losses/policy_loss")
	return nil
}

// free releases what the run made, but not the policy, which is its result.
func (r *ppoRun) free() {
	r.actorOptimizer.Free()
	r.criticOptimizer.Free()
	r.critic.free()
	r.reference.free()
	r.teacher.free()
}

// fingerprint is the SHA-256 of all weights' bytes, by which a resumed run knows
// that it was given the same reference and teacher.
func fingerprint(d *model.Decoder) string {
	h := sha256.New()
	for _, p := range d.Parameters() {
		s := torch.NewScope()
		fmt.Fprintf(h, "%s %v %v\n", p.Name, p.Tensor.DType(), p.Tensor.Shape())
		h.Write(p.Tensor.Bytes())
		s.Close()
	}
	return hex.EncodeToString(h.Sum(nil))
}
