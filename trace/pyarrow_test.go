package trace

import (
	"bytes"
	"encoding/json"
	"os/exec"
	"path/filepath"
	"reflect"
	"testing"
)

// readWithPyarrow prints the rows as JSON lines in the form of the JSONL ledger
// (float32 values come as the float64 that they equal).
const readWithPyarrow = `
import json, sys
import pyarrow.parquet as pq
table = pq.read_table(sys.argv[1])
assert table.schema.metadata[b"memopd.ledger.schema"] == b"1", table.schema.metadata
for row in table.to_pylist():
    row["scores"] = {s["name"]: s["value"] for s in row["scores"]}
    print(json.dumps(row))
pq.write_table(table, sys.argv[2])
`

// pyarrow reads what is written here, and what it writes is read here.
func TestPyarrow(t *testing.T) {
	if err := exec.Command("python3", "-c", "import pyarrow.parquet").Run(); err != nil {
		t.Skip("python3 has no pyarrow: ", err)
	}
	var want []*Trajectory
	for seed := range uint64(20) {
		want = append(want, sample(seed))
	}
	want = append(want, cancelled())
	ours, theirs := filepath.Join(t.TempDir(), "ours.parquet"), filepath.Join(t.TempDir(), "theirs.parquet")
	if err := WriteAll(ours, want); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("python3", "-c", readWithPyarrow, ours, theirs)
	var complaint bytes.Buffer
	cmd.Stderr = &complaint
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v: %s", err, &complaint)
	}
	var got []*Trajectory
	for line := range bytes.Lines(out) {
		tr, err := parseLine(line, true)
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, tr)
	}
	if !reflect.DeepEqual(got, want) {
		t.Error("pyarrow read other records")
		a, _ := json.Marshal(got[0])
		b, _ := json.Marshal(want[0])
		t.Logf("the first:\n%s\n%s", a, b)
	}
	if got, err = ReadAll(theirs); err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("what pyarrow wrote reads otherwise: %v", err)
	}
}
