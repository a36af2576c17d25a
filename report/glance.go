package report

import (
	"fmt"
	"slices"
	"strings"

	"github.com/memopd/memopd-bench/results"
)

// tile is one horizon at a glance.
type tile struct {
	Horizon   string
	Variant   string
	F1        string
	Versus    []string // variant, F1
	Change    string   // against the baseline, "" where there is none
	Better    int      // +1, -1, 0: the interval holds 0
	Published string
}

// glance is memopd's F1 by horizon beside the others'.
func glance(summaries []results.Summary) []tile {
	horizons, variants := horizonsOf(summaries)
	var tiles []tile
	for _, h := range horizons {
		sum := summaryOf(summaries, "memopd", h)
		if sum == nil {
			continue
		}
		t := tile{Horizon: horizonTitle(h), Variant: sum.Variant, F1: decimals3(sum.Means["f1"].Mean)}
		for _, v := range variants {
			if other := summaryOf(summaries, v, h); other != nil && v != "memopd" && slices.Contains([]string{"sft", "ppo", "persistent"}, v) {
				t.Versus = append(t.Versus, v+" "+decimals3(other.Means["f1"].Mean))
			}
		}
		if c := changeOf(sum, "f1"); c != nil {
			t.Change = fmt.Sprintf("%+.1f %% against %s [%+.1f, %+.1f]", c.Mean, baseline, c.Low, c.High)
			if c.Low > 0 {
				t.Better = 1
			} else if c.High < 0 {
				t.Better = -1
			}
		}
		for _, n := range results.PublishedNumbers() {
			if strings.HasPrefix(n.Table, "T") && n.Variant == "memopd" && n.Baseline == baseline && n.Metric == "f1" && sameHorizon(n.Horizon, h) && n.Table != "T5" {
				t.Published = fmt.Sprintf("published: %+.1f %%", n.Value)
			}
		}
		tiles = append(tiles, t)
	}
	return tiles
}

func decimals3(v float64) string { return fmt.Sprintf("%.3f", v) }
