package train

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/memopd/memopd-bench/align/aligntest"
	"github.com/memopd/memopd-bench/model"
	"github.com/memopd/memopd-bench/torch"
	"github.com/memopd/memopd-bench/trace"
)

// raggedRollout makes trajectories of 1 to 5 calls, one context update after the
// other, each with a reward of its own. Their ids are random: nothing was learned.
func raggedRollout(episodes int) Rollout {
	return func(_ context.Context, step int, _ *model.Decoder, seed uint64) ([]*trace.Trajectory, error) {
		rng := rand.New(rand.NewPCG(seed, 6))
		var all []*trace.Trajectory
		for i := range episodes {
			c := aligntest.Small()
			c.Vocab, c.Update = tinyVocabulary, aligntest.UpdateOf(uint64(i))
			t := aligntest.Random(rng, c)
			t.ID, t.Reward = fmt.Sprintf("step%d/%d", step, i), float64(1+i)
			t.Scores = map[string]float64{"em": 0, "f1": 0}
			all = append(all, t)
		}
		return all, nil
	}
}

// Trajectories of unequal numbers of calls, of all context updates, fill any
// mini-batch: there is nothing that their number would have to divide.
func TestRaggedEpisodesOfEachUpdate(t *testing.T) {
	const episodes = 11
	for _, each := range []int{0, 1, 3, 4} {
		c := tinyPPO(TeacherPersistent)
		c.Steps, c.TrajectoriesPerMinibatch, c.RCETrajectoriesPerStep = 2, each, episodes
		dir := t.TempDir()
		d, err := PPO(context.Background(), c, PPOParts{Initial: tinyModel(t, 1), Teacher: tinyModel(t, 2), Rollout: raggedRollout(episodes), Dir: dir})
		if err != nil {
			t.Fatal(err)
		}
		d.Free()
		for _, r := range timeless(t, dir) {
			n, _ := r.Get("rollout/trajectories")
			rce, ok := r.Get("rce/p99")
			if n != episodes || !ok || !(rce <= 1e-4) {
				t.Errorf("%d a mini-batch: %g trajectories, RCE error %g", each, n, rce)
			}
		}
	}
}

// However many calls an episode has, it is one sample with one id, and its reward
// counts once.
func TestCallsOfAnEpisodeAreOneSample(t *testing.T) {
	c := tinyPPO(TeacherAligned)
	c.KLCoefficient = 0
	calls := map[int]bool{}
	_, b := scoredBatchOf(t, c, 2, raggedRollout(14), unchanged)
	if len(b.samples) != 14 {
		t.Fatalf("%d samples of 14 episodes", len(b.samples))
	}
	for i, x := range b.samples {
		calls[len(x.trajectory.Calls)] = true
		if x.packed.TrajectoryID != x.trajectory.ID || x.reward != float64(1+i) || len(x.packed.Actions) != x.trajectory.SampledTokens() {
			t.Errorf("sample %d: id %q of %q, reward %g, %d actions of %d", i, x.packed.TrajectoryID, x.trajectory.ID, x.reward, len(x.packed.Actions), x.trajectory.SampledTokens())
		}
	}
	if len(calls) < 4 {
		t.Errorf("numbers of calls: %v", calls)
	}
}

// What the model writes for its own later calls is action like any other: the loss
// of those tokens alone moves the weights.
func TestMemoryTokensBearLoss(t *testing.T) {
	c := tinyPPO(TeacherAligned)
	c.TeacherWeight, c.EntropyCoefficient, c.PolicyDelaySteps = 0, 0, 0
	for _, memory := range []bool{false, true} {
		r, b := scoredBatch(t, c, 2, unchanged)
		kept := 0
		for _, x := range b.samples {
			for i, a := range x.packed.Actions {
				x.Advantage[i] = 0
				// MEM1's update keeps the outputs of all calls but the last.
				if memory && a.Call < len(x.trajectory.Calls)-1 {
					x.Advantage[i] = 1
					kept++
				}
			}
		}
		var stats updateStats
		n := float64(b.actions)
		r.backward(b, b.samples, minibatchTotals{n, n}, &stats)
		norm := torch.GradNorm(r.actorOptimizer.tensors)
		if memory && (kept != 2*6*fakeTokens || norm < 1e-3) || !memory && norm != 0 {
			t.Errorf("memory tokens %v: %d tokens, gradient norm %g", memory, kept, norm)
		}
	}
}
