package ledger

import (
	"fmt"
	"slices"
	"strings"

	"github.com/memopd/memopd-bench/trace"
)

// cut looks for outputs and prompts that lost a part.
func (s *subject) cut() {
	if slices.Contains(s.t.Lacks, "beginnings") {
		s.fail(CheckCut, Finding{Call: -1, Token: -1, Problem: "a prompt begins in the middle of what came before: cut from the left"})
	}
	for i := range s.t.Calls {
		c := &s.t.Calls[i]
		s.saw(CheckCut, 1, len(c.Output))
		switch c.Stop {
		case trace.StopLength:
			s.warn(CheckCut, Finding{Call: i, Token: len(c.Output) - 1, Problem: "the output ends at its length limit"})
		case trace.StopContext:
			s.warn(CheckCut, Finding{Call: i, Token: len(c.Output) - 1, Problem: "the output ends where the model's context was full"})
		}
	}
	if s.t.End == trace.EndContext {
		s.warn(CheckCut, Finding{Call: -1, Token: -1, Problem: "the trajectory ended because a context did not fit"})
	}
}

// sampler checks the settings against what log-probs are taken for. Those of the
// model's own distribution, where the draw was from another, are off: at a
// temperature by their scale, with top-p or top-k by the logarithm of the share S of
// the distribution that was left, log S a token.
func (s *subject) sampler() {
	set := s.t.Sampler
	s.saw(CheckSampler, len(s.t.Calls), s.t.SampledTokens())
	note := func(failure bool, problem string, args ...any) {
		s.note(CheckSampler, Finding{Call: -1, Token: -1, Failure: failure, Problem: fmt.Sprintf(problem, args...)})
	}
	lacks := func(name string) bool { return slices.Contains(s.t.Lacks, name) }
	var missing []string
	for _, name := range []string{"temperature", "top_p", "top_k"} {
		if lacks(name) {
			missing = append(missing, name)
		}
	}
	if len(missing) > 0 {
		note(false, "%s not known", strings.Join(missing, ", "))
	}
	scored := slices.ContainsFunc(s.t.Calls, func(c trace.Call) bool { return c.LogProbs != nil })
	if !scored {
		return // no log-probs that the settings could contradict
	}
	if !set.Greedy && !lacks("temperature") && set.Temperature == 0 {
		note(true, "sampled at temperature 0, yet not greedy")
	}
	if !set.Greedy && !lacks("top_p") && set.TopP == 0 {
		note(true, "top_p is 0: nothing is left to draw from")
	}
	var off []string
	if !set.Greedy {
		if !lacks("temperature") && set.Temperature != 1 {
			off = append(off, fmt.Sprintf("temperature %v", set.Temperature))
		}
		if !lacks("top_p") && set.TopP < 1 {
			off = append(off, fmt.Sprintf("top_p %v", set.TopP))
		}
		if !lacks("top_k") && set.TopK > 0 {
			off = append(off, fmt.Sprintf("top_k %d", set.TopK))
		}
	}
	how := strings.Join(off, ", ")
	switch {
	case set.Meaning == trace.MeaningRaw && how != "":
		note(true, "log-probs are the model's own, before %s: not those of what was drawn (top-p and top-k leave a share S: off by log S)", how)
	case set.Meaning == trace.MeaningUnknown && how != "":
		note(false, "log-probs may be of before or after %s: the source does not say", how)
	case set.Meaning == trace.MeaningUnknown:
		note(false, "whether log-probs are of before or after temperature, top-p and top-k is not said")
	}
}

// lack lists what the source did not hold.
func (s *subject) lack() {
	s.saw(CheckLacks, len(s.t.Calls), s.t.SampledTokens())
	for _, name := range s.t.Lacks {
		s.lacks[name]++
	}
	if len(s.t.Lacks) > 0 {
		s.warn(CheckLacks, Finding{Call: -1, Token: -1, Problem: strings.Join(s.t.Lacks, ", ")})
	}
}
