package train

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/memopd/memopd-bench/torch"
)

// A bundle is a folder DIR/bundles/step-NNNNNN: what a training step was given and
// what came of it, for Replay. It is written as checkpoints are: a folder with the
// final name is whole.
//
//	bundle.json           settings, seeds, hashes of the weights before the step, and for
//	                      each microbatch its trajectories, losses and gradient norms
//	ledger.parquet        the step's trajectories
//	batch.safetensors     the compiled sequences, and for each action the log-probs of
//	                      sampler, behaviour and reference, value, advantage and return
//	teacher.safetensors   what the teacher saw, where that is another sequence
//	weights/              weights and moments before the step, as in a checkpoint (BundleWeights,
//	                      and where RCE was violated)
//	gradient.safetensors  the gradient that the first microbatch left (BundleWeights)

// BundlesFolder is the folder of a run that holds its bundles.
const BundlesFolder = "bundles"

// bundleSchema is written into bundle.json; it changes with the layout.
const bundleSchema = 1

// The files of a bundle.
const (
	bundleFile   = "bundle.json"
	ledgerFile   = "ledger.parquet"
	batchFile    = "batch.safetensors"
	teacherFile  = "teacher.safetensors"
	weightsPart  = "weights"
	gradientFile = "gradient.safetensors"
)

// The columns of a bundle's batch.
const (
	columnBehaviour = "old_log_prob"
	columnReference = "reference_log_prob"
	columnValue     = "value"
	columnAdvantage = "advantage"
	columnReturn    = "return"
)

// Bundle is bundle.json.
type Bundle struct {
	Schema   int                     `json:"schema"`
	Step     int                     `json:"step"` // as in metrics, from 1
	Config   PPOConfig               `json:"config"`
	Machine  Machine                 `json:"machine"`
	Weights  map[string]WeightHashes `json:"weights"` // before the step, by role
	Random   RandomState             `json:"random"`
	Micros   []MicroRecord           `json:"microbatches"`
	Gradient []GradientRecord        `json:"gradient"` // what the first microbatch left
	Teacher  []ContextHash           `json:"teacher_contexts,omitempty"`
	Files    map[string]string       `json:"files"`           // SHA-256
	Error    string                  `json:"error,omitempty"` // why the update was not finished
}

// Machine is what the last bits of a step depend on.
type Machine struct {
	Libtorch string `json:"libtorch"`
	BLAS     string `json:"blas"` // OpenBLAS's core, "" for other libraries
	Threads  int    `json:"threads"`
	GOARCH   string `json:"goarch"`
}

// RandomState holds the seeds of a step's streams, which are functions of the run's
// seed and the step.
type RandomState struct {
	Seed        uint64   `json:"seed"`
	Rollout     uint64   `json:"rollout"`
	RCE         uint64   `json:"rce"`
	Minibatches []uint64 `json:"minibatches"` // one an epoch
}

// randomState are the seeds of the step after so many.
func (c PPOConfig) randomState(done int) RandomState {
	s := RandomState{
		Seed:    c.Seed,
		Rollout: deriveSeed(c.Seed, streamRollout, uint64(done)),
		RCE:     deriveSeed(c.Seed, streamRCE, uint64(done)),
	}
	for epoch := range c.EpochsPerStep {
		s.Minibatches = append(s.Minibatches, deriveSeed(c.Seed, streamMinibatch, uint64(done), uint64(epoch)))
	}
	return s
}

// MicroRecord is what one microbatch did: sums over its actions, and the norms of
// the gradients of its mini-batch so far, before clipping.
type MicroRecord struct {
	Epoch      int   `json:"epoch"`
	Minibatch  int   `json:"minibatch"`
	Samples    []int `json:"samples"` // places among the compiled trajectories, in order
	Actions    int   `json:"actions"`
	TeacherSet int   `json:"teacher_actions"`

	Policy       number `json:"policy_loss"`
	Value        number `json:"value_loss"`
	Entropy      number `json:"entropy"`
	TeacherKL    number `json:"teacher_kl"`
	ApproxKL     number `json:"approx_kl"`
	Clipped      number `json:"clipped"`
	ValueClipped number `json:"value_clipped"`
	RatioMax     number `json:"ratio_max"`

	ActorNorm  number `json:"actor_gradient_norm"`
	CriticNorm number `json:"critic_gradient_norm"`
}

// GradientRecord says what the gradient of a weight was.
type GradientRecord struct {
	Name   string `json:"name"` // actor.NAME or critic.NAME
	Norm   number `json:"norm"`
	SHA256 string `json:"sha256"` // of its float32 values
}

// ContextHash stands for what the teacher saw of a trajectory.
type ContextHash struct {
	Tokens int    `json:"tokens"`
	SHA256 string `json:"sha256"`
}

// number is a float64 that JSON takes even where it is none.
type number float64

// MarshalJSON writes a number so that it reads back bit for bit.
func (n number) MarshalJSON() ([]byte, error) {
	if x := float64(n); math.IsNaN(x) || math.IsInf(x, 0) {
		return json.Marshal(strconv.FormatFloat(x, 'g', -1, 64))
	}
	return json.Marshal(float64(n))
}

// UnmarshalJSON reads what MarshalJSON wrote.
func (n *number) UnmarshalJSON(data []byte) error {
	x, err := strconv.ParseFloat(strings.Trim(string(data), `"`), 64)
	*n = number(x)
	return err
}

// BundlePath is the folder of a step's bundle within a run's folder.
func BundlePath(run string, step int) string {
	return filepath.Join(run, BundlesFolder, fmt.Sprintf("%s%06d", checkpointPrefix, step))
}

// ReadBundle reads the description of a bundle.
func ReadBundle(dir string) (*Bundle, error) {
	var b Bundle
	if err := readJSON(filepath.Join(dir, bundleFile), &b); err != nil {
		return nil, err
	}
	if b.Schema != bundleSchema {
		return nil, fmt.Errorf("%s: schema version %d, want %d", filepath.Join(dir, bundleFile), b.Schema, bundleSchema)
	}
	b.Config.since()
	if b.Step < 1 || len(b.Micros) == 0 && b.Error == "" {
		return nil, fmt.Errorf("%s: step %d with %d microbatches", filepath.Join(dir, bundleFile), b.Step, len(b.Micros))
	}
	return &b, nil
}

// Bundles lists the steps of a run with a bundle, in rising order, and those of them
// that can be replayed: step 1, steps after a checkpoint, bundles with weights.
func Bundles(run string) (all, replayable []int, err error) {
	entries, err := os.ReadDir(filepath.Join(run, BundlesFolder))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, nil, fmt.Errorf("list bundles: %w", err)
	}
	for _, e := range entries {
		digits, ok := strings.CutPrefix(e.Name(), checkpointPrefix)
		step, err := strconv.Atoi(digits)
		if !ok || err != nil || !e.IsDir() {
			continue
		}
		all = append(all, step)
	}
	slices.Sort(all)
	for _, step := range all {
		if _, ok := weightsBefore(run, BundlePath(run, step), step); ok {
			replayable = append(replayable, step)
		}
	}
	return all, replayable, nil
}

// weightsBefore finds the weights before a step: its bundle's, those of the checkpoint
// before it, or "" for the initial ones.
func weightsBefore(run, bundle string, step int) (dir string, ok bool) {
	for _, dir := range []string{filepath.Join(bundle, weightsPart), CheckpointPath(run, step-1)} {
		if _, err := os.Stat(filepath.Join(dir, "critic.safetensors")); err == nil {
			return dir, true
		}
	}
	return "", step == 1
}

// dropBundles removes the bundles of steps after so many, which will be done again, and
// what an interrupted write left behind.
func dropBundles(run string, done int) error {
	all, _, err := Bundles(run)
	if err != nil {
		return err
	}
	left, err := filepath.Glob(filepath.Join(run, BundlesFolder, temporaryPrefix+"*"))
	if err != nil {
		return err
	}
	for _, step := range all {
		if step > done {
			left = append(left, BundlePath(run, step))
		}
	}
	for _, path := range left {
		if err := os.RemoveAll(path); err != nil {
			return fmt.Errorf("remove old bundle: %w", err)
		}
	}
	return nil
}

// gradientsOf lists the gradients that a run's parameters have.
func (r *ppoRun) gradientsOf() []torch.Named {
	var all []torch.Named
	for role, params := range map[string][]torch.Named{roleActor: r.policy.Parameters(), roleCritic: r.critic.parameters()} {
		for _, p := range params {
			if g := p.Tensor.Grad(); g != nil {
				all = append(all, torch.Named{Name: role + "." + p.Name, Tensor: g})
			}
		}
	}
	slices.SortFunc(all, func(a, b torch.Named) int { return strings.Compare(a.Name, b.Name) })
	return all
}
