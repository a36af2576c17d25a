package agent

import (
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/memopd/memopd-bench/trace"
)

func search(query string) Action       { return Action{Outcome: trace.OutcomeSearch, Query: query} }
func answers(answers ...string) Action { return Action{Outcome: trace.OutcomeAnswer, Answers: answers} }

var parseCases = []struct {
	name, text string
	want       Action
}{
	{"search", "<think> a </think> <search> noge </search>", search("noge")},
	{"search without thinking", "<search>noge</search>", search("noge")},
	{"search of many lines", "<search>\n a\t b\n</search>", search("a b")},
	{"search in open thinking", "<think> so <search> x </search>", search("x")},
	{"search, then more", "<search> x </search>\n <think> and </think> <answer> y </answer>", search("x")},
	{"two searches", "<search> x </search> <search> y </search>", search("x")},
	{"search opened twice", "<search> I mean <search> x </search>", search("x")},
	{"tag named in thinking", "<think> I <search> next, then <answer> </think> <search> x </search>", search("x")},
	{"answer opened, search made", "<answer> a <search> x </search>", search("x")},
	{"query syntax is text", `<search> "a" AND title:b^2 (x) ; </search>`, search(`"a" AND title:b^2 (x) ;`)},
	{"query of bad bytes", "<search> a\xffb </search>", search("a\uFFFDb")},
	{"end token behind", "<search> x </search><|end|>", search("x")},

	{"answer", "<think> a </think> <answer> roge ; gola </answer>", answers("roge", "gola")},
	{"one answer", "<answer>The Beatles</answer>", answers("The Beatles")},
	{"answer of many lines", "<answer>\nThe\n Beatles;\nParis </answer>", answers("The Beatles", "Paris")},
	{"first answer missing", "<answer>; Paris</answer>", answers("", "Paris")},
	{"last answer missing", "<answer>Paris;</answer>", answers("Paris", "")},
	{"separator alone", "<answer>;</answer>", answers("", "")},
	{"empty answer", "<answer></answer>", answers()},
	{"blank answer", "<answer> \n </answer>", answers()},
	{"answer, then search", "<answer> a </answer> <search> b </search>", answers("a")},
	{"search opened, answer given", "<search> x <answer> a </answer>", answers("a")},
	{"answer with other markup", "<answer> <b>a</b> </answer>", answers("<b>a</b>")},

	{"empty", "", unusable(ReasonEmpty)},
	{"blank", " \n\t", unusable(ReasonEmpty)},
	{"text alone", "I do not know", unusable(ReasonNoTag)},
	{"thinking alone", "<think> a </think>", unusable(ReasonNoTag)},
	{"other case", "<Search> x </Search>", unusable(ReasonNoTag)},
	{"search not closed", "<think> a </think> <search> noge", unusable(ReasonUnclosedSearch)},
	{"search half closed", "<search> noge </sear", unusable(ReasonUnclosedSearch)},
	{"answer not closed", "<answer> a ; b", unusable(ReasonUnclosedAnswer)},
	{"both open, answer last", "<search> x <answer> a", unusable(ReasonUnclosedAnswer)},
	{"both open, search last", "<answer> a <search> x", unusable(ReasonUnclosedSearch)},
	{"search not opened", "x </search>", unusable(ReasonUnopenedSearch)},
	{"search not opened, then one", "</search> <search> x </search>", unusable(ReasonUnopenedSearch)},
	{"answer not opened", "a </answer>", unusable(ReasonUnopenedAnswer)},
	{"answer closed as search", "<answer> a </search>", unusable(ReasonUnopenedSearch)},
	{"empty query", "<search></search>", unusable(ReasonEmptyQuery)},
	{"blank query", "<search> \n </search>", unusable(ReasonEmptyQuery)},
	{"search within an answer", "<answer> a <search> b </answer>", unusable(ReasonTagInside)},
	{"answer within a search", "<search> a <answer> b </search>", unusable(ReasonTagInside)},
	{"thinking within a search", "<search> <think> x </think> </search>", unusable(ReasonTagInside)},
	{"observation within a search", "<search> a <information> b </search>", unusable(ReasonTagInside)},
}

func TestParse(t *testing.T) {
	for _, tc := range parseCases {
		if got := Parse(tc.text); !same(got, tc.want) {
			t.Errorf("%s: %q\n got %+v\nwant %+v", tc.name, tc.text, got, tc.want)
		}
	}
}

func same(a, b Action) bool {
	return a.Outcome == b.Outcome && a.Query == b.Query && a.Reason == b.Reason && slices.Equal(a.Answers, b.Answers)
}

// FuzzParse holds what is true of every text.
func FuzzParse(f *testing.F) {
	for _, tc := range parseCases {
		f.Add(tc.text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		a := Parse(text)
		if !utf8.ValidString(a.Query + a.Reason + strings.Join(a.Answers, "")) {
			t.Errorf("%+v is not UTF-8", a)
		}
		closing := strings.Contains(text, searchClose) || strings.Contains(text, answerClose)
		switch a.Outcome {
		case trace.OutcomeSearch:
			if a.Query == "" || a.Query != joinFields(a.Query) || a.Reason != "" || a.Answers != nil || !closing {
				t.Errorf("search %+v", a)
			}
		case trace.OutcomeAnswer:
			if a.Query != "" || a.Reason != "" || !closing || strings.Contains(strings.Join(a.Answers, ""), ";") {
				t.Errorf("answer %+v", a)
			}
		case trace.OutcomeUnusable:
			if a.Reason == "" || a.Query != "" || a.Answers != nil {
				t.Errorf("unusable %+v", a)
			}
		default:
			t.Errorf("outcome %q", a.Outcome)
		}
		// What stands behind the first closing tag is not read.
		if closing && !same(a, Parse(text+" <search> more </search> <answer> more </answer>")) {
			t.Errorf("%q: the tail is read", text)
		}
	})
}
