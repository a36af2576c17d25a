package datasets

import (
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
)

// The titles that answers rest on go through composing and task files.
func TestEvidenceReachesTaskFiles(t *testing.T) {
	dir := t.TempDir()
	plan := Plan{Inputs: []Input{{Path: "testdata/hotpotqa.json", Split: Test}, {Path: "testdata/nq_oracle.jsonl", Split: Test}}, Horizons: []int{1}}
	if _, err := plan.Run(dir); err != nil {
		t.Fatal(err)
	}
	got := map[string][]string{}
	for _, task := range collectTasks(t, filepath.Join(dir, TasksName(Test, 1))) {
		got[task.Questions[0].Question] = task.Questions[0].Evidence
	}
	want := map[string][]string{
		"Which river flows through the birthplace of Ada Brook?": {"Ada Brook", "Oakton & Vale"},
		"Who mapped the Wend?": nil, "who painted the wend": {"The Wend"},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("evidence %q, want %q", got, want)
	}
}

// Files have the column only with evidence in them, and are read with and without it.
func TestEvidenceColumnIsOptional(t *testing.T) {
	dir := t.TempDir()
	plain, with := sampleTasks(), sampleTasks()
	with[0].Questions[1].Evidence = []string{"Öakton", "Vale & Wend"}
	for name, tasks := range map[string][]Task{"plain": plain, "with": with} {
		path := filepath.Join(dir, name+".parquet")
		if _, err := WriteTasks(path, Test, tasks, nil); err != nil {
			t.Fatal(err)
		}
		if got := collectTasks(t, path); !reflect.DeepEqual(got, tasks) {
			t.Errorf("%s: read back %+v", name, got)
		}
	}
	if TaskSchema(false).HasField("evidence") || !TaskSchema(true).HasField("evidence") {
		t.Error("the column is not where it belongs")
	}
	row := `{"task_id": "t", "question_ids": ["a"], "questions": ["q"], "golds": [["x"]], "sources": ["nq"], "hops": [1], "evidence": [["A"], ["B"]]}`
	r, err := NewReader(strings.NewReader(row), "x", Options{})
	if err == nil {
		_, err = r.Next()
	}
	if err == nil || !strings.Contains(err.Error(), "field evidence: 2 values for 1 questions") {
		t.Errorf("evidence of another length: %v", err)
	}
}

// Of two files with one question, the one that knows the evidence gives it.
func TestComposerKeepsEvidenceOfDuplicates(t *testing.T) {
	ask := func(evidence ...string) Question {
		return Question{Question: "who", Golds: []string{"x"}, Evidence: evidence}
	}
	for name, c := range map[string]struct {
		first, second Question
		split         Split
		want          []string
	}{
		"the second":            {ask(), ask("B"), Dev, []string{"B"}},
		"the first":             {ask("A"), ask("B"), Dev, []string{"A"}},
		"the first, replaced":   {ask("A"), ask(), Test, []string{"A"}},
		"the second, replacing": {ask("A"), ask("B"), Test, []string{"B"}},
	} {
		composer := &Composer{}
		composer.Add(c.first, Dev)
		composer.Add(c.second, c.split)
		got := composer.Questions(c.split)
		if len(got) != 1 || !slices.Equal(got[0].Evidence, c.want) {
			t.Errorf("%s: %+v, want evidence %q", name, got, c.want)
		}
	}
}
