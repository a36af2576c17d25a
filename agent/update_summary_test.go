package agent

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/memopd/memopd-bench/trace"
)

// pieces is a tokenizer of given texts: those of merged tags, as BPE has them.
type pieces []string

func (p pieces) Decode(ids []int32) string {
	var b strings.Builder
	for _, id := range ids {
		b.WriteString(p[id])
	}
	return b.String()
}

// The thinking is found whatever its tags are split into, and cut between ids.
func TestThinkingIsCutBetweenIDs(t *testing.T) {
	for _, tc := range []struct {
		output []string
		want   string // what is kept; "": there is no thinking
	}{
		{[]string{"<think>", " a ", "</think>", "<search>"}, "<think> a </think>"},
		{[]string{"<", "th", "ink", ">", " a ", "</", "thi", "nk", ">", " <search>"}, "<think> a </think>"},
		{[]string{"Sure. ", "<th", "ink> a", "</think", ">", "x"}, "<think> a</think>"},
		{[]string{"Sure. <th", "ink> a", "</think", "><", "search>"}, "Sure. <think> a</think><"},
		{[]string{"", "<think>", "", "a", "</think>", "", "x"}, "<think>a</think>"},
		{[]string{"a", "</think>", "x"}, "a</think>"},
		{[]string{"a", "</think>", "<search>", "<think>"}, "a</think>"},
		{[]string{"<think>", "a", "<think>", "b", "</think>", "c", "</think>", ">", ">"}, "<think>a<think>b</think>c</think>"},
		{[]string{"<think>", "a", "</think>", "c", "<think>", "b", "</think>", "x"}, "<think>a</think>c<think>b</think>"},
		{[]string{"<think></think><think>", "</think></think>", "x"}, "<think></think><think></think></think>"},
		{[]string{"\xc3", "\xa9", "<think>", "\xc3", "</think>", "\xa9"}, "<think>\xc3</think>"},
		{[]string{"<think>", "a"}, ""},
		{[]string{"<think>", "a", "</think"}, ""},
		{nil, ""},
	} {
		ids := make([]int32, len(tc.output))
		for i := range ids {
			ids[i] = int32(i)
		}
		start, end := thinking(ids, pieces(tc.output))
		if got := strings.Join(tc.output[start:end], ""); got != tc.want {
			t.Errorf("%q: kept %q, want %q", tc.output, got, tc.want)
		}
	}
}

// A response without a thinking part stays whole.
func TestSummaryOfNoThinking(t *testing.T) {
	tok := chars{}
	for _, text := range []string{"<search> a </search>", "<think> a <search> b </search>"} {
		calls := []trace.Call{{Output: tok.Encode(text), Observation: tok.Encode(" o")}}
		ids, _, err := Assemble(nil, calls, SummaryUpdate{}.Retain(calls, tok))
		if err != nil || tok.Decode(ids) != text+" o" {
			t.Errorf("%q: kept %q, %v", text, tok.Decode(ids), err)
		}
	}
}

// What the search finds is what looking at every id from the left finds.
func TestThinkingAgainstScan(t *testing.T) {
	r := rand.New(rand.NewPCG(8, 9))
	tok := pieces{"<think>", "</think>", "<", "/", "think", ">", "><", "a", "", "\xc3", "k></think", "></"}
	found := 0
	for range 3000 {
		output := make([]int32, r.IntN(14))
		for i := range output {
			output[i] = r.Int32N(int32(len(tok)))
		}
		start, end := thinking(output, tok)
		wantStart, wantEnd := scanned(output, tok)
		if start != wantStart || end != wantEnd {
			t.Fatalf("%q: [%d, %d), want [%d, %d)", tok.Decode(output), start, end, wantStart, wantEnd)
		}
		if end > 0 {
			found++
		}
	}
	if found < 500 {
		t.Errorf("only %d outputs had a thinking part", found)
	}
}

// scanned is thinking by the bytes' places.
func scanned(output []int32, tok pieces) (start, end int) {
	text := tok.Decode(output)
	var owner []int // of each byte, the id
	for i, id := range output {
		owner = append(owner, slices.Repeat([]int{i}, len(tok[id]))...)
	}
	last := strings.LastIndex(text, thinkClose)
	if last < 0 {
		return 0, 0
	}
	end = owner[last+len(thinkClose)-1] + 1
	// An opening that the id with the last closing's end completes counts as before it.
	if first := strings.Index(tok.Decode(output[:end]), thinkOpen); first >= 0 {
		start = owner[first]
	}
	return start, end
}
