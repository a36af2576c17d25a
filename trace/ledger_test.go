package trace

import (
	"bytes"
	"errors"
	"io"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

var forms = []string{"ledger.jsonl", "ledger.parquet"}

func TestRoundTrip(t *testing.T) {
	var want []*Trajectory
	for seed := range uint64(300) { // several reads, see rowsPerRead
		want = append(want, sample(seed))
	}
	want = append(want, cancelled(), sample(1000))
	want[3].Calls[0].LogProbs = make([]float32, len(want[3].Calls[0].Output))
	want[3].Calls[0].LogProbs[0] = -math.SmallestNonzeroFloat32
	want[4].Sampler.Seed = math.MaxUint64
	for _, name := range forms {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), name)
			if err := WriteAll(path, want); err != nil {
				t.Fatal(err)
			}
			got, err := ReadAll(path)
			if err != nil {
				t.Fatal(err)
			}
			if len(got) != len(want) {
				t.Fatalf("%d trajectories, want %d", len(got), len(want))
			}
			for i := range want {
				if !reflect.DeepEqual(got[i], want[i]) {
					t.Fatalf("trajectory %d:\n got %+v\nwant %+v", i, got[i], want[i])
				}
			}
		})
	}
}

func TestEmptyLedger(t *testing.T) {
	for _, name := range forms {
		path := filepath.Join(t.TempDir(), name)
		if err := WriteAll(path, nil); err != nil {
			t.Fatal(err)
		}
		if got, err := ReadAll(path); err != nil || len(got) != 0 {
			t.Errorf("%s: %d trajectories, %v", name, len(got), err)
		}
	}
}

func TestRowGroups(t *testing.T) {
	path := filepath.Join(t.TempDir(), "l.parquet")
	w, err := Create(path)
	if err != nil {
		t.Fatal(err)
	}
	w.(*parquetWriter).limit = 100
	var want []*Trajectory
	for seed := range uint64(20) {
		want = append(want, sample(seed))
		if err := w.Write(want[seed]); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	r, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if n := r.(*parquetReader).file.NumRowGroups(); n < 5 || n > 15 {
		t.Errorf("%d row groups", n)
	}
	got, err := ReadAll(path)
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("read back otherwise: %v", err)
	}
}

// A line outgrows any buffer.
func TestLongLine(t *testing.T) {
	big := cancelled()
	for i := range int32(1 << 17) {
		big.Prefix = append(big.Prefix, i)
	}
	path := filepath.Join(t.TempDir(), "l.jsonl")
	want := []*Trajectory{sample(1), big, sample(2)}
	if err := WriteAll(path, want); err != nil {
		t.Fatal(err)
	}
	if got, err := ReadAll(path); err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("read back otherwise: %v", err)
	}
}

func TestWriteIsAtomic(t *testing.T) {
	for _, name := range forms {
		dir := t.TempDir()
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte("before"), 0o644); err != nil {
			t.Fatal(err)
		}
		w, err := Create(path)
		if err != nil {
			t.Fatal(err)
		}
		if err := w.Write(sample(1)); err != nil {
			t.Fatal(err)
		}
		if got, _ := os.ReadFile(path); string(got) != "before" {
			t.Errorf("%s: changed before Close", name)
		}
		if err := w.Discard(); err != nil {
			t.Error(err)
		}
		if got, _ := os.ReadFile(path); string(got) != "before" {
			t.Errorf("%s: changed by Discard", name)
		}
		if err := w.Close(); err == nil {
			t.Errorf("%s: Close after Discard gave no error", name)
		}
		if left, _ := os.ReadDir(dir); len(left) != 1 {
			t.Errorf("%s: %d files left", name, len(left))
		}
	}
}

func TestDiscardAfterClose(t *testing.T) {
	for _, name := range forms {
		path := filepath.Join(t.TempDir(), name)
		w, err := Create(path)
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(w.Write(sample(1)), w.Close(), w.Discard()); err != nil {
			t.Error(err)
		}
		if got, err := ReadAll(path); err != nil || len(got) != 1 {
			t.Errorf("%s: %d trajectories, %v", name, len(got), err)
		}
	}
}

// The same trajectories give the same bytes, whatever the order of a map.
func TestSameBytes(t *testing.T) {
	tr := sample(1)
	for _, name := range []string{"a", "b", "c", "d", "e", "f"} {
		tr.Scores[name] = 1
	}
	for _, name := range forms {
		var first []byte
		for range 4 {
			path := filepath.Join(t.TempDir(), name)
			if err := WriteAll(path, []*Trajectory{tr}); err != nil {
				t.Fatal(err)
			}
			b, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if first == nil {
				first = b
			}
			if !bytes.Equal(b, first) {
				t.Errorf("%s: other bytes", name)
			}
		}
	}
}

func TestWriteRefusesInvalid(t *testing.T) {
	for _, name := range forms {
		w, err := Create(filepath.Join(t.TempDir(), name))
		if err != nil {
			t.Fatal(err)
		}
		bad := sample(1)
		bad.Calls[0].Context[0]++
		var field *FieldError
		if err := w.Write(bad); !errors.As(err, &field) {
			t.Errorf("%s: got %v", name, err)
		}
		w.Discard()
	}
}

func TestOpenByExtension(t *testing.T) {
	dir := t.TempDir()
	if _, err := Create(filepath.Join(dir, "ledger.csv")); err == nil {
		t.Error("made a .csv")
	}
	if _, err := Open(filepath.Join(dir, "ledger.csv")); err == nil {
		t.Error("opened a .csv")
	}
	for _, name := range forms {
		if _, err := Open(filepath.Join(dir, name)); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

// damaged writes two trajectories, changes the bytes, and reads them.
func damaged(t *testing.T, name string, change func([]byte) []byte) error {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := WriteAll(path, []*Trajectory{sample(1), sample(2)}); err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, change(b), 0o644); err != nil {
		t.Fatal(err)
	}
	_, err = ReadAll(path)
	if err != nil && !strings.Contains(err.Error(), path) {
		t.Errorf("%v: does not name the file", err)
	}
	return err
}

func TestJSONLDamage(t *testing.T) {
	replace := func(from, to string) func([]byte) []byte {
		return func(b []byte) []byte {
			i := bytes.LastIndex(b, []byte(from))
			return append(append(append([]byte{}, b[:i]...), to...), b[i+len(from):]...)
		}
	}
	for _, tc := range []struct {
		name   string
		change func([]byte) []byte
		is     error
		says   string
	}{
		{"torn line", func(b []byte) []byte { return b[:len(b)-20] }, ErrTorn, ":2:"},
		{"last newline gone", func(b []byte) []byte { return b[:len(b)-1] }, ErrTorn, ":2:"},
		{"other schema", replace(`{"schema":1`, `{"schema":2`), ErrSchema, ":2:"},
		{"no schema", replace(`{"schema":1,`, `{`), ErrSchema, ":2:"},
		{"unknown field", replace(`{"schema":1,`, `{"schema":1,"colour":3,`), nil, "colour"},
		{"no JSON", func(b []byte) []byte { return append(b, "\n"...) }, nil, ":3:"},
		{"two on a line", replace("}\n", "} {}\n"), nil, ":2:"},
		{"invalid", replace(`"offset":0`, `"offset":7`), nil, "spans"},
	} {
		err := damaged(t, "l.jsonl", tc.change)
		if err == nil || tc.is != nil && !errors.Is(err, tc.is) || !strings.Contains(err.Error(), tc.says) {
			t.Errorf("%s: got %v", tc.name, err)
		}
	}
}

func TestParquetDamage(t *testing.T) {
	if err := damaged(t, "l.parquet", func(b []byte) []byte { return b[:len(b)/2] }); err == nil {
		t.Error("half a file was read")
	}
	if err := damaged(t, "l.parquet", func(b []byte) []byte { return nil }); err == nil {
		t.Error("an empty file was read")
	}
	other := func(b []byte) []byte {
		i := bytes.LastIndex(b, []byte(schemaKey))
		// The value follows the key: a field header, a length, then the digit.
		at := i + len(schemaKey) + bytes.IndexByte(b[i+len(schemaKey):], '1')
		b[at] = '9'
		return b
	}
	if err := damaged(t, "l.parquet", other); !errors.Is(err, ErrSchema) {
		t.Errorf("other schema: got %v", err)
	}
	foreign := func(b []byte) []byte {
		return bytes.ReplaceAll(b, []byte(schemaKey), []byte("memopd.ledger.another")[:len(schemaKey)])
	}
	if err := damaged(t, "l.parquet", foreign); !errors.Is(err, ErrSchema) {
		t.Errorf("no schema: got %v", err)
	}
}

// A flipped byte never panics. Those tried here are noticed or do no harm; Parquet
// does not promise that (of 8,900 flips two gave other records).
func TestParquetFlippedBytes(t *testing.T) {
	path := filepath.Join(t.TempDir(), "l.parquet")
	want := []*Trajectory{sample(1), sample(2)}
	if err := WriteAll(path, want); err != nil {
		t.Fatal(err)
	}
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	refused := 0
	for at := 0; at < len(whole); at += 211 {
		b := bytes.Clone(whole)
		b[at] ^= 0x55
		if err := os.WriteFile(path, b, 0o644); err != nil {
			t.Fatal(err)
		}
		got, err := ReadAll(path)
		if err != nil {
			refused++
		} else if !reflect.DeepEqual(got, want) {
			t.Errorf("byte %d flipped: other records without an error", at)
		}
	}
	if refused == 0 {
		t.Error("no flipped byte was noticed")
	}
}

func TestNextAfterEnd(t *testing.T) {
	for _, name := range forms {
		path := filepath.Join(t.TempDir(), name)
		if err := WriteAll(path, []*Trajectory{sample(1)}); err != nil {
			t.Fatal(err)
		}
		r, err := Open(path)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := r.Next(); err != nil {
			t.Fatal(err)
		}
		for range 2 {
			if _, err := r.Next(); err != io.EOF {
				t.Errorf("%s: got %v at the end", name, err)
			}
		}
		r.Close()
	}
}
