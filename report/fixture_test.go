package report

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/memopd/memopd-bench/results"
)

// fixture is a made-up outcome for tests: of the right form, measured by nobody.
// Its audits alone are the repository's records.
func fixture(t testing.TB, seeds int) *Outcome {
	t.Helper()
	audits, err := results.LoadAudits("../results/audit")
	if err != nil {
		t.Fatal(err)
	}
	o := &Outcome{Dir: "results/fixture"}
	o.Audits = audits
	o.Audits.RCE = slices.DeleteFunc(o.Audits.RCE, func(a results.RCEAudit) bool { return !strings.HasPrefix(a.Set, "mini") })
	o.Audits.Updates = slices.DeleteFunc(o.Audits.Updates, func(a results.UpdatesAudit) bool { return !strings.HasPrefix(a.Set, "mini") })
	o.Manifest.Preset, o.Manifest.Commit, o.Manifest.Libtorch = "fixture", "0123456789abcdef", "made up"
	rng := rand.New(rand.NewPCG(7, 7))
	for seed := range int64(seeds) {
		o.Manifest.Seeds = append(o.Manifest.Seeds, seed)
		for i, v := range fixtureVariants {
			fixtureRows(o, v, seed, i, rng)
			if v != "sft" {
				fixtureCurves(o, v, seed, i, rng)
				o.Manifest.Parts = append(o.Manifest.Parts, results.Part{Name: fmt.Sprintf("train/%s/seed-%d", v, seed),
					Command: []string{"train", "--preset", "fixture", "--variant", v, "--seeds", fmt.Sprint(seed)}, Commit: "0123456789abcdef", Seconds: 300 + 200*rng.Float64()})
			}
		}
	}
	for _, v := range fixtureVariants {
		for i, n := range []int{2, 2, 8, 16} {
			o.Trajectories = append(o.Trajectories, fixtureTrajectory(v, n, i, rng))
		}
	}
	if err := o.prepare(); err != nil {
		t.Fatal(err)
	}
	return o
}

var fixtureVariants = []string{"sft", "ppo", "persistent", "memopd", "memopd-topk"}

// fixtureF1 is about where a variant comes to at a horizon.
var fixtureF1 = map[string][]float64{
	"q2": {.75, .87, .99, .99, .98}, "q8": {.67, .63, .48, .73, .71}, "q16": {.36, .34, .16, .43, .41}, "wikirag": {.72, .83, 1, .99, .99},
}

func fixtureRows(o *Outcome, variant string, seed int64, i int, rng *rand.Rand) {
	for _, h := range []string{"q2", "q8", "q16", "wikirag"} {
		shift := .02 * rng.NormFloat64()
		for task := range 40 {
			f1 := min(max(fixtureF1[h][i]+shift+.15*rng.NormFloat64(), 0), 1)
			seconds := .2 + .02*rng.Float64()
			o.Rows = append(o.Rows, results.TaskRow{Variant: variant, Seed: seed, Horizon: h, TaskID: fmt.Sprintf("%s-%d", h, task),
				Values: results.Values{EM: f1, F1: f1, EMMEM1: 2 * f1, F1MEM1: 2 * f1, PeakContext: 60 + 10*float64(len(h)) + 5*rng.Float64(), Dependency: 9000 * rng.Float64(), InferenceSeconds: &seconds}})
		}
	}
}

func fixtureCurves(o *Outcome, variant string, seed int64, i int, rng *rand.Rand) {
	for step := 0; step <= 200; step++ {
		x := float64(step) / 200
		m := map[string]float64{stepKey: float64(step)}
		if step%20 == 0 {
			for _, h := range []string{"q1", "q2", "q8", "q16"} {
				end := .9
				if f := fixtureF1[h]; f != nil {
					end = f[i]
				}
				m["eval/"+h+"_f1"] = min(.6+(end-.6)*math.Sqrt(x)+.02*rng.NormFloat64(), 1)
			}
		}
		if step > 0 {
			m["score/reward"] = min(.58+.35*math.Sqrt(x)+.04*rng.NormFloat64(), 1)
			m["actor/reference_kl"] = .03*x + .003*rng.NormFloat64()
			if variant != "ppo" {
				m["actor/teacher_kl"] = .15*math.Exp(-4*x)*(1+.2*rng.NormFloat64()) + .001
			}
		}
		c := results.Curve{Variant: variant, Seed: seed, Metrics: map[string]*float64{}}
		for k, v := range m {
			c.Metrics[k] = &v
		}
		o.Curves = append(o.Curves, c)
	}
}

// fixtureTrajectory is an agent of mini's words: it looks up a name a question, and
// forgets now and then.
func fixtureTrajectory(variant string, n, task int, rng *rand.Rand) results.TrajectoryView {
	words := func(s string) results.ViewText { return results.ViewText{Text: s, Tokens: len(strings.Fields(s))} }
	v := results.TrajectoryView{Variant: variant, Horizon: fmt.Sprintf("q%d", n), TaskID: fmt.Sprintf("w71/q%d-%d", n, task), Update: "mem1", End: "answered"}
	name := func() string {
		return []string{"noge", "kome", "gola", "roge", "fagi", "tuba", "rilo", "sadi", "peku"}[rng.IntN(9)] + string(rune('a'+rng.IntN(26)))
	}
	prefix := "<bos> answer all questions :"
	var golds, memory []string
	for i := range n {
		who := name()
		golds = append(golds, name())
		v.Questions, v.Golds = append(v.Questions, who+" birth"), append(v.Golds, []string{golds[i]})
		prefix += fmt.Sprintf(" q%d %s birth ;", i+1, who)
	}
	v.Prefix = words(prefix + " </q>")
	for i := range n {
		who := strings.Fields(v.Questions[i])[0]
		see := ""
		if i > 0 {
			see = "see birth " + golds[i-1] + " ; "
		}
		response := "<think> " + see + strings.Join(memory, " ") + fmt.Sprintf(" next q%d %s birth </think> <search> %s </search>", i+1, who, who)
		v.Calls = append(v.Calls, results.CallView{Response: words(response), Stop: "stop_tag", Outcome: "search", Query: who, Documents: []string{"w71/" + who}, Seconds: .03,
			Observation: words(fmt.Sprintf("<information> turns %d ; title %s : spouse %s ; birth %s ; employer %s ; </information>", 2*n-i, who, name(), golds[i], name()))})
		memory = append(memory, fmt.Sprintf("q%d %s ;", i+1, golds[i]))
		if len(memory) > 2 && rng.IntN(5) == 0 {
			memory = slices.Delete(memory, 0, 1)
		}
	}
	for i, g := range golds {
		answer := g
		if !slices.Contains(memory, fmt.Sprintf("q%d %s ;", i+1, g)) || rng.IntN(12) == 0 {
			answer = name()
		}
		v.Answers = append(v.Answers, answer)
		s := results.Score{}
		if answer == g {
			s = results.Score{EM: 1, F1: 1}
		}
		v.Scores = append(v.Scores, s)
		v.EM, v.F1 = v.EM+s.EM/float64(n), v.F1+s.F1/float64(n)
	}
	last := results.CallView{Response: words("<think> " + strings.Join(memory, " ") + " </think> <answer> " + strings.Join(v.Answers, " ; ") + " </answer>"), Stop: "stop_tag", Outcome: "answer", Seconds: .05}
	if variant == "ppo" && n == 16 {
		v.End, v.Answers, v.EM, v.F1, v.Scores = "turn_limit", nil, 0, 0, make([]results.Score, n)
		last.Outcome, last.Reason, last.Response = "unusable", "no search or answer tag", words("<think> "+strings.Join(memory, " "))
	}
	v.Calls = append(v.Calls, last)
	for k := range v.Calls {
		fixtureContext(&v, k)
	}
	return v
}

// fixtureContext gives a call MEM1's context.
func fixtureContext(v *results.TrajectoryView, k int) {
	parts := func(j int) []results.ContextPart {
		return []results.ContextPart{{Origin: "retained", FromCall: j, ViewText: v.Calls[j].Response}, {Origin: "observation", FromCall: j, ViewText: v.Calls[j].Observation}}
	}
	c := &v.Calls[k]
	if k > 0 {
		c.Context = parts(k - 1)
	}
	if k > 1 {
		c.Dropped = parts(k - 2)
	}
	c.ContextTokens = v.Prefix.Tokens
	for _, p := range c.Context {
		c.ContextTokens += p.Tokens
	}
	v.PeakContext = max(v.PeakContext, float64(c.ContextTokens+c.Response.Tokens))
}
