package train

import "github.com/memopd/memopd-bench/model"

// Saving is a change of the settings that takes less memory, and its price.
type Saving struct {
	Name  string // the flag, where it is one
	Price string
	Apply func(c *PPOConfig, w *Workload)
}

// Savings are the changes that Advise tries, those that change least first.
var Savings = []Saving{
	{"--gradient-checkpointing", "about a third more time for an update", func(c *PPOConfig, _ *Workload) { c.CheckpointLayers = true }},
	{"--logits-per-chunk 256", "little: smaller matrix products", func(c *PPOConfig, _ *Workload) { c.LogitsPerChunk = 256 }},
	{"--rows halved", "slower rollouts", func(_ *PPOConfig, w *Workload) { w.SampledRows = max(1, w.SampledRows/2) }},
	{"--dtype bf16", "layers compute in bf16, frozen models are stored in it", func(c *PPOConfig, _ *Workload) { c.DType = BFloat16 }},
	{"--offload-frozen", "reference and teacher are copied to the device in each step", func(c *PPOConfig, _ *Workload) { c.OffloadFrozen = true }},
	{"--critic head", "a weaker critic than the paper's decoder", func(c *PPOConfig, _ *Workload) { c.Critic = CriticHead }},
}

// Advice is what one change, or several together, would bring.
type Advice struct {
	Changes []string `json:"changes"`
	Prices  []string `json:"prices"`
	Phase   Phase    `json:"phase"` // that needs most then
	Peak    int64    `json:"peak"`  // bytes
	Fits    bool     `json:"fits"`
}

// Advise says for each change that lowers the peak what it would bring by itself,
// and which of them would do together: as few as it takes, those that change least
// before others. limit is in bytes.
func Advise(c PPOConfig, student model.Config, teacher *model.Config, w Workload, limit int64) (each []Advice, together Advice) {
	with := func(changes []Saving) Advice {
		c, w := c, w
		a := Advice{}
		for _, s := range changes {
			s.Apply(&c, &w)
			a.Changes, a.Prices = append(a.Changes, s.Name), append(a.Prices, s.Price)
		}
		a.Phase, a.Peak = PlanPPO(c, student, teacher, w).Peak()
		a.Fits = a.Peak <= limit
		return a
	}
	together = with(nil)
	now := together.Peak
	var chosen []Saving
	for _, s := range Savings {
		if a := with([]Saving{s}); a.Peak < now {
			each = append(each, a)
		}
		if together.Fits {
			continue
		}
		if a := with(append(chosen[:len(chosen):len(chosen)], s)); a.Peak < together.Peak {
			chosen, together = append(chosen, s), a
		}
	}
	for i := 0; together.Fits && i < len(chosen); { // what a later change makes needless
		fewer := append(chosen[:i:i], chosen[i+1:]...)
		if a := with(fewer); a.Fits {
			chosen, together = fewer, a
		} else {
			i++
		}
	}
	return each, together
}
