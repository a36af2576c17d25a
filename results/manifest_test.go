package results

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"
)

func TestManifest(t *testing.T) {
	folder := t.TempDir()
	input := filepath.Join(folder, "in")
	if err := os.WriteFile(input, []byte("abc"), 0o644); err != nil {
		t.Fatal(err)
	}
	m := NewManifest(map[string]int{"steps": 3}, "2.0")
	if err := m.AddFile("questions", input); err != nil {
		t.Fatal(err)
	}
	if err := m.AddFile("gone", filepath.Join(folder, "gone")); err == nil {
		t.Error("an absent input has a hash")
	}
	path := filepath.Join(folder, "manifest.json")
	if err := m.Write(path); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var back Manifest
	if err := json.Unmarshal(data, &back); err != nil {
		t.Fatal(err)
	}
	// sha256 of "abc": FIPS 180-2, appendix B.1.
	const sum = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
	if len(back.Data) != 1 || back.Data["questions"] != sum {
		t.Errorf("data %v", back.Data)
	}
	if back.Schema != 1 || back.Libtorch != "2.0" || len(back.Command) == 0 || back.Ended.Before(back.Started) ||
		time.Since(back.Started) > time.Minute {
		t.Errorf("manifest %+v", back)
	}
	if c := back.Config.(map[string]any); c["steps"] != 3.0 {
		t.Errorf("config %v", c)
	}
}

func TestMachine(t *testing.T) {
	m := ThisMachine()
	if m.Cores < 1 || m.Go != runtime.Version() || m.OS == "" || m.Arch != runtime.GOARCH {
		t.Errorf("machine %+v", m)
	}
	if runtime.GOOS == "linux" && (m.Kernel == "" || m.MemoryBytes < 1<<20) {
		t.Errorf("machine %+v", m)
	}
}

func TestCommit(t *testing.T) {
	out, err := exec.Command("git", "rev-parse", "HEAD").Output()
	if err != nil {
		t.Skipf("no git repository here: %v", err)
	}
	if got, _ := commit(); got != strings.TrimSpace(string(out)) {
		t.Errorf("commit %q, git says %s", got, out)
	}
}

// A commit is dirty by what the program is made of, not by the outcome it writes.
func TestOutcomesAreNoChanges(t *testing.T) {
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("no git here")
	}
	t.Chdir(t.TempDir())
	write := func(path string) {
		t.Helper()
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte("x"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	write("results/table.go")
	for _, args := range [][]string{{"init", "-q"}, {"add", "-A"}, {"-c", "user.name=a", "-c", "user.email=a@b", "commit", "-q", "-m", "first"}} {
		if out, err := exec.Command("git", args...).CombinedOutput(); err != nil {
			t.Fatalf("git %v: %v\n%s", args, err, out)
		}
	}
	for _, c := range []struct {
		path  string
		dirty bool
	}{{"results/mini/records.jsonl", false}, {"results/mini/tables/t1.md", false}, {"results/other.go", true}} {
		write(c.path)
		if revision, dirty := commit(); revision == "" || dirty != c.dirty {
			t.Errorf("with %s: commit %q, dirty %v, want %v", c.path, revision, dirty, c.dirty)
		}
	}
}
