package repo

import (
	"bytes"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const (
	cgoFolder   = "torch/internal/ctorch"
	longestFile = 500 // lines
)

// outputs are folders at the top that git ignores.
var outputs = []string{"runs", "data", "bin"}

// eachGoFile calls f with every Go file of the repository, whatever its build
// tags, by its slash-separated path and content.
func eachGoFile(t *testing.T, f func(path string, source []byte)) {
	t.Helper()
	count := 0
	err := filepath.WalkDir(".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() {
			hidden := strings.HasPrefix(entry.Name(), ".") && path != "."
			if hidden || slices.Contains(outputs, path) || entry.Name() == "testdata" {
				return filepath.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(path, ".go") {
			return nil
		}
		source, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		count++
		f(filepath.ToSlash(path), source)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if count < 10 {
		t.Fatalf("only %d Go files found", count)
	}
}

func TestCgoStandsInOnePackage(t *testing.T) {
	found := false
	eachGoFile(t, func(path string, source []byte) {
		file, err := parser.ParseFile(token.NewFileSet(), path, source, parser.ImportsOnly)
		if err != nil {
			t.Errorf("%v", err)
			return
		}
		for _, imported := range file.Imports {
			if imported.Path.Value != `"C"` {
				continue
			}
			found = true
			if filepath.ToSlash(filepath.Dir(path)) != cgoFolder {
				t.Errorf("%s uses cgo; only %s may", path, cgoFolder)
			}
		}
	})
	if !found {
		t.Errorf("no file of %s imports \"C\"", cgoFolder)
	}
}

func TestFilesAreShort(t *testing.T) {
	eachGoFile(t, func(path string, source []byte) {
		if n := bytes.Count(source, []byte("\n")); n > longestFile {
			t.Errorf("%s has %d lines, more than %d: split it by concern", path, n, longestFile)
		}
	})
}

// TestPackagesAreDocumented: one file of each package says what it is for.
func TestPackagesAreDocumented(t *testing.T) {
	for _, p := range goList(t) {
		if len(p.GoFiles)+len(p.CgoFiles) > 0 && p.Doc == "" {
			t.Errorf("%s has no package comment", p.name())
		}
	}
}

// TestNothingIsLeftOpen: what is not done is not in the code.
func TestNothingIsLeftOpen(t *testing.T) {
	words := []string{"TO" + "DO", "FIX" + "ME", "XX" + "X"}
	eachGoFile(t, func(path string, source []byte) {
		for _, word := range words {
			if bytes.Contains(source, []byte(word)) {
				t.Errorf("%s contains %s", path, word)
			}
		}
	})
}
