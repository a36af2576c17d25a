package miniwiki

import (
	"fmt"
	"path/filepath"
	"testing"

	"github.com/memopd/memopd-bench/datasets"
)

func TestBuild(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "wiki")
	o := BuildOptions{Config: Config{Seed: 4, TrainWorlds: 3, DevWorlds: 2, TestWorlds: 2}, Horizons: []int{1, 8}, TasksPerFile: 20}
	m, err := Build(dir, o)
	if err != nil {
		t.Fatal(err)
	}
	if len(m.Outputs) != 7 || m.Outputs[0].Path != datasets.DocumentsName || m.Outputs[0].Records != 7*120 || m.Seed != 4 {
		t.Errorf("manifest %+v", m)
	}
	read, err := datasets.ReadManifest(dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := read.Verify(dir); err != nil {
		t.Error(err)
	}
	wiki, _ := New(o.Config)
	want, _ := wiki.Compose(datasets.Test, 8, 20)
	var got []datasets.Task
	for task, err := range datasets.ReadTasks(filepath.Join(dir, datasets.TasksName(datasets.Test, 8)), datasets.Options{}) {
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, task)
	}
	if fmt.Sprintf("%+v", got) != fmt.Sprintf("%+v", want) {
		t.Errorf("read back %+v", got)
	}
	again, err := Build(filepath.Join(t.TempDir(), "again"), o)
	if err != nil || fmt.Sprint(again.Outputs) != fmt.Sprint(m.Outputs) {
		t.Errorf("building again gives other files: %v", err)
	}
	o.Horizons = nil
	if _, err := Build(dir, o); err == nil {
		t.Error("no horizons gave no error")
	}
}
