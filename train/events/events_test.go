package events

import (
	"bytes"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"
)

// at is a clock that stands at BEGIN of scripts/peers/tensorboard_vectors.py, and
// later by the seconds given.
func at(seconds int) func() time.Time {
	return func() time.Time { return time.Unix(1_700_000_000+int64(seconds), 250_000_000) }
}

func add(t *testing.T, w *Writer, step int, scalars ...Scalar) {
	t.Helper()
	if err := w.Add(step, scalars); err != nil {
		t.Fatal(err)
	}
}

// The file is byte for byte what TensorBoard's own messages and writer make.
func TestFileIsTensorBoards(t *testing.T) {
	want, err := os.ReadFile(filepath.Join("testdata", "tensorboard.tfevents"))
	if err != nil {
		t.Fatal(err)
	}
	w := NewWriter(t.TempDir(), 8)
	w.now = at(0)
	add(t, w, 8, Scalar{"losses/policy_loss", -0.0125}, Scalar{"charts/episodic_return", 0.5})
	w.now = at(1)
	add(t, w, 9, Scalar{"losses/policy_loss", 1e-7}, Scalar{"actor/pg_clipfrac", 0})
	w.now = at(2)
	add(t, w, 300, Scalar{"perf/total_num_tokens", 123456})
	got, err := os.ReadFile(w.path)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("wrote\n%x, TensorBoard\n%x", got, want)
	}
	if base := filepath.Base(w.path); !strings.HasPrefix(base, "events.out.tfevents.1700000000.") {
		t.Errorf("the file is called %s", base)
	}
}

// resumed is a folder of a run that was killed after step 3 and taken up again from
// the checkpoint of step 1, all within one second.
func resumed(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for _, begin := range []int{0, 1} {
		w := NewWriter(dir, 0)
		if begin > 0 {
			w = NewWriter(dir, begin+1)
		}
		w.now = at(0)
		for step := begin + 1; step <= 3; step++ {
			add(t, w, step, Scalar{"losses/entropy", float64(10*begin + step)}, Scalar{"actor/ratio_max", math.Inf(1)})
		}
	}
	return dir
}

var resumedWant = map[string][]Point{"losses/entropy": {{1, 1}, {2, 12}, {3, 13}}}

func TestResumedRunHasEachStepOnce(t *testing.T) {
	dir := resumed(t)
	files, err := Files(dir)
	if err != nil || len(files) != 2 {
		t.Fatalf("%d files, %v", len(files), err)
	}
	got, err := Read(dir)
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(got, resumedWant) {
		t.Errorf("read %v, want %v", got, resumedWant)
	}
}

// A record that a killed process left unfinished does not hide what was written after.
func TestUnfinishedRecord(t *testing.T) {
	dir := t.TempDir()
	w := NewWriter(dir, 0)
	add(t, w, 1, Scalar{"a", 1})
	add(t, w, 2, Scalar{"a", 2})
	data, err := os.ReadFile(w.path)
	if err != nil {
		t.Fatal(err)
	}
	for _, cut := range []int{1, 10, 20} {
		if err := os.WriteFile(w.path, data[:len(data)-cut], 0o644); err != nil {
			t.Fatal(err)
		}
		got, err := Read(dir)
		if err != nil || !reflect.DeepEqual(got, map[string][]Point{"a": {{1, 1}}}) {
			t.Errorf("%d bytes short: %v, %v", cut, got, err)
		}
	}
	add(t, NewWriter(dir, 2), 2, Scalar{"a", 3})
	got, err := Read(dir)
	if err != nil || !reflect.DeepEqual(got, map[string][]Point{"a": {{1, 1}, {2, 3}}}) {
		t.Errorf("after the resumption: %v, %v", got, err)
	}
}

func TestCorruptFile(t *testing.T) {
	dir := t.TempDir()
	w := NewWriter(dir, 0)
	add(t, w, 1, Scalar{"a", 1})
	data, err := os.ReadFile(w.path)
	if err != nil {
		t.Fatal(err)
	}
	for place, what := range map[int]string{0: "the length's checksum", len(data) - 6: "record 3: the record's checksum"} {
		bad := bytes.Clone(data)
		bad[place] ^= 1
		if err := os.WriteFile(w.path, bad, 0o644); err != nil {
			t.Fatal(err)
		}
		if _, err := Read(dir); err == nil || !strings.Contains(err.Error(), what) {
			t.Errorf("byte %d changed: %v, want %q", place, err, what)
		}
	}
}

func TestNothingFiniteWritesNothing(t *testing.T) {
	dir := t.TempDir()
	add(t, NewWriter(dir, 0), 1, Scalar{"a", math.NaN()}, Scalar{"b", math.Inf(-1)})
	if files, err := Files(dir); err != nil || len(files) != 0 {
		t.Errorf("%v, %v", files, err)
	}
}

func TestTags(t *testing.T) {
	for metric, want := range map[string][]string{
		"score/reward":       {"score/reward", "charts/episodic_return", "critic/score/mean"},
		"losses/policy_loss": {"losses/policy_loss", "actor/pg_loss"},
		"rce/p99":            {"rce/p99"},
		"eval/q2_f1":         {"eval/q2_f1", "val-aux/q2/f1/mean@1"},
	} {
		if got := TagsOf(metric); !reflect.DeepEqual(got, want) {
			t.Errorf("%s stands under %v, want %v", metric, got, want)
		}
	}
	seen := map[Name]bool{}
	for _, n := range Names {
		if key := (Name{Tag: n.Tag, Project: n.Project}); seen[key] {
			t.Errorf("%s of %s stands twice", n.Tag, n.Project)
		} else {
			seen[key] = true
		}
	}
}
