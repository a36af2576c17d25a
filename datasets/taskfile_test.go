package datasets

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

func sampleTasks() []Task {
	return []Task{
		{ID: "test/q2/0", Questions: []Question{
			{ID: "a", Source: "nq", Question: "who painted the Wend", Golds: []string{"Ada Brook", "A. Brook"}, Hops: 1},
			{ID: "b", Source: "hotpotqa", Question: "Where is Öakton?", Golds: []string{"Vale"}, Hops: 2}}},
		{ID: "t1", World: "w3", Questions: []Question{
			{ID: "w3/x/birth", Source: "miniwiki", World: "w3", Question: "x birth", Golds: []string{"y"}, Hops: 1}}},
	}
}

func collectTasks(t *testing.T, path string) []Task {
	t.Helper()
	var out []Task
	for task, err := range ReadTasks(path, Options{}) {
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, task)
	}
	return out
}

func TestTaskFileRoundTrip(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "a.parquet")
	sum, err := WriteTasks(path, Test, sampleTasks(), nil)
	if err != nil {
		t.Fatal(err)
	}
	if got := collectTasks(t, path); !reflect.DeepEqual(got, sampleTasks()) {
		t.Errorf("read back %+v", got)
	}
	if got := extraInfo(t, path); got != "[{test 0} {test 1}]" {
		t.Errorf("extra_info is %s", got)
	}
	read, err := SumFile(path)
	if read.Records = 2; err != nil || read != sum {
		t.Errorf("the file is %+v, the writer says %+v: %v", read, sum, err)
	}
	again, err := WriteTasks(filepath.Join(dir, "b.parquet"), Test, sampleTasks(), nil)
	if err != nil || again.SHA256 != sum.SHA256 {
		t.Errorf("writing again gives other bytes: %v", err)
	}
	left, _ := filepath.Glob(filepath.Join(dir, ".*"))
	if len(left) != 0 {
		t.Errorf("left over: %q", left)
	}
}

// extraInfo reads a column that is there for others' programs.
func extraInfo(t *testing.T, path string) string {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	p, err := openParquet(f)
	if err != nil {
		t.Fatal(err)
	}
	type info struct {
		Split string
		Index int
	}
	var out []info
	for {
		raw, err := p.next()
		if err == io.EOF {
			return fmt.Sprint(out)
		}
		var row struct {
			Extra info `json:"extra_info"`
		}
		if err != nil || json.Unmarshal(raw, &row) != nil {
			t.Fatal(err)
		}
		out = append(out, row.Extra)
	}
}

func TestTaskFileOfManyRowGroups(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.parquet")
	var tasks []Task
	for i, q := range made("nq", 0, 2*tasksPerRowGroup+7) {
		tasks = append(tasks, Task{ID: fmt.Sprint("t", i), Questions: []Question{q}})
	}
	if sum, err := WriteTasks(path, Train, tasks, nil); err != nil || sum.Records != len(tasks) {
		t.Fatal(sum, err)
	}
	if got := collectTasks(t, path); !reflect.DeepEqual(got, tasks) {
		t.Errorf("%d tasks read back differ from %d", len(got), len(tasks))
	}
}

func TestTaskWriterAborts(t *testing.T) {
	dir := t.TempDir()
	if _, err := WriteTasks(filepath.Join(dir, "a.parquet"), Test, []Task{{ID: "t"}}, nil); err == nil {
		t.Error("a task without questions gave no error")
	}
	if left, _ := os.ReadDir(dir); len(left) != 0 {
		t.Errorf("left over: %v", left)
	}
	if _, err := WriteTasks(filepath.Join(dir, "no", "a.parquet"), Test, nil, nil); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("no folder: %v", err)
	}
}

func TestReadTasksRefusesSingleQuestions(t *testing.T) {
	for _, err := range ReadTasks("testdata/nq.jsonl", Options{}) {
		if err == nil || !strings.Contains(err.Error(), "single questions") {
			t.Errorf("error %v", err)
		}
	}
}

func TestBrokenParquet(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.parquet")
	if _, err := WriteTasks(path, Test, sampleTasks(), nil); err != nil {
		t.Fatal(err)
	}
	whole, _ := os.ReadFile(path)
	for cut := 4; cut < len(whole); cut += 97 {
		broken := append([]byte(nil), whole...)
		broken[cut] ^= 0xff
		for _, content := range [][]byte{whole[:cut], broken} {
			if err := os.WriteFile(path, content, 0o644); err != nil {
				t.Fatal(err)
			}
			var err error
			for _, err = range ReadTasks(path, Options{}) {
			}
			if len(content) == cut && err == nil {
				t.Errorf("a file cut at %d gave no error", cut)
			}
		}
	}
}

// MEM1's own test file: every question comes back, those that hold its
// separator too, and the golds are its targets.
func TestSharedMEM1Tasks(t *testing.T) {
	tasks := collectTasks(t, sharedFile(t, "mem1/nq_hotpotqa_test_multi_2.parquet"))
	if len(tasks) != 5507 || tasks[0].ID != "mem1/0" || tasks[5506].Questions[1].ID != "hotpotqa/test/7403" {
		t.Fatalf("%d tasks, the last is %+v", len(tasks), tasks[len(tasks)-1])
	}
	if q := tasks[1].Questions; q[0].Question != "which mode is used for short wave broadcast service?" || q[0].Golds[1] != "MFSK" || q[1].Golds[0] != "till September" {
		t.Errorf("second task is %+v", q)
	}
	separators := 0
	for _, task := range tasks {
		for _, q := range task.Questions {
			if strings.Contains(q.Question, "; ") {
				separators++
			}
			if !strings.HasSuffix(q.Question, "?") {
				t.Errorf("question %q is cut", q.Question)
			}
		}
	}
	if separators != 4 {
		t.Errorf("%d questions hold the separator, want 4", separators)
	}
}

// pyarrow reads what the writer wrote, by another implementation of Parquet.
func TestPyarrowReadsTasks(t *testing.T) {
	python := os.Getenv("PEERS_PYTHON")
	if python == "" {
		python = "python3"
	}
	if out, err := exec.Command(python, "-c", "import pyarrow").CombinedOutput(); err != nil {
		t.Skipf("no Python with pyarrow (set PEERS_PYTHON): %v %s", err, out)
	}
	path := filepath.Join(t.TempDir(), "a.parquet")
	if _, err := WriteTasks(path, Test, sampleTasks(), nil); err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command(python, "testdata/read_tasks.py", path).Output()
	if err != nil {
		t.Fatal(err)
	}
	var got struct {
		Columns map[string]string `json:"columns"`
		Schema  string            `json:"schema_version"`
		Rows    []map[string]any  `json:"rows"`
	}
	if err := json.Unmarshal(out, &got); err != nil {
		t.Fatal(err)
	}
	if len(got.Columns) != 12 || got.Schema != TaskSchemaVersion || len(got.Rows) != 2 {
		t.Fatalf("%d columns, schema %q, %d rows", len(got.Columns), got.Schema, len(got.Rows))
	}
	row, _ := json.Marshal(got.Rows[0])
	want := `{"ability":"fact-reasoning","data_source":"hotpotqa+nq","extra_info":{"index":0,"split":"test"},` +
		`"golds":[["Ada Brook","A. Brook"],["Vale"]],"hops":[1,2],` +
		`"prompt":[{"content":"Answer the following questions: who painted the Wend; Where is Öakton?\n","role":"user"}],` +
		`"question_ids":["a","b"],"questions":["who painted the Wend","Where is Öakton?"],` +
		`"reward_model":{"ground_truth":{"target":[["Ada Brook","A. Brook"],["Vale"]]},"style":"rule"},` +
		`"sources":["nq","hotpotqa"],"task_id":"test/q2/0","world":""}`
	if string(row) != want {
		t.Errorf("first row is\n%s, want\n%s", row, want)
	}
}
