package tokenizer

import (
	"encoding/json"
	"os"
	"os/exec"
	"reflect"
	"slices"
	"sync"
	"testing"
	"unicode/utf8"
)

// checkHuggingFace encodes with Hugging Face's tokenizers, by scripts/peers/tokenizer_vectors.py.
func (v *vectors) checkHuggingFace(t *testing.T, path string, texts []string) {
	t.Helper()
	python := os.Getenv("TOKENIZERS_PYTHON")
	if python == "" {
		t.Skip("TOKENIZERS_PYTHON is not set: a python with the package tokenizers, which would read the file")
	}
	var some []string
	var want [][]int32
	for i, ids := range v.Text {
		if special, ok := v.Special[i]; ok {
			ids = special
		}
		some, want = append(some, texts[i]), append(want, ids)
	}
	in, err := json.Marshal(some)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(python, "../../scripts/peers/tokenizer_vectors.py", "encode", path)
	read, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stdin, cmd.Stderr = read, os.Stderr
	go func() {
		write.Write(in)
		write.Close()
	}()
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	var got [][]int32
	if err := json.Unmarshal(out, &got); err != nil || len(got) != len(want) {
		t.Fatalf("%d answers, want %d: %v", len(got), len(want), err)
	}
	for i := range want {
		if !slices.Equal(got[i], want[i]) {
			t.Errorf("%.80q: Hugging Face's of the written file %v, of the original %v", some[i], got[i], want[i])
		}
	}
}

// TestBPEConcurrentEncode: many goroutines use one tokenizer, and its cache of words, at once.
func TestBPEConcurrentEncode(t *testing.T) {
	file := readVectors(t, "small.json.gz")
	for _, name := range []string{"qwen", "added"} {
		tok, v := small(t, name), file.Tokenizers[name]
		var wg sync.WaitGroup
		for range 8 {
			wg.Go(func() {
				for i, want := range v.Text {
					if got := tok.Encode(file.Strings[i]); !slices.Equal(got, want) {
						t.Errorf("%s: Encode(%.80q) = %v, want %v", name, file.Strings[i], got, want)
						return
					}
				}
			})
		}
		wg.Wait()
	}
}

// FuzzBPERoundTrip holds that no text is lost: a vocabulary of all bytes gives back
// what is valid UTF-8, or its NFC where the normalizer is that.
func FuzzBPERoundTrip(f *testing.F) {
	for _, s := range readVectors(f, "small.json.gz").Strings {
		if len(s) < 200 {
			f.Add(s)
		}
	}
	f.Add("a\xff\xc3")
	toks := map[string]*Tokenizer{}
	for _, name := range []string{"qwen", "llama3", "smollm2", "gpt2"} {
		toks[name] = small(f, name)
	}
	f.Fuzz(func(t *testing.T, s string) {
		for name, tok := range toks {
			ids, special := tok.Encode(s), tok.EncodeSpecial(s)
			for _, id := range slices.Concat(ids, special) {
				if _, ok := tok.Token(id); !ok {
					t.Fatalf("%s: %q gave the id %d", name, s, id)
				}
			}
			for _, id := range ids {
				if tok.Special(id) {
					t.Fatalf("%s: Encode(%q) gave the special token %d", name, s, id)
				}
			}
			if !utf8.ValidString(s) {
				continue
			}
			want := s
			if name == "qwen" {
				want = nfc(s)
			}
			if got := tok.Decode(ids); got != want {
				t.Fatalf("%s: %q came back as %q, want %q", name, s, got, want)
			}
			if got := tok.Decode(special); name != "qwen" && got != want {
				t.Fatalf("%s: %q came back as %q with special tokens found", name, s, got)
			}
		}
	})
}

// FuzzBPEParse holds that no file makes Parse panic, and that what it takes is
// written, read back and encodes alike.
func FuzzBPEParse(f *testing.F) {
	const steps = `{"type":"Sequence","pretokenizers":[{"type":"Split","pattern":{"Regex":"a+|b"},"behavior":"Isolated"},` +
		`{"type":"Digits","individual_digits":true},{"type":"ByteLevel","add_prefix_space":false,"use_regex":false}]}`
	for _, name := range []string{"qwen", "added"} {
		f.Add(patch(f, name, func(file, m map[string]any) { // short, so that changes reach all parts, and quick to read
			vocab := m["vocab"].(map[string]any)
			m["vocab"], m["merges"] = map[string]any{"a": vocab["a"], "b": vocab["b"], "ab": 9}, []any{"a b"}
			file["pre_tokenizer"] = json.RawMessage(steps)
		}))
	}
	const texts = "ab <|endoftext|>a\u0301b  <both> b\xff"
	f.Fuzz(func(t *testing.T, data []byte) {
		tok, err := Parse(data)
		if err != nil {
			return
		}
		out, err := tok.MarshalJSON()
		if err != nil {
			t.Fatal(err)
		}
		again, err := Parse(out)
		if err != nil {
			t.Fatalf("written file: %v\n%s", err, out)
		}
		if !reflect.DeepEqual(again.byID, tok.byID) || !slices.Equal(again.Encode(texts), tok.Encode(texts)) || !slices.Equal(again.EncodeSpecial(texts), tok.EncodeSpecial(texts)) {
			t.Fatalf("read back differently: %s", out)
		}
	})
}
