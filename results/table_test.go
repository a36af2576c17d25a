package results

import (
	"bytes"
	"encoding/json"
	"flag"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"testing"
)

var update = flag.Bool("update", false, "write the golden tables anew")

func tables(t *testing.T) map[string]*Table {
	t.Helper()
	records, err := Records(evaluation())
	if err != nil {
		t.Fatal(err)
	}
	summaries, err := Summarize(evaluation(), testOptions)
	if err != nil {
		t.Fatal(err)
	}
	run, err := Summarize(oneRun(evaluation()), testOptions)
	if err != nil {
		t.Fatal(err)
	}
	return map[string]*Table{
		"records":   RecordTable(records),
		"summary":   SummaryTable(summaries),
		"change":    ChangeTable(Comparisons(summaries), "ppo", PublishedNumbers()),
		"run":       SummaryTable(run),
		"runchange": ChangeTable(Comparisons(run), "ppo", nil),
		"unescaped": {Columns: []Column{{"a|b_%", false, []string{"a"}}}, Rows: [][]Cell{{Text(`x|"y"_&±`)}, {{Text: "n/a"}}}},
	}
}

func TestGoldenTables(t *testing.T) {
	forms := map[string]func(*Table, io.Writer) error{
		"txt": (*Table).WriteText, "md": (*Table).WriteMarkdown, "csv": (*Table).WriteCSV,
		"json": (*Table).WriteJSON, "tex": (*Table).WriteLaTeX,
	}
	for name, table := range tables(t) {
		for ext, write := range forms {
			var b bytes.Buffer
			if err := write(table, &b); err != nil {
				t.Fatal(err)
			}
			path := filepath.Join("testdata", name+"."+ext)
			if *update {
				if err := os.WriteFile(path, b.Bytes(), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(b.Bytes(), want) {
				t.Errorf("%s:\n%s\nwant\n%s", path, b.Bytes(), want)
			}
		}
	}
}

// The JSON of a table of records is a list of records.
func TestRecordTableJSON(t *testing.T) {
	records, err := Records(evaluation())
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if err := RecordTable(records).WriteJSON(&b); err != nil {
		t.Fatal(err)
	}
	var back []Record
	if err := json.Unmarshal(b.Bytes(), &back); err != nil || len(back) != len(records) {
		t.Fatalf("%d records back, %v", len(back), err)
	}
	for i := range back {
		if !reflect.DeepEqual(back[i], records[i]) {
			t.Errorf("record %d: %+v, want %+v", i, back[i], records[i])
		}
	}
	b.Reset()
	if err := RecordTable(nil).WriteJSON(&b); err != nil || json.Unmarshal(b.Bytes(), &back) != nil || len(back) != 0 {
		t.Errorf("no records: %s", b.Bytes())
	}
}

func TestPublished(t *testing.T) {
	keys := map[string]bool{}
	for _, m := range Metrics {
		keys[m.Key] = true
	}
	for _, p := range PublishedNumbers() {
		if p.Table == "" || p.Unit == "" || p.Value == 0 {
			t.Errorf("unfinished number %+v", p)
		}
		if p.Unit == UnitChange && (!keys[p.Metric] || p.Variant == "" || p.Baseline == "" || p.Horizon == "") {
			t.Errorf("no table can show %+v", p)
		}
	}
}
