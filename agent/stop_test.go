package agent

import (
	"math/rand/v2"
	"strings"
	"testing"
)

var stopTags = []string{searchClose, answerClose}

func TestStopOverSplitTags(t *testing.T) {
	s := NewStopper(chars{}, stopTags)
	for _, tc := range []struct {
		name string
		ids  []int32
		want int
	}{
		{"tag of bytes", chars{}.Encode("<search>x</search> y"), 18},
		{"answer", chars{}.Encode("</answer>"), 9},
		{"no tag", chars{}.Encode("<search> </ search> </search"), -1},
		{"other tag", chars{}.Encode("<think></think>"), -1},
		{"nothing within the tag", append(append(chars{}.Encode("</sear"), charNothing, charNothing, charNothing, charNothing, charNothing, charNothing, charNothing, charNothing, charNothing), chars{}.Encode("ch>")...), 18},
		{"empty", nil, -1},
	} {
		if got := s.StopIndex(tc.ids); got != tc.want {
			t.Errorf("%s: stops after %d ids, want %d", tc.name, got, tc.want)
		}
	}
}

// The condition must agree with a search in the whole decoded text.
func TestStopAgreesWithWholeText(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	pieces := []string{"<", "/", "</", "search", "answer", ">", "sea", "rch", "ans", "wer>", "</search", " ", "x"}
	s := NewStopper(chars{}, stopTags)
	hits := 0
	for range 3000 {
		var ids []int32
		for range 12 {
			ids = append(ids, chars{}.Encode(pieces[r.IntN(len(pieces))])...)
			if r.IntN(4) == 0 {
				ids = append(ids, charNothing+int32(r.IntN(2)))
			}
		}
		want := -1
		for n := 1; n <= len(ids) && want < 0; n++ {
			text := chars{}.Decode(ids[:n])
			if strings.Contains(text, searchClose) || strings.Contains(text, answerClose) {
				want = n
			}
		}
		if want > 0 {
			hits++
		}
		if got := s.StopIndex(ids); got != want {
			t.Fatalf("%q: stops after %d ids, want %d", chars{}.Decode(ids), got, want)
		}
	}
	if hits < 50 {
		t.Errorf("only %d of the random outputs hold a tag", hits)
	}
}

// counting counts the ids that are decoded.
type counting struct {
	chars
	ids int
}

func (c *counting) Decode(ids []int32) string {
	c.ids += len(ids)
	return c.chars.Decode(ids)
}

func TestStopIsCheap(t *testing.T) {
	tok := &counting{}
	s := NewStopper(tok, stopTags)
	long := chars{}.Encode(strings.Repeat("some words and no tags ", 500))
	if s.StopIndex(long) != -1 {
		t.Fatal("stopped")
	}
	if tok.ids > 256 {
		t.Errorf("decoded %d ids for an output of %d", tok.ids, len(long))
	}
}
