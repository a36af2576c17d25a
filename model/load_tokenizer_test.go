package model

import (
	"compress/gzip"
	"encoding/json"
	"os"
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

// TestSmolLM2Tokenizer encodes as transformers does, digits one by one, for which
// the ids are by Hugging Face's tokenizers (transformers, reading GGUF, joins them).
func TestSmolLM2Tokenizer(t *testing.T) {
	tok, err := LoadTokenizer(asset(t, smolLM2))
	if err != nil {
		t.Fatal(err)
	}
	var want peer
	readJSON(t, filepath.Join("testdata", "smollm2.json"), &want)
	const text = "The treaty was signed in the spring, after both houses had agreed to it; its text was lost in a fire. "
	digits := []int32{788, 216, 33, 41, 40, 36, 28, 216, 34, 37, 282, 216, 35, 32, 32, 216, 16738, 19133, 1792}
	for text, ids := range map[string][]int32{strings.Repeat(text, 12): want.Rows[1].IDs, "In 1984, 25 of 300 ½² x": digits} {
		if got := tok.Encode(text); !slices.Equal(got, ids) {
			t.Errorf("%.40q: got %v, want %v", text, got, ids)
		}
	}
	if token, ok := tok.Token(1); !ok || token != "<|im_start|>" {
		t.Errorf("token 1 is %q", token)
	}
}

// TestSmolLM2Vectors holds the vocabulary of the published GGUF file to Hugging
// Face's tokenizers, by scripts/peers/tokenizer_vectors.py.
func TestSmolLM2Vectors(t *testing.T) {
	tok, err := LoadTokenizer(asset(t, smolLM2))
	if err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(filepath.Join("tokenizer", "testdata", "published.json.gz"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	var file struct {
		Strings    []string
		Tokenizers map[string]struct {
			Text, Special map[int][]int32
			Decoded       map[int]string
		}
	}
	if err := json.NewDecoder(z).Decode(&file); err != nil {
		t.Fatal(err)
	}
	want := file.Tokenizers["smollm2"]
	if len(want.Text) < 1000 || len(want.Special) < 20 {
		t.Fatalf("%d texts, %d with special tokens", len(want.Text), len(want.Special))
	}
	for i, ids := range want.Text {
		text := file.Strings[i]
		if got := tok.Encode(text); !slices.Equal(got, ids) {
			t.Errorf("Encode(%.80q) = %v, want %v", text, got, ids)
		}
		back, ok := want.Decoded[i]
		if !ok {
			back = text
		}
		if got := tok.Decode(ids); got != back {
			t.Errorf("Decode(Encode(%.80q)) = %.80q, want %.80q", text, got, back)
		}
		if special, ok := want.Special[i]; ok {
			ids = special
		}
		if got := tok.EncodeSpecial(text); !slices.Equal(got, ids) {
			t.Errorf("EncodeSpecial(%.80q) = %v, want %v", text, got, ids)
		}
	}
}
