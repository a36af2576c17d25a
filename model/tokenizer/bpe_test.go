package tokenizer

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"hash/crc32"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// vectorFile is what scripts/peers/tokenizer_vectors.py writes; its head says what the fields hold.
type vectorFile struct {
	Strings    []string            `json:"strings"`
	Tokenizers map[string]*vectors `json:"tokenizers"`
}

type vectors struct {
	Base           string           `json:"base"`
	Text           map[int][]int32  `json:"text"`
	Special        map[int][]int32  `json:"special"`
	Decoded        map[int]string   `json:"decoded"`
	DecodedSpecial map[int]string   `json:"decoded_special"`
	Without        map[string][]int `json:"without"` // places that base has and this one lacks
	Decode         []struct {
		IDs  []int32
		Text string
	} `json:"-"`
	RawDecode    [][2]json.RawMessage `json:"decode"`
	Blocks       map[int]uint32       `json:"blocks"`
	PreTokenizer json.RawMessage      `json:"pre_tokenizer"`
	Normalizer   json.RawMessage      `json:"normalizer"`
}

func readVectors(t testing.TB, name string) *vectorFile {
	t.Helper()
	f, err := os.Open(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	out := &vectorFile{}
	if err := json.NewDecoder(z).Decode(out); err != nil {
		t.Fatal(err)
	}
	for name, v := range out.Tokenizers {
		v.Decode = make([]struct {
			IDs  []int32
			Text string
		}, len(v.RawDecode))
		for i, raw := range v.RawDecode {
			if json.Unmarshal(raw[0], &v.Decode[i].IDs) != nil || json.Unmarshal(raw[1], &v.Decode[i].Text) != nil {
				t.Fatalf("%s: decode %d", name, i)
			}
		}
		if v.Base != "" {
			b := out.Tokenizers[v.Base]
			v.Text = inherit(v.Text, b.Text, v.Without["text"])
			v.Special = inherit(v.Special, b.Special, v.Without["special"])
			v.Decoded = inherit(v.Decoded, b.Decoded, v.Without["decoded"])
			v.DecodedSpecial = inherit(v.DecodedSpecial, b.DecodedSpecial, v.Without["decoded_special"])
		}
	}
	return out
}

func inherit[T any](own, base map[int]T, without []int) map[int]T {
	all := map[int]T{}
	for i, v := range base {
		if !slices.Contains(without, i) {
			all[i] = v
		}
	}
	for i, v := range own {
		all[i] = v
	}
	return all
}

// check holds a tokenizer to all vectors of one.
func (v *vectors) check(t *testing.T, tok *Tokenizer, texts []string, least int) {
	t.Helper()
	wrong := 0
	report := func(format string, args ...any) {
		t.Helper()
		if wrong++; wrong <= 10 {
			t.Errorf(format, args...)
		}
	}
	for i, want := range v.Text {
		text := texts[i]
		if got := tok.Encode(text); !slices.Equal(got, want) {
			report("Encode(%.80q) = %.200s, want %.200s", text, fmt.Sprint(got), fmt.Sprint(want))
		}
		back, ok := v.Decoded[i]
		if !ok {
			back = text
		}
		if got := tok.Decode(want); got != back {
			report("Decode(Encode(%.80q)) = %.80q, want %.80q", text, got, back)
		}
		special, ok := v.Special[i]
		if !ok {
			special = want
		}
		if got := tok.EncodeSpecial(text); !slices.Equal(got, special) {
			report("EncodeSpecial(%.80q) = %.200s, want %.200s", text, fmt.Sprint(got), fmt.Sprint(special))
		}
		if !ok {
			continue
		}
		if back, ok = v.DecodedSpecial[i]; !ok {
			back = text
		}
		if got := tok.Decode(special); got != back {
			report("Decode(EncodeSpecial(%.80q)) = %.80q, want %.80q", text, got, back)
		}
	}
	for _, d := range v.Decode {
		if got := tok.Decode(d.IDs); got != d.Text {
			report("Decode(%v) = %q, want %q", d.IDs, got, d.Text)
		}
	}
	if wrong > 10 {
		t.Errorf("%d differences in all", wrong)
	}
	if len(v.Text) < least || len(v.Decode) < 200 {
		t.Errorf("only %d texts and %d rows of ids", len(v.Text), len(v.Decode))
	}
}

func parseFile(t testing.TB, path string) *Tokenizer {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	tok, err := Parse(data)
	if err != nil {
		t.Fatal(err)
	}
	return tok
}

func small(t testing.TB, name string) *Tokenizer {
	t.Helper()
	return parseFile(t, filepath.Join("testdata", "small_"+name+".json"))
}

// published is the folder of a tokenizer that scripts/assets.sh fetches.
func published(t testing.TB, name string) string {
	t.Helper()
	root := os.Getenv("MEMOPD_ASSETS")
	if root == "" {
		root = filepath.Join("..", "..", ".setup", "assets")
	}
	dir := filepath.Join(root, "tokenizers", name)
	if _, err := os.Stat(filepath.Join(dir, Filename)); err != nil {
		t.Skipf("%s is not there; scripts/assets.sh fetches it", dir)
	}
	return dir
}

// TestSmallBPE holds small tokenizers, like the published ones in their parts, to Hugging Face's tokenizers.
func TestSmallBPE(t *testing.T) {
	file := readVectors(t, "small.json.gz")
	for _, name := range []string{"qwen", "llama3", "smollm2", "gpt2", "added"} {
		t.Run(name, func(t *testing.T) { file.Tokenizers[name].check(t, small(t, name), file.Strings, 250) })
	}
}

// TestPublishedBPE holds the published tokenizers to Hugging Face's (SmolLM2's: TestSmolLM2Vectors of package model).
func TestPublishedBPE(t *testing.T) {
	file := readVectors(t, "published.json.gz")
	for _, name := range []string{"qwen2.5", "qwen3", "llama3"} {
		t.Run(name, func(t *testing.T) {
			tok, err := Load(published(t, name))
			if err != nil {
				t.Fatal(err)
			}
			file.Tokenizers[name].check(t, tok, file.Strings, 1000)
		})
	}
}

func TestQwenGolden(t *testing.T) {
	tok, err := Load(published(t, "qwen2.5"))
	if err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string][]int32{"->": {405}, "(x):\n": {2075, 982}} {
		if got := tok.Encode(text); !slices.Equal(got, want) {
			t.Errorf("Encode(%q) = %v, want %v", text, got, want)
		}
	}
}

const (
	blockLength = 1024
	firstHalf   = 0xd800 // the surrogates, which no text holds
	afterHalves = 0xe000
	ideographs  = 0x20000 // two planes, of which each eighth is tried
	afterThem   = 0x40000
)

// TestCharacterClasses goes through the characters of the planes in use: which are
// letters, numerals and space to each pre-tokenizer, and what NFC makes of each.
func TestCharacterClasses(t *testing.T) {
	file := readVectors(t, "small.json.gz")
	data, err := os.ReadFile(filepath.Join("testdata", "small_classes.json"))
	if err != nil {
		t.Fatal(err)
	}
	var parts map[string]json.RawMessage
	if err := json.Unmarshal(data, &parts); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"qwen", "llama3", "smollm2", "gpt2"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			v, p := file.Tokenizers["classes_"+name], map[string]json.RawMessage{}
			for k, part := range parts {
				p[k] = part
			}
			p["pre_tokenizer"], p["normalizer"] = v.PreTokenizer, v.Normalizer
			changed, err := json.Marshal(p)
			if err != nil {
				t.Fatal(err)
			}
			tok, err := Parse(changed)
			if err != nil {
				t.Fatal(err)
			}
			if len(v.Blocks) != 5*64 {
				t.Fatalf("%d blocks", len(v.Blocks))
			}
			for block, want := range v.Blocks {
				if got := blockCRC(tok, block); got != want {
					t.Errorf("U+%04X to U+%04X: ids of CRC %08x, want %08x", block*blockLength, (block+1)*blockLength-1, got, want)
				}
			}
		})
	}
}

func blockCRC(tok *Tokenizer, block int) uint32 {
	var data []byte
	for r := block * blockLength; r < (block+1)*blockLength; r++ {
		if r >= firstHalf && r < afterHalves || r >= ideographs && r < afterThem && r%8 != 0 {
			continue
		}
		for _, id := range tok.EncodeSpecial(blockText(rune(r))) {
			data = binary.LittleEndian.AppendUint32(data, uint32(id))
		}
		data = binary.LittleEndian.AppendUint32(data, 1<<32-1)
	}
	return crc32.ChecksumIEEE(data)
}

// blockText is block_texts of the script.
func blockText(r rune) string {
	return strings.ReplaceAll("a@b @ 1@1!@!\n@\n @'s e@\u0301 @\u0323\u3099@", "@", string(r))
}

// patch changes one part of a small tokenizer's file.
func patch(t testing.TB, name string, change func(f, model map[string]any)) []byte {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", "small_"+name+".json"))
	if err != nil {
		t.Fatal(err)
	}
	var f map[string]any
	if err := json.Unmarshal(data, &f); err != nil {
		t.Fatal(err)
	}
	change(f, f["model"].(map[string]any))
	if data, err = json.Marshal(f); err != nil {
		t.Fatal(err)
	}
	return data
}

// TestBPERefusals: what would encode otherwise than Hugging Face does is an error that names it.
func TestBPERefusals(t *testing.T) {
	of := func(kind string, more ...any) map[string]any {
		part := map[string]any{"type": kind}
		for i := 0; i < len(more); i += 2 {
			part[more[i].(string)] = more[i+1]
		}
		return part
	}
	pre := func(part any) func(f, m map[string]any) {
		return func(f, _ map[string]any) { f["pre_tokenizer"] = part }
	}
	set := func(key string, value any) func(f, m map[string]any) {
		return func(_, m map[string]any) { m[key] = value }
	}
	part := func(key string, value any) func(f, m map[string]any) {
		return func(f, _ map[string]any) { f[key] = value }
	}
	vocab := func(token string, id any) func(f, m map[string]any) {
		return func(_, m map[string]any) { m["vocab"].(map[string]any)[token] = id }
	}
	bytesOnly := of("ByteLevel", "add_prefix_space", false, "use_regex", false)
	splitBy := func(regex string) any {
		return of("Sequence", "pretokenizers", []any{of("Split", "pattern", map[string]any{"Regex": regex}, "behavior", "Isolated", "invert", false), bytesOnly})
	}
	for name, c := range map[string]struct {
		change func(f, m map[string]any)
		want   string
	}{
		"unigram":            {set("type", "Unigram"), `model "Unigram" is not supported`},
		"wordpiece":          {set("type", "WordPiece"), `model "WordPiece" is not supported`},
		"no type":            {set("type", nil), "model null is not supported"},
		"normalizer":         {part("normalizer", of("NFKC")), `normalizer "NFKC"`},
		"normalizers":        {part("normalizer", of("Sequence", "normalizers", []any{of("NFC")})), `normalizer "Sequence"`},
		"post-processor":     {part("post_processor", of("BertProcessing")), `post_processor "BertProcessing"`},
		"decoder":            {part("decoder", of("Metaspace")), `decoder "Metaspace"`},
		"truncation":         {part("truncation", of("", "max_length", 3)), "truncation"},
		"padding":            {part("padding", of("", "pad_id", 0)), "padding"},
		"byte fallback":      {set("byte_fallback", true), "byte_fallback"},
		"dropout":            {set("dropout", 0.1), "dropout 0.1"},
		"unknown":            {set("unk_token", "<none>"), `unk_token "<none>" is not in`},
		"fused unknown":      {func(_, m map[string]any) { m["unk_token"], m["fuse_unk"] = "a", true }, "fuse_unk"},
		"prefix":             {set("continuing_subword_prefix", "##"), `continuing_subword_prefix "##"`},
		"suffix":             {set("end_of_word_suffix", "</w>"), `end_of_word_suffix "</w>"`},
		"metaspace":          {pre(of("Metaspace", "replacement", "\u2581")), `"Metaspace" is not supported`},
		"no pre-tokenizer":   {pre(nil), "without ByteLevel"},
		"no bytes":           {pre(of("Digits", "individual_digits", true)), "without ByteLevel"},
		"prefix space":       {pre(of("ByteLevel", "add_prefix_space", true, "use_regex", true)), "add_prefix_space"},
		"behavior":           {pre(of("Split", "pattern", map[string]any{"Regex": "a"}, "behavior", "MergedWithNext")), `behavior "MergedWithNext"`},
		"look-behind":        {pre(splitBy(`(?<=a)b`)), "regex"},
		"unclosed group":     {pre(splitBy(`(a`)), "regex"},
		"unclosed set":       {pre(splitBy(`[a`)), "regex"},
		"unknown class":      {pre(splitBy(`\p{Klingon}`)), "regex"},
		"empty match":        {pre(splitBy(`a*`)), "empty"},
		"merge of one":       {set("merges", []any{"ab"}), "merge 0"},
		"merge of three":     {set("merges", []any{[]any{"a", "b", "c"}}), "merge 0"},
		"merge of unknown":   {set("merges", []any{"a \u4e2d"}), "is not in the vocabulary"},
		"merge into unknown": {set("merges", []any{"~ ~"}), `"~~" is not in the vocabulary`},
		"merges of numbers":  {set("merges", []any{1, 2}), "merge"},
		"id twice":           {vocab("zzzz", 7), "id 7 belongs to"},
		"negative id":        {vocab("zzzz", -7), "the id -7"},
		"huge id":            {vocab("zzzz", 1<<30), "far above"},
		"id beyond 32 bits":  {vocab("zzzz", 1<<40), "tokenizer"},
		"id of a fraction":   {vocab("zzzz", 0.5), "tokenizer"},
		"id of text":         {vocab("zzzz", "1"), "tokenizer"},
		"empty token":        {vocab("", 556), "empty token"},
		"empty vocabulary": {func(f, m map[string]any) {
			m["vocab"], m["merges"], f["added_tokens"] = map[string]any{}, []any{}, []any{}
		}, "empty vocabulary"},
		"added where others are": {func(f, _ map[string]any) { f["added_tokens"].([]any)[0].(map[string]any)["id"] = 9 }, "id 9 belongs to"},
		"empty added token":      {func(f, _ map[string]any) { f["added_tokens"].([]any)[0].(map[string]any)["content"] = "" }, "empty token"},
		"added behind a gap":     {func(f, _ map[string]any) { f["added_tokens"].([]any)[0].(map[string]any)["id"] = 560 }, "has the id 560, which Hugging Face's tokenizers would take for 556"},
		"added in another order": {func(f, _ map[string]any) {
			first := f["added_tokens"].([]any)[0].(map[string]any)
			second := maps.Clone(first)
			second["id"], second["content"] = 557, "<|other|>"
			f["added_tokens"] = []any{second, first}
		}, "has the id 557, which Hugging Face's tokenizers would take for 556"},
		"added twice": {func(f, _ map[string]any) { a := f["added_tokens"].([]any); f["added_tokens"] = append(a, a[0]) }, "twice"},
	} {
		if _, err := Parse(patch(t, "gpt2", c.change)); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v, want %q in it", name, err, c.want)
		}
	}
	data, err := os.ReadFile("testdata/small_single_word.json")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Parse(data); err == nil || !strings.Contains(err.Error(), "single_word is not supported") {
		t.Errorf("single_word: %v", err)
	}
}

func TestBPETruncatedFile(t *testing.T) {
	data, err := os.ReadFile("testdata/small_added.json")
	if err != nil {
		t.Fatal(err)
	}
	data = bytes.TrimSpace(data)
	for n := 0; n < len(data); n += 1 + n/60 {
		if _, err := Parse(data[:n]); err == nil {
			t.Fatalf("the first %d bytes are taken for a tokenizer", n)
		}
	}
}

// TestBPEMarshal: what is written encodes alike, read by this package and, where
// TOKENIZERS_PYTHON names a python that has it, by Hugging Face's tokenizers.
func TestBPEMarshal(t *testing.T) {
	file := readVectors(t, "small.json.gz")
	for _, name := range []string{"qwen", "llama3", "smollm2", "gpt2", "added"} {
		t.Run(name, func(t *testing.T) {
			v, dir := file.Tokenizers[name], t.TempDir()
			if err := small(t, name).Save(dir); err != nil {
				t.Fatal(err)
			}
			again, err := Load(dir)
			if err != nil {
				t.Fatal(err)
			}
			v.check(t, again, file.Strings, 250)
			v.checkHuggingFace(t, filepath.Join(dir, Filename), file.Strings)
		})
	}
}

// TestBPELongRuns: a word of 200,000 bytes ends, and begins as one of 5,000 does.
func TestBPELongRuns(t *testing.T) {
	file := readVectors(t, "small.json.gz")
	for _, name := range []string{"qwen", "smollm2"} {
		tok, compared := small(t, name), 0
		for i, want := range file.Tokenizers[name].Text {
			if text := file.Strings[i]; len(text) >= 5000 && slices.Equal(tok.Encode(text), want) {
				compared++
			}
		}
		if compared < 5 {
			t.Errorf("%s: only %d runs of 5,000 encode as Hugging Face does", name, compared)
		}
		for _, unit := range []string{"a", " ", "ab", "\u00e9", "\n"} {
			long := strings.Repeat(unit, 200000/len(unit))
			if back := tok.Decode(tok.Encode(long)); back != long {
				t.Errorf("%s: a run of %q does not decode to itself", name, unit)
			}
		}
	}
}

func BenchmarkEncode(b *testing.B) {
	path := os.Getenv("TOKENIZER_TEXT") // a file, for a comparison with tokenizer_vectors.py speed
	text := []byte(strings.Repeat("The harbour of the old town lies where the river meets the sea; it was built in 1871.\n", 2000))
	if path != "" {
		var err error
		if text, err = os.ReadFile(path); err != nil {
			b.Fatal(err)
		}
	}
	lines := strings.SplitAfter(string(text), "\n")
	for _, name := range []string{"qwen2.5", "llama3"} {
		b.Run(name, func(b *testing.B) {
			tok, err := Load(published(b, name))
			if err != nil {
				b.Fatal(err)
			}
			b.SetBytes(int64(len(text)))
			n := 0
			for b.Loop() {
				n = 0
				for _, line := range lines {
					n += len(tok.Encode(line))
				}
			}
			b.ReportMetric(float64(n), "tokens")
		})
	}
}
