package trace

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

// FuzzJSONL reads any bytes as a ledger: an error or records that are valid and
// are written and read back alike.
func FuzzJSONL(f *testing.F) {
	for seed := range uint64(4) {
		line, err := json.Marshal(sample(seed))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(append(line, '\n'))
		f.Add(bytes.ReplaceAll(append(line, '\n'), []byte(`"call`), []byte(`"CALL`)))
	}
	f.Add([]byte("{\"schema\":1,\"id\":\"a\",\"task_id\":\"b\",\"agent\":\"c\",\"end\":\"cancelled\",\"prefix\":[],\"calls\":null}\n"))
	f.Add([]byte("null\n"))
	f.Add([]byte("{\"schema\":1}"))
	f.Fuzz(func(t *testing.T, data []byte) {
		dir := t.TempDir()
		path := filepath.Join(dir, "in.jsonl")
		if err := os.WriteFile(path, data, 0o644); err != nil {
			t.Fatal(err)
		}
		all, err := ReadAll(path)
		if err != nil {
			if !strings.Contains(err.Error(), path) {
				t.Errorf("%v: does not name the file", err)
			}
			return
		}
		for _, name := range forms {
			again := filepath.Join(dir, name)
			if err := WriteAll(again, all); err != nil {
				t.Fatal(err)
			}
			if got, err := ReadAll(again); err != nil || !reflect.DeepEqual(got, all) {
				t.Errorf("%s: read back otherwise: %v", name, err)
			}
		}
	})
}
