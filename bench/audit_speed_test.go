package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
)

// bench audit speed measures every combination in all ways, memory in processes of
// their own, and prints rows of exactly these keys.
func TestAuditSpeed(t *testing.T) {
	w := newWorkplace(t)
	line := "audit speed --model mini/student --prefix 30,40 --calls 2 --call-tokens 16 --rounds 1 --warmup 0"
	if runtime.GOOS != "linux" {
		line += " --memory=false"
	}
	var rows []map[string]float64
	if err := json.Unmarshal([]byte(w.mustBench(line+" --json --out speed/mini")), &rows); err != nil {
		t.Fatal(err)
	}
	keys := []string{"prefix", "calls", "call_tokens", "rows_s", "concat_s", "dense_s", "packed_s", "ratio", "ideal"}
	if len(rows) != 2 || rows[0]["prefix"] != 30 || rows[1]["prefix"] != 40 {
		t.Fatalf("rows: %v", rows)
	}
	for _, row := range rows {
		for _, key := range keys {
			if !(row[key] > 0) {
				t.Errorf("%s is %v", key, row[key])
			}
		}
		if len(row) != len(keys) || !(row["ideal"] > 1) {
			t.Errorf("row %v, want the keys %v", row, keys)
		}
	}
	var record struct {
		Command []string
		Results []struct {
			Ways []struct {
				Way    string
				Memory int64 `json:"memory_bytes"`
			}
		}
	}
	data, err := os.ReadFile(filepath.Join(w.dir, "speed/mini.json"))
	if err == nil {
		err = json.Unmarshal(data, &record)
	}
	if err != nil || !slices.Contains(record.Command, "--out") || len(record.Results) != 2 {
		t.Errorf("record %+v, %v", record, err)
	}
	for _, way := range record.Results[0].Ways {
		if runtime.GOOS == "linux" && way.Memory <= 0 {
			t.Errorf("%s takes %d bytes", way.Way, way.Memory)
		}
	}
	table, err := os.ReadFile(filepath.Join(w.dir, "speed/mini.md"))
	if err != nil || !strings.Contains(string(table), "MiB") || !strings.Contains(string(table), "audit speed --model mini/student") {
		t.Errorf("table %s, %v", table, err)
	}
	if _, stderr, status := w.bench("audit speed --model mini/student --prefix 30 --calls 2 --call-tokens 16 --tolerance 1e-12 --memory=false"); status != 1 || !strings.Contains(stderr, "nothing is timed") {
		t.Errorf("beyond the tolerance: exit %d, %s", status, stderr)
	}
	if _, stderr, status := w.bench("audit speed --model nothing-like-it"); status != 1 || !strings.Contains(stderr, "nothing-like-it") {
		t.Errorf("unknown model: exit %d, %s", status, stderr)
	}
}
