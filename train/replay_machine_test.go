package train

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
)

// Other kernels are named first, and fail nothing by themselves; a bundle that does
// not say what it was computed with is replayed as well.
func TestReplayOnAnotherMachine(t *testing.T) {
	c := bundled(TeacherNone)
	c.Steps = 1
	dir := t.TempDir()
	if _, err := runPPO(t, context.Background(), c, dir, false); err != nil {
		t.Fatal(err)
	}
	bundle := BundlePath(dir, 1)
	b, err := ReadBundle(bundle)
	if err != nil {
		t.Fatal(err)
	}
	for name, m := range map[string]Machine{"OpenBLAS core": {BLAS: "Prescott"}, "libtorch": {Libtorch: "0.9"}, "threads": {Threads: 99}, "": {}} {
		b.Machine = m
		data, err := json.Marshal(b)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(bundle, bundleFile), data, 0o600); err != nil {
			t.Fatal(err)
		}
		p := parts(t, c, dir)
		p.Threads = 1
		r := replayed(t, c, p, ReplayOptions{Bundle: bundle})
		want := StageMachine
		if name == "" {
			want = ""
		}
		if !r.Passed() || r.First != want || r.Stages[0].Where != name {
			t.Errorf("%q: passed %v, first difference %q in %q", name, r.Passed(), r.First, r.Stages[0].Where)
		}
	}
}
