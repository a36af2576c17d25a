package tokenizer

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"
)

var words = []string{"<pad>", "<unk>", "<bos>", "<eos>", "<think>", "</think>", "noge", ";", "q1", "a"}

func newTest(t testing.TB) *Tokenizer {
	t.Helper()
	tok, err := NewWordLevel(words, "<unk>", "<pad>", "<unk>", "<bos>", "<eos>")
	if err != nil {
		t.Fatal(err)
	}
	return tok
}

func TestEncode(t *testing.T) {
	tok := newTest(t)
	for _, c := range []struct {
		text string
		want []int32
	}{
		{"", nil},
		{" \t\n\u00a0\u2003", nil},
		{"noge ; q1", []int32{6, 7, 8}},
		{"\u0085noge\u00a0;\n", []int32{6, 7}},
		{"nogex Noge", []int32{1, 1}},
		{"<think> a </think>", []int32{4, 9, 5}},
		{"<think>a", []int32{1}},          // a plain word is found whole only
		{"<bos>a<eos>", []int32{2, 9, 3}}, // a special one anywhere
		{"xx<bos><bos>", []int32{1, 2, 2}},
		{"<bo", []int32{1}},
		{"\xff", []int32{1}},
	} {
		if got := tok.Encode(c.text); !reflect.DeepEqual(got, c.want) {
			t.Errorf("Encode(%q) = %v, want %v", c.text, got, c.want)
		}
	}
}

func TestLongestAddedTokenWins(t *testing.T) {
	tok, err := NewWordLevel([]string{"<unk>", "<a", "<a>", "<a>>"}, "<unk>", "<a", "<a>", "<a>>")
	if err != nil {
		t.Fatal(err)
	}
	if got, want := tok.Encode("<a><a>>><a"), []int32{2, 3, 0, 1}; !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestDecode(t *testing.T) {
	tok := newTest(t)
	if got, want := tok.Decode([]int32{2, 6, 7, 99, -1}), "<bos> noge ; <unk> <unk>"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestLookups(t *testing.T) {
	tok := newTest(t)
	if tok.Size() != len(words) {
		t.Errorf("size %d, want %d", tok.Size(), len(words))
	}
	for i, w := range words {
		if id, ok := tok.ID(w); !ok || id != int32(i) {
			t.Errorf("ID(%q) = %d, %v", w, id, ok)
		}
		if token, ok := tok.Token(int32(i)); !ok || token != w {
			t.Errorf("Token(%d) = %q, %v", i, token, ok)
		}
		if got, want := tok.Special(int32(i)), i < 4; got != want {
			t.Errorf("Special(%d) = %v", i, got)
		}
	}
	if _, ok := tok.ID("nothing"); ok {
		t.Error("found a word that is not there")
	}
}

func TestMarshalRoundTrip(t *testing.T) {
	tok := newTest(t)
	data, err := tok.MarshalJSON()
	if err != nil {
		t.Fatal(err)
	}
	if !json.Valid(data) {
		t.Fatalf("invalid JSON: %s", data)
	}
	again, err := Parse(data)
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(tok, again) {
		t.Errorf("read back: %+v, want %+v", again, tok)
	}
}

func TestSaveLoad(t *testing.T) {
	dir := t.TempDir()
	tok := newTest(t)
	if err := tok.Save(dir); err != nil {
		t.Fatal(err)
	}
	again, err := Load(dir)
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(tok, again) {
		t.Error("the file reads differently")
	}
	if _, err := Load(t.TempDir()); err == nil || !strings.Contains(err.Error(), Filename) {
		t.Errorf("missing file: %v", err)
	}
}

func TestRefusals(t *testing.T) {
	good, err := newTest(t).MarshalJSON()
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ from, to, want string }{
		{`"normalizer":null`, `"normalizer":{"type":"NFC"}`, `normalizer "NFC"`},
		{`"WhitespaceSplit"`, `"ByteLevel"`, `pre_tokenizer "ByteLevel"`},
		{`"WordLevel"`, `"Unigram"`, `model "Unigram"`},
		{`"post_processor":null`, `"post_processor":{"type":"TemplateProcessing"}`, `post_processor "TemplateProcessing"`},
		{`"decoder":null`, `"decoder":{"type":"ByteLevel"}`, `decoder "ByteLevel"`},
		{`"truncation":null`, `"truncation":{"max_length":3}`, "truncation"},
		{`"version":"1.0"`, `"version":"2.0"`, `version "2.0"`},
		{`"unk_token":"<unk>"`, `"unk_token":"<u>"`, `unk_token "<u>"`},
		{`"single_word":false`, `"single_word":true`, "single_word"},
		{`"noge":6`, `"noge":7`, "id 7 belongs to"},
		{`"noge":6`, `"noge":-6`, "the id -6"},
		{`"noge":6`, `"noge":600000`, "far above"},
		{`"id":2`, `"id":9`, `added token "<bos>"`},
	} {
		bad := strings.Replace(string(good), c.from, c.to, 1)
		if bad == string(good) {
			t.Fatalf("%s: nothing to replace in %s", c.from, good)
		}
		if _, err := Parse([]byte(bad)); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v, want %q in it", c.to, err, c.want)
		}
	}
}

func TestNewWordLevelRefusals(t *testing.T) {
	for name, f := range map[string]func() (*Tokenizer, error){
		"space":           func() (*Tokenizer, error) { return NewWordLevel([]string{"<unk>", "a b"}, "<unk>") },
		"empty":           func() (*Tokenizer, error) { return NewWordLevel([]string{"<unk>", ""}, "<unk>") },
		"twice":           func() (*Tokenizer, error) { return NewWordLevel([]string{"<unk>", "a", "a"}, "<unk>") },
		"no unknown":      func() (*Tokenizer, error) { return NewWordLevel([]string{"a"}, "<unk>") },
		"foreign special": func() (*Tokenizer, error) { return NewWordLevel([]string{"<unk>"}, "<unk>", "<s>") },
	} {
		if _, err := f(); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

// FuzzRoundTrip holds that text of known words survives encoding and decoding,
// and that no text makes Encode fail or give an id outside the vocabulary.
func FuzzRoundTrip(f *testing.F) {
	for _, s := range []string{"", "noge ; q1", "<bos>a", "x\u00a0y", "<think> a </think>", "\xff<eos"} {
		f.Add(s)
	}
	tok := newTest(f)
	f.Fuzz(func(t *testing.T, s string) {
		ids := tok.Encode(s)
		for _, id := range ids {
			if _, ok := tok.Token(id); !ok {
				t.Fatalf("Encode(%q) gave the id %d", s, id)
			}
		}
		again := tok.Encode(tok.Decode(ids))
		if !reflect.DeepEqual(ids, again) {
			t.Fatalf("%q: ids %v, after decoding %v", s, ids, again)
		}
	})
}

// FuzzParse holds that no file makes Parse panic, and that what it takes is
// written and read back alike.
func FuzzParse(f *testing.F) {
	good, err := newTest(f).MarshalJSON()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(good)
	f.Add([]byte(`{"version":"1.0","model":{"type":"WordLevel","vocab":{"u":0},"unk_token":"u"}}`))
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
		if again.Size() != tok.Size() || !reflect.DeepEqual(again.byID, tok.byID) {
			t.Fatalf("read back differently: %s", out)
		}
	})
}
