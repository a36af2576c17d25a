package datasets

import (
	"fmt"
	"strconv"
	"strings"
)

// WikiRAG names the horizon of one question a task, the paper's Wiki-RAG.
const WikiRAG = "wikirag"

// ParseHorizon returns how many questions a task of a named horizon has: n for
// "qN", such as "q2", "q8" and "q16", and 1 for [WikiRAG].
func ParseHorizon(name string) (int, error) {
	if name == WikiRAG {
		return 1, nil
	}
	digits, ok := strings.CutPrefix(name, "q")
	n, err := strconv.Atoi(digits)
	if !ok || err != nil || n < 1 || digits[0] < '1' || digits[0] > '9' {
		return 0, fmt.Errorf("unknown horizon %q; want q and a number of questions, such as q2, q8, q16, or %s", name, WikiRAG)
	}
	return n, nil
}

// HorizonName is the name of n questions a task, such as "q16".
func HorizonName(n int) string { return fmt.Sprintf("q%d", n) }
