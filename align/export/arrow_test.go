package export_test

import (
	"cmp"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"testing"

	"github.com/memopd/memopd-bench/align/export"
)

// pyarrowRead prints an Arrow file as JSON: schema metadata and rows.
const pyarrowRead = `
import json, sys
import pyarrow as pa
table = pa.ipc.open_file(sys.argv[1]).read_all()
print(json.dumps([{k.decode(): v.decode() for k, v in table.schema.metadata.items()}, table.to_pylist()]))
`

// arrowRow is a row as pyarrow prints it.
type arrowRow struct {
	IDs          []int32 `json:"ids"`
	Positions    []int32 `json:"positions"`
	BlockIDs     []int32 `json:"block_ids"`
	ActionMask   []bool  `json:"action_mask"`
	TeacherMask  []bool  `json:"teacher_mask"`
	PrefixLength int     `json:"prefix_length"`
	Blocks       []struct {
		Call, Start, End int
		Sees             []struct{ Start, End int }
	} `json:"blocks"`
	Actions []struct {
		Trajectory, Call, Token, ID, Index, Predict int
		Teacher                                     bool
		LogProb                                     *float32 `json:"log_prob"`
		Advantage                                   *float32 `json:"advantage"`
	} `json:"actions"`
	Trajectories []struct {
		ID     string  `json:"id"`
		TaskID string  `json:"task_id"`
		Reward float64 `json:"reward"`
	} `json:"trajectories"`
}

// pyarrow reads the Arrow file, and what it reads is what was written.
func TestPyarrowReadsArrow(t *testing.T) {
	python := cmp.Or(os.Getenv("PEERS_PYTHON"), "python3")
	if out, err := exec.Command(python, "-c", "import pyarrow").CombinedOutput(); err != nil {
		t.Skipf("%s has no pyarrow (PEERS_PYTHON names another): %v %s", python, err, out)
	}
	all := some(t)
	for _, layout := range []string{"aligned", "calls", "persistent"} {
		path := filepath.Join(t.TempDir(), "b.arrow")
		want := build(t, layout, all)
		if err := export.WriteArrow(path, want); err != nil {
			t.Fatal(err)
		}
		cmd := exec.Command(python, "-c", pyarrowRead, path)
		cmd.Stderr = os.Stderr
		out, err := cmd.Output()
		if err != nil {
			t.Fatal(err)
		}
		var metadata map[string]string
		var rows []arrowRow
		if err := json.Unmarshal(out, &[]any{&metadata, &rows}); err != nil {
			t.Fatal(err)
		}
		if metadata["layout"] != layout || metadata["memopd.packed.schema"] != "1" || len(rows) != len(want.Sequences) {
			t.Fatalf("%s: metadata %v, %d rows", layout, metadata, len(rows))
		}
		for i, row := range rows {
			sameRow(t, row, want, want.Sequences[i])
		}
	}
}

func sameRow(t *testing.T, row arrowRow, b *export.Batch, want export.Sequence) {
	t.Helper()
	for name, pair := range map[string][2]any{
		"ids": {row.IDs, want.IDs}, "positions": {row.Positions, want.Positions}, "prefix": {row.PrefixLength, want.PrefixLength},
		"action mask": {row.ActionMask, want.ActionMask()}, "teacher mask": {row.TeacherMask, want.TeacherMask()},
	} {
		if !reflect.DeepEqual(pair[0], pair[1]) {
			t.Errorf("%s: %s is %v, want %v", b.Layout, name, pair[0], pair[1])
		}
	}
	for q := range want.IDs {
		block := row.Blocks[row.BlockIDs[q]]
		for k := range want.IDs {
			sees := block.Start <= k && k <= q
			for _, r := range block.Sees {
				sees = sees || r.Start <= k && k < r.End
			}
			if sees != want.Visible(q, k) {
				t.Fatalf("%s: by the table, that %d sees %d is %v", b.Layout, q, k, sees)
			}
		}
	}
	for i, a := range want.Packed.Actions {
		got := row.Actions[i]
		if got.Call != a.Call || got.Token != a.Token || got.ID != int(a.ID) || got.Index != a.Index || got.Predict != a.Predict || got.Teacher != a.Teacher {
			t.Errorf("%s: action %d is %+v, want %+v", b.Layout, i, got, a)
		}
		x := b.Trajectories[want.Trajectories[a.Trajectory]]
		if y := row.Trajectories[got.Trajectory]; y.ID != x.ID || y.TaskID != x.TaskID || y.Reward != x.Reward {
			t.Errorf("%s: action %d is of %+v, want %+v", b.Layout, i, y, x)
		}
		for name, value := range map[string]*float32{export.LogProb: got.LogProb, "advantage": got.Advantage} {
			w := want.Columns[name][i]
			if (value == nil) != (w != w) || value != nil && *value != w {
				t.Errorf("%s: %s of action %d is %v, want %v", b.Layout, name, i, value, w)
			}
		}
	}
}
