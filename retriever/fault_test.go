package retriever

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/blevesearch/bleve/v2"
)

// childRole says what a child process of the tests shall do.
const childRole = "RETRIEVER_TEST_CHILD"

// TestMain plays the part of the other process in tests that need one.
func TestMain(m *testing.M) {
	switch os.Getenv(childRole) {
	case "build":
		fail(childBuild(os.Args[1], os.Args[2]))
	case "open":
		fail(childOpen(os.Args[1]))
	default:
		os.Exit(m.Run())
	}
}

func fail(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

func childBuild(dir, path string) error {
	c, err := OpenCorpus([]string{path}, CorpusOptions{})
	if err != nil {
		return err
	}
	_, err = Build(context.Background(), dir, c, BuildOptions{DocumentsPerWrite: 64})
	return err
}

// childOpen opens the index, says so, and holds it until its input ends.
func childOpen(dir string) error {
	x, err := Open(dir, OpenOptions{})
	if err != nil {
		return err
	}
	if _, err := fmt.Println("open"); err != nil {
		return err
	}
	_, _ = os.Stdin.Read(make([]byte, 1))
	hits, err := x.Search(context.Background(), "", "thames", 1)
	if err != nil || len(hits) != 1 {
		return fmt.Errorf("%d hits, %v", len(hits), err)
	}
	return x.Close()
}

func child(t *testing.T, role string, args ...string) *exec.Cmd {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0], args...)
	cmd.Env = append(os.Environ(), childRole+"="+role)
	cmd.Stderr = os.Stderr
	return cmd
}

// A build killed at any moment leaves no index, or a whole one; the next build
// succeeds.
func TestBuildKilled(t *testing.T) {
	docs := miniWorlds(10, 120)
	path := writeDocuments(t, docs)
	dir := filepath.Join(t.TempDir(), "index")
	started := time.Now()
	if err := child(t, "build", dir, path).Run(); err != nil {
		t.Fatal(err)
	}
	whole := time.Since(started)
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	rng := rand.New(rand.NewPCG(5, 5))
	counts := map[string]int{}
	for range 6 {
		cmd := child(t, "build", dir, path)
		cmd.Stderr = nil
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Duration(1.2 * rng.Float64() * float64(whole)))
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		x, err := Open(dir, OpenOptions{})
		switch {
		case err == nil:
			counts["whole"]++
			if n := x.Manifest().Documents; n != len(docs) {
				t.Errorf("an index of %d documents", n)
			}
			if err := errors.Join(x.Close(), os.RemoveAll(dir)); err != nil {
				t.Fatal(err)
			}
		case errors.Is(err, ErrHalfBuilt):
			counts["half-built"]++
		case errors.Is(err, ErrNoIndex):
			counts["none"]++
		default:
			t.Errorf("open says %v", err)
		}
	}
	t.Logf("after the kill: %v", counts)
	if _, err := Build(t.Context(), dir, mustCorpus(t, CorpusOptions{}, path), BuildOptions{Replace: true}); err != nil {
		t.Fatal(err)
	}
	openIndex(t, dir)
	if got := names(t, filepath.Dir(dir)); !reflect.DeepEqual(got, []string{"index"}) {
		t.Errorf("left %v", got)
	}
}

func TestOpenInSeveralProcesses(t *testing.T) {
	dir := buildFrom(t, DefaultBuildOptions(), writeDocuments(t, smallCorpus))
	openIndex(t, dir)
	for range 2 {
		cmd := child(t, "open", dir)
		out, err1 := cmd.StdoutPipe()
		in, err2 := cmd.StdinPipe()
		if err := errors.Join(err1, err2, cmd.Start()); err != nil {
			t.Fatal(err)
		}
		if _, err := out.Read(make([]byte, 8)); err != nil {
			t.Fatalf("the other process could not open the index: %v", err)
		}
		defer func() {
			if err := errors.Join(in.Close(), cmd.Wait()); err != nil {
				t.Error(err)
			}
		}()
	}
	openIndex(t, dir)
}

// A program that holds bleve's write lock makes Open fail in the time allowed.
func TestOpenLocked(t *testing.T) {
	dir := buildFrom(t, DefaultBuildOptions(), writeDocuments(t, smallCorpus))
	f, err := os.Open(filepath.Join(dir, "shard-0000", bleveFolder, "store", "root.bolt"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(dir, OpenOptions{LockTimeout: 100 * time.Millisecond}); !errors.Is(err, ErrBusy) {
		t.Errorf("locked: %v", err)
	}
}

func TestOpenForeign(t *testing.T) {
	dir := t.TempDir()
	file, other, alien := filepath.Join(dir, "file"), filepath.Join(dir, "other"), filepath.Join(dir, "bleve")
	x, err := bleve.New(alien, bleve.NewIndexMapping())
	err = errors.Join(err, x.Close(), os.WriteFile(file, []byte("x"), 0o600), os.Mkdir(other, 0o700),
		os.Mkdir(filepath.Join(dir, "empty"), 0o700), os.WriteFile(filepath.Join(other, "x"), nil, 0o600))
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]error{
		"absent": ErrNoIndex, "empty": ErrNoIndex, "file": ErrForeign, "other": ErrForeign, "bleve": ErrForeign,
	} {
		_, err := Open(filepath.Join(dir, name), OpenOptions{})
		if !errors.Is(err, want) || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// rewrite changes the manifest, with a right checksum.
func rewrite(t *testing.T, dir string, change func(*Manifest)) {
	t.Helper()
	m, err := readManifest(dir)
	if err != nil {
		t.Fatal(err)
	}
	change(m)
	if err := errors.Join(os.Remove(filepath.Join(dir, manifestName)), m.write(dir)); err != nil {
		t.Fatal(err)
	}
}

func TestOpenOtherVersion(t *testing.T) {
	path := writeDocuments(t, smallCorpus)
	for says, change := range map[string]func(*Manifest){
		"format 1":          func(m *Manifest) { m.FormatVersion = 1 },
		"bleve v2.0.0":      func(m *Manifest) { m.BleveVersion = "v2.0.0" },
		"scoring \"tfidf\"": func(m *Manifest) { m.Scoring.Name = "tfidf" },
		"k1 -1":             func(m *Manifest) { m.Scoring.K1 = -1 },
	} {
		dir := buildFrom(t, DefaultBuildOptions(), path)
		rewrite(t, dir, change)
		if _, err := Open(dir, OpenOptions{}); !errors.Is(err, ErrVersion) || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v", says, err)
		}
	}
}

// The manifest of format 1 had a text for the scoring; such an index is old, not damaged.
func TestOpenFirstFormat(t *testing.T) {
	dir := t.TempDir()
	old := []byte(`{"format_version": 1, "bleve_version": "v2.6.3", "scoring": "bleve-bm25", "k1": 1.2, "b": 0.75, "documents": 3}`)
	if err := os.WriteFile(filepath.Join(dir, manifestName), old, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(dir, OpenOptions{}); !errors.Is(err, ErrVersion) || !strings.Contains(err.Error(), "format 1") {
		t.Errorf("format 1: %v", err)
	}
}

// indexFiles lists the files of an index, relative to it.
func indexFiles(t *testing.T, dir string) []string {
	t.Helper()
	var files []string
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			files = append(files, path)
		}
		return err
	})
	if err != nil || len(files) < 4 {
		t.Fatalf("index files %v, %v", files, err)
	}
	return files
}

// Every file that is missing, cut short, lengthened or altered in one bit is
// found out when the index is opened.
func TestOpenDamaged(t *testing.T) {
	dir := buildFrom(t, DefaultBuildOptions(), writeDocuments(t, miniWorlds(2, 60)))
	rng := rand.New(rand.NewPCG(3, 9))
	trials := 0
	for _, file := range indexFiles(t, dir) {
		whole, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		damages := map[string][]byte{"missing": nil, "lengthened": append(append([]byte{}, whole...), 0)}
		for range 30 {
			n := rng.IntN(len(whole))
			damages[fmt.Sprintf("cut at %d", n)] = whole[:n]
			flipped := append([]byte{}, whole...)
			flipped[n] ^= 1 << rng.IntN(8)
			damages[fmt.Sprintf("altered at %d", n)] = flipped
		}
		for name, content := range damages {
			if content == nil {
				err = os.Remove(file)
			} else {
				err = os.WriteFile(file, content, 0o600)
			}
			if err != nil {
				t.Fatal(err)
			}
			x, err := Open(dir, OpenOptions{})
			trials++
			if err == nil {
				t.Errorf("%s, %s: opened", file, name)
				_ = x.Close()
			}
			if filepath.Base(file) != manifestName && !errors.Is(err, ErrCorrupt) {
				t.Errorf("%s, %s: %v", file, name, err)
			}
			if err := os.WriteFile(file, whole, 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	t.Logf("%d damages found out", trials)
	openIndex(t, dir)
}

// A file cut short while the index is open is an error of the search, not the
// end of the process.
func TestSearchAfterTruncation(t *testing.T) {
	dir := buildFrom(t, DefaultBuildOptions(), writeDocuments(t, miniWorlds(20, 120)))
	x := openIndex(t, dir)
	segments, err := filepath.Glob(filepath.Join(dir, "shard-0000", bleveFolder, "store", "*.zap"))
	if err != nil || len(segments) != 1 {
		t.Fatalf("segments %v, %v", segments, err)
	}
	if err := os.Truncate(segments[0], 0); err != nil {
		t.Fatal(err)
	}
	if _, err := x.Search(t.Context(), "", "spouse", 3); !errors.Is(err, ErrCorrupt) {
		t.Errorf("search: %v", err)
	}
}
