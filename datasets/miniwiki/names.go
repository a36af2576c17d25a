package miniwiki

import (
	"fmt"
	"math/rand/v2"
)

// The vocabulary's bounds: a task has at most MaxQuestions questions, and an
// observation can say that up to MaxTurns turns are left.
const (
	MaxQuestions = 32
	MaxTurns     = 70
)

// Ids of the special tokens: their places in [Vocabulary].
const (
	PadID = 0
	UnkID = 1
	BosID = 2
	EosID = 3
)

// Words of the protocol "mini" besides question numbers, numbers of turns,
// relations and names; the special tokens come first.
var protocolWords = []string{
	"<pad>", "<unk>", "<bos>", "<eos>",
	"answer", "all", "questions", ":", "</q>",
	"<think>", "</think>", "<search>", "</search>", "<answer>", "</answer>",
	"<information>", "</information>",
	"turns", ";", "next", "none", "title", ".", "see",
}

// pool holds the names of all worlds. It is drawn once from a fixed seed of its
// own, so that a checkpoint's ids mean the same names in every wiki.
var pool = makePool()

func makePool() []string {
	const consonants, vowels = "bcdfghklmnprstvz", "aeiou"
	taken := map[string]bool{}
	for _, w := range protocolWords {
		taken[w] = true
	}
	for _, r := range relations {
		taken[r.name] = true
	}
	rng := rand.New(rand.NewPCG(5, 0))
	names := make([]string, 0, poolSize)
	for len(names) < poolSize {
		var b [4]byte
		for i := 0; i < len(b); i += 2 {
			b[i] = consonants[rng.IntN(len(consonants))]
			b[i+1] = vowels[rng.IntN(len(vowels))]
		}
		if name := string(b[:]); !taken[name] {
			taken[name] = true
			names = append(names, name)
		}
	}
	return names
}

// poolIndex finds a name's place in the pool.
var poolIndex = func() map[string]int {
	m := make(map[string]int, len(pool))
	for i, n := range pool {
		m[n] = i
	}
	return m
}()

// Names returns the pool of names in the order of their ids.
func Names() []string { return append([]string(nil), pool...) }

// Relations returns the names of the nine relations in the order of their ids.
func Relations() []string {
	out := make([]string, len(relations))
	for i, r := range relations {
		out[i] = r.name
	}
	return out
}

// Vocabulary returns every word of the protocol "mini" over this wiki, each at
// its token id: <pad> is 0, <unk> 1, <bos> 2, <eos> 3. It is the same for every
// [Config], and its order never changes.
func Vocabulary() []string {
	words := append([]string(nil), protocolWords...)
	for i := 1; i <= MaxQuestions; i++ {
		words = append(words, fmt.Sprintf("q%d", i))
	}
	for i := 0; i <= MaxTurns; i++ {
		words = append(words, fmt.Sprint(i))
	}
	words = append(words, Relations()...)
	return append(words, pool...)
}
