package oracle

import (
	"html"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/memopd/memopd-bench/agent"
	"github.com/memopd/memopd-bench/eval/metrics"
)

// note is the sentence of a passage that matters most, after its title: one with
// a gold, else one that names what is still missing, else the one nearest to the
// question; of equals the one with more of the question's words, then the first.
func (s *search) note(d agent.Document) string {
	best, bestScore, must := "", -1, ""
	words := contentWords(s.question.Question)
	for _, sentence := range sentences(d.Text) {
		score, hold := overlap(sentence, words), ""
		if gold := s.goldIn(sentence); gold != "" {
			score, hold = score+2000, gold
		} else if title := s.missingIn(sentence); title != "" {
			score, hold = score+1000, title
		}
		if score > bestScore {
			best, bestScore, must = sentence, score, hold
		}
	}
	note := cutAround(best, must, s.oracle.NoteWords)
	if !strings.HasSuffix(note, ".") && !strings.HasSuffix(note, "!") && !strings.HasSuffix(note, "?") {
		note += "."
	}
	return d.Title + ": " + note
}

func (s *search) goldIn(sentence string) string {
	if isVerdict(s.question) {
		return ""
	}
	for _, gold := range s.question.Golds {
		if metrics.HasAnswer(sentence, []string{gold}) {
			return gold
		}
	}
	return ""
}

func (s *search) missingIn(sentence string) string {
	for _, title := range s.missing {
		if names(sentence, title) {
			return baseTitle(title)
		}
	}
	return ""
}

// abbreviations end with a full stop and no sentence.
var abbreviations = map[string]bool{"mr": true, "mrs": true, "ms": true, "dr": true, "st": true, "jr": true, "sr": true, "vs": true, "no": true, "prof": true, "gen": true, "col": true}

// sentences cuts a text where a word that ends with a stop is followed by one that
// begins with a capital, a digit or a quotation mark.
func sentences(text string) []string {
	words := strings.Fields(text)
	var out []string
	start := 0
	for i, w := range words {
		if i+1 < len(words) && !(endsSentence(w) && beginsSentence(words[i+1])) {
			continue
		}
		out = append(out, strings.Join(words[start:i+1], " "))
		start = i + 1
	}
	return out
}

func endsSentence(word string) bool {
	word = strings.TrimRight(word, `"')”’`)
	if strings.HasSuffix(word, "!") || strings.HasSuffix(word, "?") {
		return true
	}
	stem, ok := strings.CutSuffix(word, ".")
	// An initial ("J.") or a word with more stops ("U.S.") goes on.
	return ok && utf8.RuneCountInString(stem) > 1 && !strings.Contains(stem, ".") && !abbreviations[strings.ToLower(stem)]
}

func beginsSentence(word string) bool {
	r, _ := utf8.DecodeRuneInString(word)
	return unicode.IsUpper(r) || unicode.IsDigit(r) || strings.ContainsRune(`"'“‘(`, r)
}

// cutAround keeps at most n words of a sentence, those around what must stay.
func cutAround(sentence, must string, n int) string {
	words := strings.Fields(sentence)
	if len(words) <= n {
		return sentence
	}
	start := 0
	if must != "" {
		want := len(strings.Fields(metrics.NormalizeSQuAD(must)))
		found := false
		for i := range words {
			if metrics.HasAnswer(strings.Join(words[i:min(len(words), i+want+2)], " "), []string{must}) {
				start, found = i, true
			} else if found {
				break // the last window of the first place begins with it
			}
		}
		start = max(0, min(start+want/2-n/2, len(words)-n))
	}
	return strings.Join(words[start:min(len(words), start+n)], " ")
}

// contentWords are the longer words of a text, normalised.
func contentWords(text string) map[string]bool {
	out := map[string]bool{}
	for w := range strings.FieldsSeq(metrics.NormalizeSQuAD(text)) {
		if len(w) > 3 {
			out[w] = true
		}
	}
	return out
}

func overlap(sentence string, words map[string]bool) int {
	seen := map[string]bool{}
	for w := range strings.FieldsSeq(metrics.NormalizeSQuAD(sentence)) {
		if words[w] {
			seen[w] = true
		}
	}
	return len(seen)
}

// sameTitle compares titles as scorers compare answers; HotpotQA's hold HTML
// entities in some files.
func sameTitle(a, b string) bool {
	return metrics.NormalizeSQuAD(html.UnescapeString(a)) == metrics.NormalizeSQuAD(html.UnescapeString(b))
}

// baseTitle is a title without what tells it from others: "Kiss and Tell" of
// "Kiss and Tell (1945 film)".
func baseTitle(title string) string {
	if i := strings.LastIndex(title, " ("); i > 0 && strings.HasSuffix(title, ")") {
		return title[:i]
	}
	return title
}

// names reports whether a text names a title, as whole words.
func names(text, title string) bool { return metrics.HasAnswer(text, []string{baseTitle(title)}) }

// place is where a text first names a title, in bytes of the normalised text; its
// length where it does not.
func place(text, title string) int {
	text = " " + metrics.NormalizeSQuAD(text) + " "
	if i := strings.Index(text, " "+metrics.NormalizeSQuAD(baseTitle(title))+" "); i >= 0 {
		return i
	}
	return len(text)
}
