package train

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/memopd/memopd-bench/align/export"
	"github.com/memopd/memopd-bench/torch"
	"github.com/memopd/memopd-bench/trace"
)

// ReplayOptions say what is run again.
type ReplayOptions struct {
	Bundle    string  // its folder
	Micro     int     // the microbatch, in the order of the step, from 0
	Tolerance float64 // absolute difference of computed numbers that passes; 0: the same bits
}

// ReplayReport is what a replay found.
type ReplayReport struct {
	Bundle  string   `json:"bundle"`
	Step    int      `json:"step"`
	Micro   int      `json:"microbatch"`
	Micros  int      `json:"microbatches"` // of the step
	Weights string   `json:"weights"`      // where those before the step came from, "" for the initial ones
	Notes   []string `json:"notes,omitempty"`
	Stages  []*Stage `json:"stages"`
	First   string   `json:"first_difference"` // the first stage that is not equal, "" if all are
}

// Passed tells that no stage is beyond the tolerance and that the last one was reached.
func (r *ReplayReport) Passed() bool {
	return !slices.ContainsFunc(r.Stages, func(s *Stage) bool { return !s.Passed() }) &&
		len(r.Stages) > 0 && r.Stages[len(r.Stages)-1].Name == StageGradient
}

// Replay runs one microbatch of a step again on the CPU, from the weights before the
// step, and compares stage by stage with what the step's bundle recorded. c is the
// configuration that the run is said to have had. Of p it takes Initial, Teacher, ThinkLength, Dir
// (the run's folder, which it leaves as it is) and Threads (0: as many as the step had).
//
// A microbatch of the first mini-batch needs its mini-batch's earlier ones run as well,
// whose gradients it adds to; one of a later mini-batch all before it.
func Replay(c PPOConfig, p PPOParts, o ReplayOptions) (*ReplayReport, error) {
	b, err := ReadBundle(o.Bundle)
	if err != nil {
		return nil, fmt.Errorf("replay: %w", err)
	}
	if len(b.Micros) == 0 {
		return nil, fmt.Errorf("replay: step %d broke off before its update: %s; the bundle %s holds its ledger and the weights before it (%s/actor)", b.Step, b.Error, o.Bundle, weightsPart)
	}
	if o.Micro < 0 || o.Micro >= len(b.Micros) {
		return nil, fmt.Errorf("replay: microbatch %d of step %d, which has %d (from 0)", o.Micro, b.Step, len(b.Micros))
	}
	if p.Threads == 0 {
		p.Threads = b.Machine.Threads
	}
	defer holdThread(p.Threads)()
	c.Device = "cpu"
	y := &replay{bundle: b, o: o, report: &ReplayReport{Bundle: o.Bundle, Step: b.Step, Micro: o.Micro, Micros: len(b.Micros)}}
	if err := y.open(c, p); err != nil {
		return nil, fmt.Errorf("replay: %w", err)
	}
	defer y.free()
	err = torch.Try(func() error {
		s := torch.NewScope()
		defer s.Close()
		return y.run()
	})
	if err != nil {
		return nil, fmt.Errorf("replay: %w", err)
	}
	for _, s := range y.report.Stages {
		if s.Differences > 0 && y.report.First == "" {
			y.report.First = s.Name
		}
	}
	return y.report, nil
}

// replay is one under way.
type replay struct {
	bundle *Bundle
	o      ReplayOptions
	report *ReplayReport
	r      *ppoRun

	recorded, teacher *export.Batch // teacher is nil where it sees the recorded sequences
	batch             *stepBatch
}

// open loads the weights before the step.
func (y *replay) open(c PPOConfig, p PPOParts) error {
	if err := c.Validate(); err != nil {
		return err
	}
	if (p.Teacher == nil) != (c.Teacher == TeacherNone) {
		return fmt.Errorf("teacher is %q, and a teacher's weights are given: %v", c.Teacher, p.Teacher != nil)
	}
	from, ok := weightsBefore(p.Dir, y.o.Bundle, y.bundle.Step)
	if !ok {
		_, can, err := Bundles(p.Dir)
		if err != nil {
			return err
		}
		return fmt.Errorf("the weights before step %d are not there: neither a checkpoint of step %d under %s nor weights in its bundle (--bundle-weights); steps that can be replayed: %s",
			y.bundle.Step, y.bundle.Step-1, p.Dir, listSteps(can))
	}
	y.report.Weights = from
	y.r = &ppoRun{c: c, p: p, evaluated: -1}
	y.r.state.Step = y.bundle.Step - 1
	if from == "" {
		return y.r.build(p.Initial.CloneTo(c.Trained()))
	}
	return y.r.restore(from)
}

func listSteps(steps []int) string {
	if len(steps) == 0 {
		return "none"
	}
	return strings.Trim(strings.ReplaceAll(fmt.Sprint(steps), " ", ", "), "[]")
}

func (y *replay) free() {
	y.r.free()
	y.r.policy.Free()
}

// stage adds a stage; computed ones take the tolerance.
func (y *replay) stage(name string) *Stage {
	s := &Stage{Name: name}
	if slices.Contains([]string{StageBehaviour, StageReference, StageValues, StageAdvantages, StageLoss, StageGradient}, name) {
		s.tolerance = y.o.Tolerance
	}
	y.report.Stages = append(y.report.Stages, s)
	return s
}

func (y *replay) note(format string, args ...any) {
	y.report.Notes = append(y.report.Notes, fmt.Sprintf(format, args...))
}

// run goes through the stages. It stops where what follows could not be compared.
func (y *replay) run() error {
	y.machine()
	y.config()
	y.weights()
	ok, err := y.sequences()
	if err != nil || !ok {
		return err
	}
	y.rollout()
	micros := y.order()
	if micros == nil {
		return nil
	}
	y.scores(micros[len(micros)-1])
	if err := y.advantages(); err != nil {
		return err
	}
	return y.update(micros)
}

// machine compares what makes other last bits, which is no failure by itself, and
// notes files that are not as they were written.
func (y *replay) machine() {
	m, s := y.bundle.Machine, y.stage(StageMachine)
	for _, x := range []struct{ what, then, now string }{
		{"libtorch", m.Libtorch, torch.Version()}, {"OpenBLAS core", m.BLAS, torch.BLASCore()},
		{"threads", fmt.Sprint(m.Threads), fmt.Sprint(torch.NumThreads())}, {"processor", m.GOARCH, runtime.GOARCH},
		{"device", y.bundle.Config.Device, "cpu"},
	} {
		if x.then == "" || x.then == "0" { // an older bundle, or a library without cores
			continue
		}
		if s.aside(x.what, x.then, x.now); x.then != x.now {
			y.note("%s was %q, is %q: last bits may differ", x.what, x.then, x.now)
		}
	}
	for _, name := range sortedKeys(y.bundle.Files) {
		if sum, err := hashFile(filepath.Join(y.o.Bundle, name)); err != nil || sum != y.bundle.Files[name] {
			y.note("%s is not as it was written", name)
		}
	}
	if y.bundle.Error != "" {
		y.note("the step was not finished: %s", y.bundle.Error)
	}
}

// unchanging are settings that a step does not depend on.
var unchanging = []string{"steps", "eval_every", "checkpoint_every", "checkpoint_keep_every", "bundle_every", "bundle_weights", "device", "offload_frozen"}

func (y *replay) config() {
	s := y.stage(StageConfig)
	then, err := fields(y.bundle.Config)
	now, err2 := fields(y.r.c)
	if err != nil || err2 != nil {
		s.text("settings", fmt.Sprint(err), fmt.Sprint(err2))
		return
	}
	for _, name := range sortedKeys(now) {
		if !slices.Contains(unchanging, name) {
			s.text(name, string(then[name]), string(now[name]))
		}
	}
}

func (y *replay) weights() {
	s := y.stage(StageWeights)
	now := y.r.weightHashes()
	for _, role := range []string{roleActor, roleCritic, roleReference, roleTeacher} {
		then := map[string]string{}
		for _, t := range y.bundle.Weights[role].Tensors {
			then[t.Name] = t.SHA256
		}
		for _, t := range now[role].Tensors {
			s.text(fmt.Sprintf("hash of the %s's %s", role, t.Name), then[t.Name], t.SHA256)
			delete(then, t.Name)
		}
		for _, name := range sortedKeys(then) {
			s.text(fmt.Sprintf("hash of the %s's %s", role, name), then[name], "none")
		}
	}
}

// sequences compiles the ledger and compares with what the step compiled. It reports
// whether the actions are the same in number, so that the rest can be compared.
func (y *replay) sequences() (bool, error) {
	var err error
	if y.recorded, err = export.ReadSafetensors(filepath.Join(y.o.Bundle, batchFile)); err != nil {
		return false, err
	}
	if path := filepath.Join(y.o.Bundle, teacherFile); fileThere(path) {
		if y.teacher, err = export.ReadSafetensors(path); err != nil {
			return false, err
		}
	}
	ids := y.stage(StageIDs)
	trajectories, err := trace.ReadAll(filepath.Join(y.o.Bundle, ledgerFile))
	if err == nil {
		y.batch, err = compileBatch(y.r.c, y.r.options(), trajectories)
	}
	if err != nil {
		ids.text("the ledger", "whole", err.Error())
		return false, nil
	}
	samples := y.batch.samples
	if len(samples) != len(y.recorded.Sequences) {
		ids.text("trajectories that were compiled", fmt.Sprint(len(y.recorded.Sequences)), fmt.Sprint(len(samples)))
		return false, nil
	}
	same := true
	for i, x := range samples {
		ids.ids(y.recorded.Sequences[i].Packed, x.packed)
		same = same && len(x.packed.Actions) == len(y.recorded.Sequences[i].Packed.Actions)
	}
	layout := y.stage(StageLayout)
	for i, x := range samples {
		layout.layout("", y.recorded.Sequences[i].Packed, x.packed)
		if y.teacher != nil && x.teacherRow != nil && i < len(y.teacher.Sequences) {
			row := y.teacher.Sequences[i].Packed
			integers(layout, func(at int) string { return "id of what the teacher sees of " + placeName(row, at) }, row.IDs, x.teacherRow.IDs)
			layout.layout("what the teacher sees of ", row, x.teacherRow)
		}
	}
	now := y.batch.teacherContexts()
	for i, then := range y.bundle.Teacher {
		if i < len(now) {
			layout.text(fmt.Sprintf("hash of what the teacher sees of trajectory %q", samples[i].trajectory.ID), fmt.Sprint(then), fmt.Sprint(now[i]))
		}
	}
	return same, nil
}

func fileThere(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// rollout compares what the ledger says beside ids.
func (y *replay) rollout() {
	s := y.stage(StageRollout)
	for i, x := range y.batch.samples {
		recorded := y.recorded.Sequences[i]
		s.floats(func(a int) string { return "log-prob of the sampler, " + actionName(x.packed, a) }, recorded.Columns[export.LogProb], x.sampler)
		s.double(fmt.Sprintf("reward of trajectory %q", x.trajectory.ID), number(y.recorded.Trajectories[i].Reward), number(x.trajectory.Reward))
	}
}

// order derives the step's microbatches up to the one asked for, compares them with
// those recorded, and returns them; nil if they are others.
func (y *replay) order() [][]*sample {
	s := y.stage(StageOrder)
	s.text("seeds of the step", fmt.Sprintf("%+v", y.bundle.Random), fmt.Sprintf("%+v", y.r.c.randomState(y.r.state.Step)))
	var micros [][]*sample
	for epoch := range y.r.c.EpochsPerStep {
		rng := newRand(y.r.c.Seed, streamMinibatch, uint64(y.r.state.Step), uint64(epoch))
		for i, mini := range minibatches(y.r.c, y.batch.samples, rng) {
			for _, micro := range microbatches(mini, y.r.c.TokensPerMicrobatch, packedLength) {
				n := len(micros)
				micros = append(micros, micro)
				if n < len(y.bundle.Micros) {
					then := y.bundle.Micros[n]
					s.text(fmt.Sprintf("microbatch %d", n), fmt.Sprint(then.Epoch, then.Minibatch, then.Samples), fmt.Sprint(epoch, i, placesOf(micro, y.batch.samples)))
				}
			}
		}
	}
	if y.bundle.Error == "" && len(micros) != len(y.bundle.Micros) {
		s.text("microbatches", fmt.Sprint(len(y.bundle.Micros)), fmt.Sprint(len(micros)))
	}
	if y.o.Micro >= len(micros) || !slices.Equal(placesOf(micros[y.o.Micro], y.batch.samples), y.bundle.Micros[y.o.Micro].Samples) {
		s.Note = "the microbatch asked for is another one"
		return nil
	}
	return micros[:y.o.Micro+1]
}
