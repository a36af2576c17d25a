package rollouts

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/memopd/memopd-bench/trace"
)

// recorded is a file of rollouts that others recorded, which is no part of the repository.
func recorded(t *testing.T, name string) string {
	t.Helper()
	path := filepath.Join("../../../shared/data/rollouts", name)
	if _, err := os.Stat(path); err != nil {
		t.Skipf("no %s: recorded rollouts are not here", name)
	}
	return path
}

// Recorded rollouts import whole: calls and tokens were counted from the files with
// another program.
func TestRecordedRollouts(t *testing.T) {
	for _, c := range []struct {
		file, format                             string
		trajectories, calls, sampled, noLogProbs int
		refused                                  int
		lacks                                    []string // of the first
	}{
		{"nemo_gym_competitive_coding_example_rollouts.jsonl", "nemo-gym", 5, 5, 5023, 0, 0,
			[]string{LackMeaning, LackStops, LackTemperature, LackTopK, LackTopP}},
		{"nemo_gym_vllm_model_round_trip_test_data.json", "nemo-gym", 1, 2, 702, 0, 0,
			[]string{LackOrigins, LackMeaning, LackStops, LackTemperature, LackTopK, LackTopP}},
		{"nemo_rl_maybe_correct_merged_tokens_test_data.json", "nemo-rl", 1, 2, 4763, 1, 0,
			[]string{LackBoundaries, LackOrigins, LackGeneration, LackLogProbs, LackStops, LackTemperature, LackTopK, LackTopP}},
		{"nemo_rl_replace_prefix_worker.json", "nemo-rl", 1, 2, 143, 1, 0,
			[]string{LackBoundaries, LackOrigins, LackGeneration, LackLogProbs, LackStops, LackTemperature, LackTopK, LackTopP}},
		{"nemo_rl_test_nemo_gym_sanity.json", "nemo-rl", 0, 0, 0, 0, 2, nil},
	} {
		t.Run(c.file, func(t *testing.T) {
			all, refused := read(t, recorded(t, c.file), c.format)
			calls, sampled, noLogProbs := 0, 0, 0
			for _, tr := range all {
				calls += len(tr.Calls)
				sampled += tr.SampledTokens()
				for i := range tr.Calls {
					if len(tr.Calls[i].Output) > 0 && tr.Calls[i].LogProbs == nil {
						noLogProbs++
					}
				}
			}
			if len(all) != c.trajectories || calls != c.calls || sampled != c.sampled || noLogProbs != c.noLogProbs || len(refused) != c.refused {
				t.Errorf("%d trajectories, %d calls, %d tokens, %d calls without log-probs, %d refused; want %+v",
					len(all), calls, sampled, noLogProbs, len(refused), c)
			}
			if len(all) > 0 && !slices.Equal(all[0].Lacks, c.lacks) {
				t.Errorf("lacks %q, want %q", all[0].Lacks, c.lacks)
			}
		})
	}
}

// A rendered prompt leaves the ids that were sampled where they are, and the ones
// that it put in their place are of unknown origin.
func TestRecordedRenderings(t *testing.T) {
	all, _ := read(t, recorded(t, "nemo_rl_maybe_correct_merged_tokens_test_data.json"), "nemo-rl")
	unknownIDs := 0
	for _, s := range all[0].Calls[1].Spans {
		if s.Origin == trace.OriginUnknown {
			unknownIDs += s.End - s.Start
		}
	}
	if n := len(all[0].Calls[1].Spans); unknownIDs != 6 || n != 13 {
		t.Errorf("%d ids of unknown origin in %d spans, want 6 in 13", unknownIDs, n)
	}
}
