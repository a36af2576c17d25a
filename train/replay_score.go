package train

import (
	"fmt"
	"path/filepath"
	"slices"

	"github.com/memopd/memopd-bench/model"
	"github.com/memopd/memopd-bench/torch"
)

// scoredWith are the scoring microbatches that hold any of some samples: numbers are
// the same bits only in the same company.
func (y *replay) scoredWith(samples []*sample) [][]*sample {
	var all [][]*sample
	for _, micro := range microbatches(y.batch.samples, y.r.c.TokensPerMicrobatch, packedLength) {
		if slices.ContainsFunc(micro, func(x *sample) bool { return slices.Contains(samples, x) }) {
			all = append(all, micro)
		}
	}
	return all
}

// scores computes log-probs and values of the microbatch's trajectories anew.
func (y *replay) scores(micro []*sample) {
	behaviour, reference, values := y.stage(StageBehaviour), y.stage(StageReference), y.stage(StageValues)
	scored := y.scoredWith(micro)
	torch.NoGrad(func() {
		for _, part := range scored {
			y.r.scoreMicrobatch(part)
		}
		if y.r.c.KLCoefficient != 0 {
			y.r.reference.use(func(d *model.Decoder) { y.r.scoreReference(d, scored) })
		}
	})
	if y.r.c.KLCoefficient == 0 {
		reference.Note = "none: the KL coefficient is 0"
	}
	for i, x := range y.batch.samples {
		recorded := y.recorded.Sequences[i].Columns
		name := func(what string) func(int) string {
			return func(a int) string { return what + actionName(x.packed, a) }
		}
		if x.behaviour != nil {
			behaviour.floats(name(""), recorded[columnBehaviour], x.behaviour)
			values.floats(name(""), recorded[columnValue], x.values)
		}
		if x.reference != nil {
			reference.floats(name(""), recorded[columnReference], x.reference)
		}
	}
}

// advantages estimates those of the whole step from the recorded log-probs and values,
// and leaves all samples as they were recorded.
func (y *replay) advantages() error {
	s := y.stage(StageAdvantages)
	for i, x := range y.batch.samples {
		recorded := y.recorded.Sequences[i].Columns
		x.behaviour, x.values, x.reference = recorded[columnBehaviour], recorded[columnValue], nil
		if y.r.c.KLCoefficient != 0 {
			x.reference = recorded[columnReference]
		}
		x.reward = 0
	}
	if err := y.r.estimate(y.batch); err != nil {
		return err
	}
	for i, x := range y.batch.samples {
		recorded := y.recorded.Sequences[i].Columns
		s.floats(func(a int) string { return "advantage of " + actionName(x.packed, a) }, recorded[columnAdvantage], x.Advantage)
		s.floats(func(a int) string { return "return of " + actionName(x.packed, a) }, recorded[columnReturn], x.Return)
		x.Advantage, x.Return = recorded[columnAdvantage], recorded[columnReturn]
	}
	return nil
}

// update runs the step's update up to the microbatch asked for.
func (y *replay) update(micros [][]*sample) error {
	loss, gradient := y.stage(StageLoss), y.stage(StageGradient)
	if y.r.teacher != nil {
		var needed []*sample
		for _, micro := range micros {
			needed = append(needed, micro...)
		}
		torch.NoGrad(func() {
			y.r.teacher.use(func(d *model.Decoder) {
				y.r.scoreTeacher(d, y.batch, func(part []*sample) bool {
					return slices.ContainsFunc(part, func(x *sample) bool { return slices.Contains(needed, x) })
				})
			})
		})
	}
	var failed error
	n := 0
	_, err := y.r.update(y.batch, func(m microRun) bool {
		now, then := y.r.microRecord(m, y.batch.samples), y.bundle.Micros[n]
		compareLoss(loss, n, then, now)
		if n == y.o.Micro {
			failed = y.compareGradient(gradient, n, then, now)
		}
		n++
		return n <= y.o.Micro
	})
	if failed != nil {
		return failed
	}
	if err != nil && n > y.o.Micro {
		err = nil // it diverged after what was asked for
	}
	return err
}

func compareLoss(s *Stage, n int, then, now MicroRecord) {
	for _, x := range []struct {
		name      string
		then, now number
	}{
		{"policy loss", then.Policy, now.Policy}, {"value loss", then.Value, now.Value}, {"entropy", then.Entropy, now.Entropy},
		{"KL to the teacher", then.TeacherKL, now.TeacherKL}, {"approximate KL", then.ApproxKL, now.ApproxKL},
		{"clipped actions", then.Clipped, now.Clipped}, {"clipped values", then.ValueClipped, now.ValueClipped},
		{"largest ratio", then.RatioMax, now.RatioMax},
		{"actions", number(then.Actions), number(now.Actions)}, {"teacher's actions", number(then.TeacherSet), number(now.TeacherSet)},
	} {
		s.double(fmt.Sprintf("microbatch %d: %s", n, x.name), x.then, x.now)
	}
}

// compareGradient compares the gradients that are there now: their norm, and after the
// first microbatch each weight's by its hash, or element by element where they were kept.
func (y *replay) compareGradient(s *Stage, n int, then, now MicroRecord) error {
	s.double("norm of the actor's gradient", then.ActorNorm, now.ActorNorm)
	s.double("norm of the critic's gradient", then.CriticNorm, now.CriticNorm)
	if n > 0 {
		s.Note = "norms alone: hashes were kept of the first microbatch's gradient"
		return nil
	}
	scope := torch.NewScope()
	defer scope.Close()
	gradients := y.r.gradientsOf()
	kept, err := y.keptGradient()
	if err != nil {
		return err
	}
	before := map[string]GradientRecord{}
	for _, g := range y.bundle.Gradient {
		before[g.Name] = g
	}
	for i, g := range gradientRecords(gradients) {
		was, ok := before[g.Name]
		delete(before, g.Name)
		if values := kept[g.Name]; ok && values != nil {
			s.floats(func(at int) string { return fmt.Sprintf("element %d of the gradient of %s", at, g.Name) }, values.Float32s(), gradients[i].Tensor.Float32s())
			continue
		}
		s.double("norm of the gradient of "+g.Name, was.Norm, g.Norm)
		if s.Values++; was.SHA256 != g.SHA256 { // with a tolerance, the norm's difference is what counts
			s.differ("hash of the gradient of "+g.Name, was.SHA256, g.SHA256, 0)
		}
	}
	for _, name := range sortedKeys(before) {
		s.text("gradient of "+name, before[name].SHA256, "none")
	}
	return nil
}

// keptGradient reads the first microbatch's gradient; nil where it was not kept.
func (y *replay) keptGradient() (map[string]*torch.Tensor, error) {
	path := filepath.Join(y.o.Bundle, gradientFile)
	if !fileThere(path) {
		return nil, nil
	}
	kept, _, err := torch.ReadSafetensors(path)
	return kept, err
}
