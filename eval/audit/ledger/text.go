package ledger

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// encoding checks whether the text of each output encodes to the ids that were
// sampled. A model may sample others, and an output that was cut in a word has
// others: nothing is wrong with such a record, but it is lost where text is kept.
func (s *subject) encoding() {
	tok := s.o.Tokenizer
	for i := range s.t.Calls {
		output := s.t.Calls[i].Output
		s.saw(CheckEncoding, 1, len(output))
		again := tok.EncodeSpecial(tok.Decode(output))
		if slices.Equal(again, output) {
			continue
		}
		at := 0
		for at < len(again) && at < len(output) && again[at] == output[at] {
			at++
		}
		s.warn(CheckEncoding, Finding{Call: i, Token: at, Problem: "the output's text encodes to other ids from here on", Recorded: some(output[at:]), Found: some(again[at:])})
	}
}

// pair is two special tokens that follow each other.
type pair struct{ first, second int32 }

// separators checks that what stands between the end of a turn and the beginning
// of the next is the same everywhere in a context: a harness that splices ids by
// hand easily leaves out the line break there.
func (s *subject) separators() {
	tok := s.o.Tokenizer
	for i := range s.t.Calls {
		context := s.t.Calls[i].Context
		s.saw(CheckSeparators, 1, len(context))
		last := -1
		spaced, bare := map[pair]int{}, map[pair]int{}
		for at, id := range context {
			if !tok.Special(id) {
				continue
			}
			if last >= 0 {
				p := pair{context[last], id}
				switch gap := context[last+1 : at]; {
				case len(gap) == 0:
					if _, ok := bare[p]; !ok {
						bare[p] = at
					}
				case strings.TrimSpace(tok.Decode(gap)) == "":
					spaced[p]++
				}
			}
			last = at
		}
		for _, p := range slices.SortedFunc(maps.Keys(bare), func(a, b pair) int { return bare[a] - bare[b] }) {
			at := bare[p]
			if spaced[p] == 0 {
				continue
			}
			s.fail(CheckSeparators, Finding{Call: i, Token: at, Problem: fmt.Sprintf(
				"between %d and %d stands nothing here, and white space in %s of the same context", p.first, p.second, count(spaced[p], "other place"))})
		}
	}
}
