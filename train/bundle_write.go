package train

import (
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"slices"

	"github.com/memopd/memopd-bench/align"
	"github.com/memopd/memopd-bench/align/export"
	"github.com/memopd/memopd-bench/torch"
	"github.com/memopd/memopd-bench/trace"
)

// recorder collects a step's bundle while its update goes on; nil: the step has none.
type recorder struct {
	r       *ppoRun
	samples []*sample
	bundle  Bundle
	early   string // folder of what is written before the update's end, "" for none
	err     error  // of what the observer wrote
}

// bundleViolation keeps a step whose RCE is violated, with its weights: nothing else
// has them. It is left out in runs without bundles.
func (r *ppoRun) bundleViolation(b *stepBatch, trajectories []*trace.Trajectory, violation error) error {
	if r.c.BundleEvery == 0 {
		return nil
	}
	k, err := r.newRecorder(b, true)
	if err != nil {
		return err
	}
	defer k.discard()
	return k.write(b, trajectories, violation)
}

// openBundle starts the bundle of a step before its update, where one is due.
func (r *ppoRun) openBundle(b *stepBatch, weights bool) (*recorder, error) {
	if r.c.BundleEvery == 0 || r.state.Step%r.c.BundleEvery != 0 {
		return nil, nil
	}
	return r.newRecorder(b, weights)
}

func (r *ppoRun) newRecorder(b *stepBatch, weights bool) (_ *recorder, err error) {
	k := &recorder{r: r, samples: b.samples, bundle: Bundle{
		Schema: bundleSchema, Step: r.state.Step + 1, Config: r.c,
		Machine: Machine{torch.Version(), torch.BLASCore(), torch.NumThreads(), runtime.GOARCH},
		Weights: r.weightHashes(), Random: r.c.randomState(r.state.Step),
		Files: map[string]string{},
	}}
	if !weights {
		return k, nil
	}
	folder := filepath.Join(r.p.Dir, BundlesFolder)
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return nil, err
	}
	if k.early, err = os.MkdirTemp(folder, temporaryPrefix); err != nil {
		return nil, err
	}
	into := filepath.Join(k.early, weightsPart)
	if err := errors.Join(os.Mkdir(into, 0o755), os.Chmod(k.early, 0o755)); err != nil {
		k.discard()
		return nil, err
	}
	if err := r.writeWeights(into); err != nil {
		k.discard()
		return nil, fmt.Errorf("bundle: %w", err)
	}
	return k, nil
}

// discard removes what was written for a bundle that is not kept.
func (k *recorder) discard() {
	if k != nil && k.early != "" {
		os.RemoveAll(k.early)
	}
}

// watch is the observer that records microbatches; nil for no bundle.
func (k *recorder) watch() observer {
	if k == nil {
		return nil
	}
	return func(m microRun) bool {
		s := torch.NewScope()
		defer s.Close()
		if len(k.bundle.Micros) == 0 {
			gradients := k.r.gradientsOf()
			k.bundle.Gradient = gradientRecords(gradients)
			if k.early != "" {
				k.err = torch.WriteSafetensors(filepath.Join(k.early, gradientFile), gradients, nil)
			}
		}
		k.bundle.Micros = append(k.bundle.Micros, k.r.microRecord(m, k.samples))
		return true
	}
}

// microRecord is what a microbatch did, with the norms of the gradients as they are.
func (r *ppoRun) microRecord(m microRun, all []*sample) MicroRecord {
	u := m.stats
	return MicroRecord{
		Epoch: m.epoch, Minibatch: m.minibatch, Samples: placesOf(m.samples, all),
		Actions: u.Actions, TeacherSet: u.TeacherActions,
		Policy: number(u.Policy), Value: number(u.Value), Entropy: number(u.Entropy), TeacherKL: number(u.Teacher),
		ApproxKL: number(u.ApproxKL), Clipped: number(u.Clipped), ValueClipped: number(u.ValueClipped), RatioMax: number(u.RatioMax),
		ActorNorm: number(torch.GradNorm(r.actorOptimizer.tensors)), CriticNorm: number(torch.GradNorm(r.criticOptimizer.tensors)),
	}
}

// placesOf are the places of samples among all.
func placesOf(samples, all []*sample) []int {
	places := make([]int, len(samples))
	for i, x := range samples {
		places[i] = slices.Index(all, x)
	}
	return places
}

// write puts the bundle in place after the update, which may have failed.
func (k *recorder) write(b *stepBatch, trajectories []*trace.Trajectory, failed error) error {
	if k == nil {
		return nil
	}
	if failed != nil {
		k.bundle.Error = failed.Error()
	}
	path := BundlePath(k.r.p.Dir, k.bundle.Step)
	err := writeFolder(path, func(dir string) error {
		if k.err != nil {
			return k.err
		}
		if k.early != "" {
			for _, part := range []string{weightsPart, gradientFile} {
				err := os.Rename(filepath.Join(k.early, part), filepath.Join(dir, part))
				if err != nil && !errors.Is(err, fs.ErrNotExist) { // a step that broke off has no gradient
					return err
				}
			}
		}
		if err := trace.WriteAll(filepath.Join(dir, ledgerFile), trajectories); err != nil {
			return err
		}
		if err := k.batches(dir, b); err != nil {
			return err
		}
		return writeJSON(filepath.Join(dir, bundleFile), k.bundle)
	})
	if err != nil {
		return fmt.Errorf("bundle: %w", err)
	}
	return nil
}

// batches writes what the step compiled and scored, and hashes the files.
func (k *recorder) batches(dir string, b *stepBatch) error {
	batch, teacher, err := b.exported(k.r.c)
	if err != nil {
		return err
	}
	if err := export.WriteSafetensors(filepath.Join(dir, batchFile), batch); err != nil {
		return err
	}
	files := []string{ledgerFile, batchFile}
	if teacher != nil {
		if err := export.WriteSafetensors(filepath.Join(dir, teacherFile), teacher); err != nil {
			return err
		}
		files = append(files, teacherFile)
	}
	k.bundle.Teacher = b.teacherContexts()
	for _, name := range files {
		if k.bundle.Files[name], err = hashFile(filepath.Join(dir, name)); err != nil {
			return err
		}
	}
	return nil
}

// teacherContexts hash what the teacher sees of each sample; none without a teacher.
func (b *stepBatch) teacherContexts() []ContextHash {
	var all []ContextHash
	for _, x := range b.samples {
		if x.teacherRow != nil {
			all = append(all, hashContext(x.teacherRow))
		}
	}
	return all
}

// exported are the compiled sequences with what was scored, and the teacher's where
// they are others.
func (b *stepBatch) exported(c PPOConfig) (batch, teacher *export.Batch, err error) {
	batch = export.New(c.Layout)
	if c.Teacher == TeacherPersistent {
		teacher = export.New("persistent")
	}
	for _, x := range b.samples {
		values := map[string][]float32{
			columnBehaviour: x.behaviour, columnReference: x.reference, columnValue: x.values,
			columnAdvantage: x.Advantage, columnReturn: x.Return,
		}
		for name, column := range values {
			if column == nil { // not scored
				values[name] = slices.Repeat([]float32{float32(math.NaN())}, len(x.packed.Actions))
			}
		}
		if err := batch.Add(x.trajectory, []*align.Packed{x.packed}, values); err != nil {
			return nil, nil, err
		}
		if teacher != nil {
			if err := teacher.Add(x.trajectory, []*align.Packed{x.teacherRow}, nil); err != nil {
				return nil, nil, err
			}
		}
	}
	return batch, teacher, nil
}
