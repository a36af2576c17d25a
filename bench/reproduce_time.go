package main

import (
	"slices"
	"strings"
	"time"

	"github.com/memopd/memopd-bench/datasets"
	"github.com/memopd/memopd-bench/datasets/miniwiki"
)

// The guesses are seconds on one core of a 2-core Intel Xeon with libtorch 1.13. They
// only serve until parts of the same kind are finished.
const (
	guessStart         = 2     // of a process
	guessRollout       = 0.07  // of training, a prompt, updates and dev evaluations included
	guessQuestion      = 0.014 // of an evaluation
	guessTimedQuestion = 0.05  // of a task that runs alone
	guessTimedTask     = 0.07  // the same, whatever its questions
	guessSFTToken      = 122e-6
)

// guessAudits are the seconds that 64 trajectories take.
var guessAudits = map[string]float64{
	"rce.q2": 40, "rce.q8": 250, "teacher.q2": 2, "teacher.q8": 8, "masks.q2": 27, "masks.q8": 95, "updates.q2": 32,
}

func (o reproduceOptions) guessPretrain() float64 {
	c, _, err := sftPreset(o.Preset)
	if err != nil {
		return 0
	}
	return guessStart + guessSFTToken*float64(c.Steps*c.TokensPerStep)
}

func (o reproduceOptions) guessTrain() float64 {
	c, err := ppoPreset(o.Preset)
	if err != nil {
		return 0
	}
	if o.Steps > 0 {
		c.Steps = o.Steps
	}
	return guessStart + guessRollout*float64(c.Steps*c.PromptsPerStep)
}

func (o reproduceOptions) guessEval() float64 {
	sum := float64(guessStart)
	for _, h := range o.Horizon {
		n, _ := datasets.ParseHorizon(h)
		tasks := miniwiki.DefaultTasks(n)
		if o.Tasks > 0 {
			tasks = min(tasks, o.Tasks)
		}
		sum += guessQuestion * float64(n*tasks)
	}
	return sum
}

func (o reproduceOptions) guessTime() float64 {
	sum := float64(guessStart)
	for _, h := range o.Horizon {
		n, _ := datasets.ParseHorizon(h)
		sum += float64(o.timedTasks()) * (guessTimedTask + guessTimedQuestion*float64(n))
	}
	return sum
}

func (o reproduceOptions) guessAudit(what, set string) float64 {
	if what == "speed" {
		if o.Preset == presetSmoke {
			return guessStart
		}
		return 420
	}
	set, _, _ = strings.Cut(set, ".")
	return guessStart + guessAudits[what+"."+set]*float64(o.Trajectories)/64
}

// expected is the seconds that each part has taken or may take: as long as the
// finished ones of its kind did, else its guess, scaled by how far off guesses have
// been.
func (r *reproduction) expected() map[string]float64 {
	type sum struct{ seconds, guess, n float64 }
	kinds, all := map[string]sum{}, sum{}
	for _, p := range r.parts {
		if record := r.states[p.name].record; record != nil {
			k := kinds[p.kind]
			kinds[p.kind] = sum{k.seconds + record.Seconds, k.guess + p.guess, k.n + 1}
			all.seconds, all.guess = all.seconds+record.Seconds, all.guess+p.guess
		}
	}
	scale := 1.0
	if all.guess > 0 {
		scale = all.seconds / all.guess
	}
	out := map[string]float64{}
	for _, p := range r.parts {
		switch k, record := kinds[p.kind], r.states[p.name].record; {
		case record != nil:
			out[p.name] = record.Seconds
		case k.n > 0:
			out[p.name] = k.seconds / k.n
		default:
			out[p.name] = p.guess * scale
		}
	}
	return out
}

// left is the time until the given parts are done by so many jobs: each begins as
// soon as a job is free and what it hangs on is done, those that run alone at the
// end. Parts that failed, or hang on one, count as done.
func (r *reproduction) left(parts []part, now time.Time) time.Duration {
	expected := r.expected()
	jobs := make([]float64, max(1, r.o.Jobs)) // when each is free
	done := map[string]float64{}
	var open, alone []part
	for _, p := range parts {
		switch s := r.states[p.name]; {
		case s.ended():
		case !s.began.IsZero():
			// A part that takes longer than expected is taken to need a tenth more.
			rest := max(expected[p.name]-now.Sub(s.began).Seconds(), 0.1*expected[p.name])
			i := earliest(jobs)
			jobs[i] += rest
			done[p.name] = jobs[i]
		case p.alone:
			alone = append(alone, p)
		default:
			open = append(open, p)
		}
	}
	for len(open) > 0 {
		at, begin := 0, soonest(open[0], open, done)
		for i, p := range open {
			if t := soonest(p, open, done); t < begin {
				at, begin = i, t
			}
		}
		p, i := open[at], earliest(jobs)
		jobs[i] = max(jobs[i], begin) + expected[p.name]
		done[p.name] = jobs[i]
		open = slices.Delete(open, at, at+1)
	}
	end := slices.Max(jobs)
	for _, p := range alone {
		end += expected[p.name]
	}
	return time.Duration(end * float64(time.Second))
}

// soonest is when what a part hangs on is done; very late while that is not known.
func soonest(p part, open []part, done map[string]float64) float64 {
	at := 0.0
	for _, before := range p.after {
		at = max(at, done[before])
		if slices.ContainsFunc(open, func(o part) bool { return o.name == before }) {
			at = 1e12
		}
	}
	return at
}

func earliest(jobs []float64) int {
	best := 0
	for i, t := range jobs {
		if t < jobs[best] {
			best = i
		}
	}
	return best
}
