package model

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestLoadTokenizer(t *testing.T) {
	d, dir, tok := newModel(t, tiny(Llama), 1, 1), t.TempDir(), testTokenizer(t, 50)
	if err := d.Save(dir, tok); err != nil {
		t.Fatal(err)
	}
	read, err := LoadTokenizer(dir)
	if err != nil || !slices.Equal(read.Encode("<bos> w9 ;"), tok.Encode("<bos> w9 ;")) {
		t.Errorf("a folder's: %v", err)
	}
	for path, want := range map[string]string{
		t.TempDir():                          tokenizerFilename,
		filepath.Join(dir, "none"):           "no such file",
		filepath.Join(dir, "none.gguf"):      "no such file",
		"testdata/gguf/qwen3_tied.gguf":      `"tokenizer.ggml.model" is missing`,
		"testdata/gguf":                      "GGUF files",
		"testdata/transformers/qwen2_tied":   tokenizerFilename,
		filepath.Join(dir, weightsFilename):  "not a directory",
		filepath.Join("..", "model", "none"): "no such file",
	} {
		if _, err := LoadTokenizer(path); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v, want %q in it", path, err, want)
		}
	}
}
