package events

import (
	"cmp"
	"encoding/json"
	"os"
	"os/exec"
	"reflect"
	"testing"
)

// TensorBoard's own reader finds each step of a resumed run once, with our values.
func TestTensorBoardReadsIt(t *testing.T) {
	python := cmp.Or(os.Getenv("PEERS_PYTHON"), "python3")
	if out, err := exec.Command(python, "-c", "import tensorboard").CombinedOutput(); err != nil {
		t.Skipf("%s has no tensorboard (PEERS_PYTHON names another): %v %s", python, err, out)
	}
	out, err := exec.Command(python, "-c", `
import json, sys
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
a = EventAccumulator(sys.argv[1], size_guidance={"scalars": 0})
a.Reload()
print(json.dumps({tag: [[e.step, e.value] for e in a.Scalars(tag)] for tag in a.Tags()["scalars"]}))
`, resumed(t)).Output()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	var read map[string][][2]float64
	if err := json.Unmarshal(out, &read); err != nil {
		t.Fatalf("%v in %s", err, out)
	}
	got := map[string][]Point{}
	for tag, points := range read {
		for _, p := range points {
			got[tag] = append(got[tag], Point{int64(p[0]), p[1]})
		}
	}
	if !reflect.DeepEqual(got, resumedWant) {
		t.Errorf("TensorBoard reads %v, want %v", got, resumedWant)
	}
}
