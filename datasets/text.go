package datasets

import (
	"crypto/sha256"
	"encoding/hex"
	"html"
	"strings"
)

// cleanText makes every run of white space, no-break spaces included, one space
// and trims the ends. Scores do not change: SQuAD's normalisation does the same.
func cleanText(s string) string { return strings.Join(strings.Fields(s), " ") }

// cleanTitle also resolves HTML entities, which HotpotQA's titles hold.
func cleanTitle(s string) string { return cleanText(html.UnescapeString(s)) }

// punctuation is Python's string.punctuation, what SQuAD's normalisation drops.
const punctuation = "!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~"

// normalisesToNothing reports whether SQuAD's normalisation leaves nothing of an
// answer, as it does of "---", ")" and "A+": an empty prediction would be right.
func normalisesToNothing(answer string) bool {
	s := strings.Map(func(r rune) rune {
		if strings.ContainsRune(punctuation, r) {
			return -1
		}
		return r
	}, strings.ToLower(answer))
	for _, w := range strings.Fields(s) {
		if w != "a" && w != "an" && w != "the" {
			return false
		}
	}
	return true
}

// Key identifies a question by what it asks: its world and its text, whatever
// the case, the white space and the punctuation at its end. The same question
// has the same key in every file and layout (Search-R1 and MEM1 add a "?").
func Key(q Question) string {
	text := strings.TrimRight(strings.ToLower(cleanText(q.Question)), "?!. ")
	return shortHash(q.World, text)
}

// PassageID is the id of a passage that came without one; equal passages have
// equal ids.
func PassageID(title, text string) string { return "p" + shortHash(title, text) }

// shortHash returns 64 bits of the hash of parts as hex digits.
func shortHash(parts ...string) string {
	sum := sha256.Sum256([]byte(strings.Join(parts, "\x00")))
	return hex.EncodeToString(sum[:8])
}
