package aligntest

import (
	"slices"

	"github.com/memopd/memopd-bench/trace"
)

// Kind says what a stored token is.
type Kind int

// The kinds of tokens of a transcript.
const (
	KindPrefix      Kind = iota
	KindThink            // the memory part of an output
	KindResponse         // the rest of it
	KindObservation      // what the environment showed
	KindCopy             // a context token that stands elsewhere too
)

// Token is a stored token of a reference layout: of call Call (-1: the prefix, or
// an observation before the first call).
type Token struct {
	ID       int32
	Kind     Kind
	Call     int
	Position int
}

// Reference is a layout written from its meaning, as a dense matrix. Sees is
// [query][key].
type Reference struct {
	Tokens []Token
	Sees   [][]bool
}

// Think is the memory part of a call's output.
type Think func(t *trace.Trajectory, call int) int

// ReferenceOf writes a layout by its name, with one stored prefix; false for a
// name that it does not know. Think is asked for "mem1" alone.
func ReferenceOf(layout string, t *trace.Trajectory, think Think) (Reference, bool) {
	everything := func(Token, Token) bool { return true }
	switch layout {
	case "aligned", "trajectory-mask", "response-mask":
		return dense(callTokens(t), sameCall), true
	case "visibility":
		return dense(callTokens(t), everything), true
	case "positions":
		return dense(marching(callTokens(t)), sameCall), true
	case "both":
		return dense(marching(callTokens(t)), everything), true
	case "persistent":
		return dense(marching(transcript(t, think)), everything), true
	case "mem1":
		return dense(marching(transcript(t, think)), mem1), true
	}
	return Reference{}, false
}

// dense asks a rule of each pair of tokens of which the key does not stand later.
func dense(tokens []Token, rule func(query, key Token) bool) Reference {
	r := Reference{Tokens: tokens}
	for q := range tokens {
		line := make([]bool, len(tokens))
		for k := 0; k <= q; k++ {
			line[k] = rule(tokens[q], tokens[k])
		}
		r.Sees = append(r.Sees, line)
	}
	return r
}

// sameCall is the rule of the aligned layout.
func sameCall(query, key Token) bool { return key.Kind == KindPrefix || key.Call == query.Call }

// mem1 is the rule of MEM1's published mask, spelled out by kinds and turns.
func mem1(query, key Token) bool {
	own := key.Call == query.Call && key.Kind == query.Kind
	last := key.Call == query.Call-1
	switch query.Kind {
	case KindThink:
		return own || key.Kind == KindPrefix || last && (key.Kind == KindResponse || key.Kind == KindObservation)
	case KindResponse:
		return own || key.Kind == KindPrefix || last && (key.Kind == KindResponse || key.Kind == KindObservation) ||
			key.Call == query.Call && key.Kind == KindThink
	}
	return own
}

// callTokens are the prefix and, for each call that sampled something, its mutable
// context and its output.
func callTokens(t *trace.Trajectory) []Token {
	tokens := prefixTokens(t)
	seen := map[[2]int]bool{}
	for k, c := range t.Calls {
		if len(c.Output) == 0 {
			continue
		}
		for i, id := range append(slices.Clone(c.Context[len(t.Prefix):]), c.Output...) {
			token := Token{ID: id, Kind: KindThink, Call: k, Position: len(t.Prefix) + i}
			if at := len(t.Prefix) + i; at < len(c.Context) {
				token.Kind = contextKind(c, at, seen)
			}
			tokens = append(tokens, token)
		}
	}
	return tokens
}

// contextKind tells an observation at its first place from a copy.
func contextKind(c trace.Call, at int, seen map[[2]int]bool) Kind {
	for _, s := range c.Spans {
		if at >= s.Start && at < s.End && s.Origin == trace.OriginObservation {
			source := [2]int{s.FromCall, at - s.Start + s.Offset}
			if !seen[source] {
				seen[source] = true
				return KindObservation
			}
		}
	}
	return KindCopy
}

// transcript is the flat history up to the last sampled token.
func transcript(t *trace.Trajectory, think Think) []Token {
	tokens := prefixTokens(t)
	add := func(ids []int32, kind Kind, call int) {
		for _, id := range ids {
			tokens = append(tokens, Token{ID: id, Kind: kind, Call: call})
		}
	}
	end := 0
	add(t.Calls[0].Context[len(t.Prefix):], KindObservation, -1)
	for k, c := range t.Calls {
		n := len(c.Output)
		if think != nil {
			n = think(t, k)
		}
		add(c.Output[:n], KindThink, k)
		add(c.Output[n:], KindResponse, k)
		if len(c.Output) > 0 {
			end = len(tokens)
		}
		add(c.Observation, KindObservation, k)
	}
	return tokens[:end]
}

func prefixTokens(t *trace.Trajectory) []Token {
	var tokens []Token
	for i, id := range t.Prefix {
		tokens = append(tokens, Token{ID: id, Kind: KindPrefix, Call: -1, Position: i})
	}
	return tokens
}

// marching numbers the tokens through.
func marching(tokens []Token) []Token {
	for i := range tokens {
		tokens[i].Position = i
	}
	return tokens
}
