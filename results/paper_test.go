package results

import (
	"slices"
	"strings"
	"testing"
)

func paperTables(t *testing.T, e *Evidence) map[string]PaperTable {
	t.Helper()
	list, err := PaperTables(e)
	if err != nil {
		t.Fatal(err)
	}
	tables := map[string]PaperTable{}
	for _, p := range list {
		tables[p.Name] = p
	}
	if len(tables) != 10 {
		t.Fatalf("%d tables", len(tables))
	}
	return tables
}

// cellOf finds what stands under a key in the row that holds all the given texts.
func cellOf(p PaperTable, key string, holds ...string) (any, bool) {
	for _, t := range p.Tables {
		at := slices.Index(t.keys(), key)
		for _, row := range t.Rows {
			fits := at >= 0
			for _, text := range holds {
				fits = fits && slices.ContainsFunc(row, func(c Cell) bool { return c.Text == text })
			}
			if fits {
				return t.values(row)[at], true
			}
		}
	}
	return nil, false
}

// Every number of the paper stands in its table, in a row or column called
// published, and in no other.
func TestPublishedNumbersAreShown(t *testing.T) {
	e, err := LoadEvidence(evidenceFolder)
	if err != nil {
		t.Fatal(err)
	}
	tables := paperTables(t, e)
	key := map[string]string{
		"sampled_action_tokens": "tokens", "p99_logprob_error": "p99", "p99_logprob_difference": "p99", "top1_flips": "flips", "false_ppo_clips": "false_clips_percent",
		"top1_agreement_later_calls": "top1_agreement_percent", "mean_kl": "mean_KL", "spurious_positions": "spurious", "actor_update_speedup": "ratio",
	}
	name := map[string]string{"packed": "aligned", "positions_only": "positions", "action_mask": "aligned", "trajectory_mask": "trajectory-mask", "response_mask": "response-mask"}
	for _, n := range PublishedNumbers() {
		at, holds := key[n.Metric], []string{"published " + n.Table}
		switch {
		case n.Table == "T5":
			at, holds = "published_percent", []string{n.Variant + " against " + n.Baseline, map[string]string{"em": "EM (squad)", "f1": "F1 (squad)"}[n.Metric]}
		case n.Unit == UnitChange:
			at, holds = n.Metric+"_percent", append(holds, n.Horizon, n.Variant)
		case n.Table == "T3b":
			holds = append(holds, "after")
		case at == "":
			at = n.Metric
			fallthrough
		default:
			if v := n.Variant; v != "" && n.Table != "T8" {
				if name[v] != "" {
					v = name[v]
				}
				holds = append(holds, v)
			}
		}
		if got, found := cellOf(tables[strings.ToLower(n.Table)], at, holds...); !found || got != n.Value {
			t.Errorf("%+v: %s of %q is %v, %v", n, at, holds, got, found)
		}
	}
}

// A row says that it is measured or published, and what is measured has its number of pairs.
func TestSources(t *testing.T) {
	e, err := LoadEvidence(evidenceFolder)
	if err != nil {
		t.Fatal(err)
	}
	rows := 0
	for _, p := range paperTables(t, e) {
		for _, table := range p.Tables {
			at := slices.IndexFunc(table.Columns, func(c Column) bool { return c.Head == "source" })
			for _, row := range table.Rows {
				if len(row) != len(table.Columns) {
					t.Errorf("%s: %d cells in %d columns", p.Name, len(row), len(table.Columns))
				}
				if at < 0 {
					continue
				}
				rows++
				source := row[at].Text
				if published := source == "published "+strings.Replace(strings.ToUpper(p.Name), "B", "b", 1); !published && source != "measured" {
					t.Errorf("%s: source %q", p.Name, source)
				} else if published && row[0].Text != "paper" && row[at+1].Text != "" {
					t.Errorf("%s: a published row has pairs: %v", p.Name, texts(row))
				}
			}
		}
	}
	if rows < 40 {
		t.Errorf("%d rows with a source", rows)
	}
}

// The start is a row of each table of an evaluation, the first of its horizon;
// variants beyond the paper are in T9 alone.
func TestStartIsShown(t *testing.T) {
	e, err := LoadEvidence(evidenceFolder)
	if err != nil {
		t.Fatal(err)
	}
	tables := paperTables(t, e)
	for name, want := range map[string]string{
		"t1": "q2 sft, q2 ppo, q2 persistent, q2 memopd, q2 teacher, q8 sft, q8 ppo, q8 persistent, q8 memopd, q8 teacher, q16 sft, q16 ppo, q16 persistent, q16 memopd, q16 teacher",
		"t2": "wikirag sft, wikirag ppo, wikirag persistent, wikirag memopd, wikirag teacher",
		"t9": "q2 sft, q2 ppo, q2 memopd, q2 memopd-topk, q2 ppo-mem1, q8 sft, q8 ppo, q8 memopd, q8 memopd-topk, q16 sft, q16 ppo, q16 memopd, q16 memopd-topk, wikirag sft, wikirag ppo, wikirag memopd, wikirag memopd-topk",
	} {
		var got []string
		for _, row := range tables[name].Tables[0].Rows {
			got = append(got, row[0].Text+" "+row[1].Text)
		}
		if strings.Join(got, ", ") != want {
			t.Errorf("%s: %s, want %s", name, strings.Join(got, ", "), want)
		}
	}
	if over, found := cellOf(tables["t5"], "over", "sft against ppo", "F1 (squad)"); !found || over != "tasks" {
		t.Errorf("T5: the start is compared over %v, %v", over, found)
	}
}

// Where evidence is lacking the tables say what is.
func TestPaperTablesWithoutEvidence(t *testing.T) {
	for name, p := range paperTables(t, &Evidence{}) {
		if len(p.Tables) != 1 || len(p.Tables[0].Rows) > 0 || len(p.Tables[0].Notes) != 1 || !strings.HasPrefix(p.Tables[0].Notes[0], "No evidence: ") {
			t.Errorf("%s: %+v", name, p.Tables)
		}
	}
	files, err := TableFiles([]PaperTable{without("t1", "Title", "nothing")})
	if err != nil || len(files) != 4 {
		t.Errorf("%d files, %v", len(files), err)
	}
	for _, f := range files {
		if !strings.Contains(string(f.Data), "No evidence: nothing.") {
			t.Errorf("%s: %q", f.Name, f.Data)
		}
	}
	tables := paperTables(t, &Evidence{Rows: []TaskRow{taskRow("memopd", 0, "q2", "a", 1, 1, 1, 1), taskRow("sft", 0, "q2", "a", 1, 1, 1, 1)}})
	notes := strings.Join(append(tables["t1"].Tables[0].Notes, tables["t1"].Tables[1].Notes...), "\n")
	for _, want := range []string{"Not evaluated on q2: ppo, persistent.", "Not evaluated on q8: sft, ppo, persistent, memopd.", "No change: ppo was not evaluated on q2."} {
		if !strings.Contains(notes, want) {
			t.Errorf("T1's notes lack %q:\n%s", want, notes)
		}
	}
	without := []TaskRow{taskRow("memopd", 0, "q2", "a", 1, 1, 1, 1), taskRow("ppo", 0, "q2", "a", 1, 1, 1, 1)}
	if n := paperTables(t, &Evidence{Rows: without})["t5"].Tables[0].Notes; len(n) != 4 || n[0] != "No change: persistent was not evaluated on q2." || n[1] != "No change: sft was not evaluated on q2." {
		t.Errorf("T5 without persistent: %q", n)
	}
	few := &Evidence{Rows: []TaskRow{taskRow("ppo", 0, "q2", "a", 1, 1, 1, 1)}, Manifest: Reproduction{Seeds: []int64{0, 1, 2}}}
	if n := paperTables(t, few)["t1"].Tables[0].Notes; !slices.Contains(n, "Not evaluated on q2: sft, 2 of 3 seeds of ppo, persistent, memopd.") {
		t.Errorf("seeds that lack: %q", n)
	}
	if n := tables["t5"].Tables[0].Notes; !strings.Contains(n[0], "No evidence") {
		t.Errorf("T5: %v", n)
	}
}
