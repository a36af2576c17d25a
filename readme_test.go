package repo

import (
	"os"
	"strings"
	"testing"
)

// The README's F1 are those of the tables under results/mini.
func TestReadmeShowsTheOutcome(t *testing.T) {
	lines := func(path string) []string {
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		return strings.Split(string(data), "\n")
	}
	cells := func(line string) []string {
		var out []string
		for _, c := range strings.Split(strings.Trim(line, "|"), "|") {
			out = append(out, strings.TrimSpace(c))
		}
		return out
	}
	f1 := map[string]string{} // of "variant horizon"
	for _, path := range []string{"results/mini/tables/t1.md", "results/mini/tables/t2.md"} {
		column := -1
		for _, line := range lines(path) {
			if strings.Contains(line, "change against") {
				break
			}
			c := cells(line)
			if len(c) < 7 {
				continue
			}
			if c[0] == "horizon" {
				for i, head := range c {
					if head == "F1 (squad)" {
						column = i
					}
				}
			} else if column > 0 {
				f1[c[1]+" "+c[0]] = c[column]
			}
		}
	}
	names := map[string]string{"SFT start": "sft", "ppo": "ppo", "persistent": "persistent", "memopd": "memopd", "teacher": "teacher"}
	found := 0
	in := false
	for _, line := range lines("README.md") {
		if strings.HasPrefix(line, "## ") {
			in = line == "## Results"
		}
		c := cells(line)
		variant, ok := names[c[0]]
		if !in || !ok || len(c) != 5 || !strings.HasPrefix(line, "| ") {
			continue
		}
		found++
		for i, horizon := range []string{"q2", "q8", "q16", "wikirag"} {
			if want := f1[variant+" "+horizon]; want == "" || c[1+i] != want {
				t.Errorf("README has %s's F1 at %s as %s, results/mini as %q", variant, horizon, c[1+i], want)
			}
		}
	}
	if found != len(names) {
		t.Errorf("README has %d of %d variants' rows", found, len(names))
	}
}
