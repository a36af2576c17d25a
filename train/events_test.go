package train

import (
	"path/filepath"
	"slices"
	"testing"

	"github.com/memopd/memopd-bench/train/events"
)

// checkEvents compares a run's event files with its metrics: every number once, at
// its step, under the metric's name and the other projects'.
func checkEvents(t *testing.T, dir string) {
	t.Helper()
	got, err := events.Read(dir)
	if err != nil {
		t.Fatal(err)
	}
	records, err := ReadRecords(filepath.Join(dir, MetricsFile))
	if err != nil {
		t.Fatal(err)
	}
	want := map[string][]events.Point{}
	for _, r := range records {
		step, _ := r.Get(StepMetric)
		for _, m := range r {
			if m.Value != m.Value || m.Name == StepMetric { // NaN
				continue
			}
			for _, tag := range events.TagsOf(m.Name) {
				want[tag] = append(want[tag], events.Point{Step: int64(step), Value: float64(float32(m.Value))})
			}
		}
	}
	if len(want) < 5 || len(got) != len(want) {
		t.Errorf("events of %d tags, metrics of %d", len(got), len(want))
	}
	for tag, points := range want {
		if !slices.Equal(got[tag], points) {
			t.Errorf("%s: events have %v, metrics %v", tag, got[tag], points)
		}
	}
}
