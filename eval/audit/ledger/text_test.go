package ledger

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/memopd/memopd-bench/model/tokenizer"
	"github.com/memopd/memopd-bench/trace"
)

// small is a byte-level BPE with the marks of ChatML that merges "hel", "lo" and, of
// these two, "hello".
func small(t *testing.T) *tokenizer.Tokenizer {
	t.Helper()
	vocab := map[string]int{}
	add := func(token string) { vocab[token] = len(vocab) }
	for next, b := rune(0x100), 0; b < 256; b++ { // GPT-2's alphabet of bytes
		if b > ' ' && b < 0x7f || b > 0xa0 && b != 0xad {
			add(string(rune(b)))
			continue
		}
		add(string(next))
		next++
	}
	for _, token := range []string{"he", "hel", "lo", "hello"} {
		add(token)
	}
	words, err := json.Marshal(vocab)
	if err != nil {
		t.Fatal(err)
	}
	tok, err := tokenizer.Parse([]byte(`{"version": "1.0", "added_tokens": [
		{"id": 260, "content": "<|im_start|>", "special": true}, {"id": 261, "content": "<|im_end|>", "special": true}],
		"pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": true},
		"decoder": {"type": "ByteLevel"},
		"model": {"type": "BPE", "vocab": ` + string(words) + `, "merges": ["h e", "he l", "l o", "hel lo"]}}`))
	if err != nil {
		t.Fatal(err)
	}
	return tok
}

// withTokenizers runs a test with the small tokenizer and with a published one, which
// scripts/assets.sh fetches.
func withTokenizers(t *testing.T, test func(*testing.T, *tokenizer.Tokenizer)) {
	t.Run("small", func(t *testing.T) { test(t, small(t)) })
	t.Run("qwen3", func(t *testing.T) {
		root := os.Getenv("MEMOPD_ASSETS")
		if root == "" {
			root = filepath.Join("..", "..", "..", ".setup", "assets")
		}
		dir := filepath.Join(root, "tokenizers", "qwen3")
		if _, err := os.Stat(dir); err != nil {
			t.Skipf("%s is not there; scripts/assets.sh fetches it", dir)
		}
		tok, err := tokenizer.Load(dir)
		if err != nil {
			t.Fatal(err)
		}
		test(t, tok)
	})
}

// An output whose text encodes to other ids is named with both: a word that was
// sampled in two pieces, also one that was cut there. The record keeps its ids.
func TestSampledPiecesEncodeOtherwise(t *testing.T) { withTokenizers(t, sampledPiecesEncodeOtherwise) }

func sampledPiecesEncodeOtherwise(t *testing.T, tok *tokenizer.Tokenizer) {
	he, llo, hello := tok.Encode("hel"), tok.Encode("lo"), tok.Encode("hello")
	if len(he) != 1 || len(llo) != 1 || len(hello) != 1 {
		t.Fatalf("%v %v %v", he, llo, hello)
	}
	end, _ := tok.ID("<|im_end|>")
	tr := imported(func(t *trace.Trajectory) {
		t.Calls = t.Calls[:1]
		c := &t.Calls[0]
		c.Output, c.LogProbs = []int32{he[0], llo[0], end}, []float32{-1, -1, -1}
	})
	row := rowOf(auditOf(Options{Tokenizer: tok}, tr), CheckEncoding)
	f := row.First
	if row.Warnings != 1 || row.Failures != 0 || f.Token != 0 || !slices.Equal(f.Recorded, []int32{he[0], llo[0], end}) ||
		!slices.Equal(f.Found, []int32{hello[0], end}) || f.RecordedText != "hello<|im_end|>" || f.FoundText != f.RecordedText {
		t.Errorf("%+v %+v", row, f)
	}
	tr.Calls[0].Output = []int32{hello[0], end}
	tr.Calls[0].LogProbs = tr.Calls[0].LogProbs[:2]
	if row := rowOf(auditOf(Options{Tokenizer: tok}, tr), CheckEncoding); row.Warnings != 0 || row.Tokens != 2 {
		t.Errorf("%+v", row.First)
	}
	// Half a character, cut at the length limit.
	tr.Calls[0].Output = tok.Encode("x🫠")[:2]
	if row := rowOf(auditOf(Options{Tokenizer: tok}, tr), CheckEncoding); row.Warnings != 1 || row.First.Token != 1 {
		t.Errorf("half a character: %+v", row.First)
	}
}

// With a tokenizer a re-rendered word is told from a rewritten one by its text, within
// an output and at its end.
func TestDriftTellsTextsApart(t *testing.T) { withTokenizers(t, driftTellsTextsApart) }

func driftTellsTextsApart(t *testing.T, tok *tokenizer.Tokenizer) {
	he, llo, hello, other := tok.Encode("hel")[0], tok.Encode("lo")[0], tok.Encode("hello")[0], tok.Encode("x")[0]
	rest := slices.Repeat([]int32{he, hello}, 5)
	for _, c := range []struct {
		found int32
		says  string
	}{{hello, "retokenised"}, {other, "rewritten"}} {
		for where, make := range map[string]func(*trace.Trajectory){
			"at the end": func(t *trace.Trajectory) {
				t.Calls[0].Output, t.Calls[0].LogProbs = []int32{he, llo}, nil
				seen(t, []int32{c.found, he}, span(trace.OriginUnknown, -1, 0, 2, 4))
			},
			"within": func(t *trace.Trajectory) {
				t.Calls[0].Output, t.Calls[0].LogProbs = slices.Concat([]int32{he, llo}, rest), nil
				seen(t, slices.Concat([]int32{c.found}, rest), span(trace.OriginUnknown, -1, 0, 2, 3), span(trace.OriginRetained, 0, 2, 3, 13))
			},
		} {
			f := rowOf(auditOf(Options{Tokenizer: tok}, imported(make)), CheckDrift).First
			if f == nil || !strings.Contains(f.Problem, c.says) || f.Token != 0 || !slices.Equal(f.Recorded, []int32{he, llo}) {
				t.Errorf("%s, %d: %+v, want %q", where, c.found, f, c.says)
			}
		}
	}
}

// Between the end of a turn and the next stands a line break; a harness that splices
// ids and drops it somewhere is found.
func TestDroppedTurnSeparator(t *testing.T) { withTokenizers(t, droppedTurnSeparator) }

func droppedTurnSeparator(t *testing.T, tok *tokenizer.Tokenizer) {
	whole := tok.EncodeSpecial("<|im_start|>user\nx<|im_end|>\n<|im_start|>assistant\ny<|im_end|>\n<|im_start|>user\nz<|im_end|>\n<|im_start|>assistant\n")
	dropped := tok.EncodeSpecial("<|im_start|>user\nx<|im_end|>\n<|im_start|>assistant\ny<|im_end|><|im_start|>user\nz<|im_end|>\n<|im_start|>assistant\n")
	of := func(context []int32) Row {
		tr := imported(func(t *trace.Trajectory) {
			t.Calls = t.Calls[:1]
			t.Prefix, t.Calls[0].Context = context, context
			t.Calls[0].Spans[0].End = len(context)
		})
		return rowOf(auditOf(Options{Tokenizer: tok}, tr), CheckSeparators)
	}
	if row := of(whole); row.Failures != 0 || row.Calls != 1 {
		t.Errorf("whole: %+v", row.First)
	}
	start, _ := tok.ID("<|im_start|>")
	row := of(dropped)
	if row.Failures != 1 || dropped[row.First.Token] != start || !strings.Contains(row.First.Problem, "2 other places") {
		t.Errorf("dropped: %+v %+v", row, row.First)
	}
}

// Special ids that end an output are its stop tokens, whether or not a reason is known.
func TestSpecialStopTokens(t *testing.T) {
	tok := words(t)
	tr := imported(func(t *trace.Trajectory) {
		t.Calls = t.Calls[:1]
		c := &t.Calls[0]
		c.Output, c.Stop, c.LogProbs = []int32{2, 1, 3, 1}, trace.StopUnknown, nil
	})
	row := rowOf(auditOf(Options{Tokenizer: tok}, tr), CheckStops)
	if row.Warnings != 1 || row.First.Token != 1 {
		t.Errorf("%+v %+v", row, row.First)
	}
}
