package gguf

import (
	"bytes"
	"encoding/binary"
	"math"
	"math/rand/v2"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
)

const blocks = "testdata/blocks.gguf" // scripts/peers/gguf_vectors.py

func open(t *testing.T) *File {
	t.Helper()
	f, err := Open(blocks)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return f
}

// TestDequantise holds every type's values to those of llama.cpp's gguf package, bit by bit.
func TestDequantise(t *testing.T) {
	f := open(t)
	want, err := os.ReadFile("testdata/blocks.f32")
	if err != nil {
		t.Fatal(err)
	}
	seen := map[Type]bool{}
	for _, tensor := range f.Tensors {
		got, err := f.Rows(tensor.Name, 0, tensor.rows())
		if err != nil {
			t.Fatal(err)
		}
		if !strings.EqualFold(tensor.Type.String(), tensor.Name) {
			t.Errorf("%s is of type %v", tensor.Name, tensor.Type)
		}
		seen[tensor.Type] = true
		for i, v := range got {
			w := math.Float32frombits(binary.LittleEndian.Uint32(want[4*i:]))
			if v != w && !(v != v && w != w) {
				t.Errorf("%s: value %d is %v, want %v", tensor.Name, i, v, w)
				break
			}
		}
		want = want[4*len(got):]
	}
	if len(want) != 0 || len(seen) != len(types) {
		t.Errorf("%d bytes left, %d of %d types", len(want), len(seen), len(types))
	}
}

// TestRows reads the middle of a tensor.
func TestRows(t *testing.T) {
	f := open(t)
	for _, name := range []string{"q4_0", "q6_k"} {
		all, err := f.Rows(name, 0, 4)
		if err != nil {
			t.Fatal(err)
		}
		two, err := f.Rows(name, 1, 2)
		if err != nil || !slices.Equal(two, all[256:3*256]) {
			t.Errorf("%s: rows 1 and 2 of 4 differ (%v)", name, err)
		}
	}
	for _, c := range []struct {
		name    string
		from, n int64
	}{{"q4_0", 0, 5}, {"q4_0", -1, 2}, {"q4_0", 4, 1}, {"q4_0", math.MaxInt64, 1}, {"q4_0", 1, -1}, {"none", 0, 1}} {
		if _, err := f.Rows(c.name, c.from, c.n); err == nil {
			t.Errorf("%+v: no error", c)
		}
	}
}

func TestMetadata(t *testing.T) {
	f := open(t)
	want := map[string]any{
		"general.architecture": "nonsense",
		"kind.uint8":           uint64(200), "kind.int8": int64(-100), "kind.uint16": uint64(60000), "kind.int16": int64(-30000),
		"kind.uint32": uint64(4000000000), "kind.int32": int64(-2000000000), "kind.uint64": uint64(1 << 63), "kind.int64": int64(-1 << 62),
		"kind.float32": float64(float32(1e-5)), "kind.float64": 1e-5, "kind.bool": true, "kind.string": "grün\n",
		"kind.strings": []string{"a", "", "Ġthe"}, "kind.ints": []int64{1, -2, 3}, "kind.floats": []float64{0.5, -1.5},
		"kind.bools": []bool{true, false},
	}
	for _, key := range f.Keys() {
		if got := f.Value(key); !reflect.DeepEqual(got, want[key]) {
			t.Errorf("%s: %T %v, want %v", key, got, got, want[key])
		}
		delete(want, key)
	}
	if len(want) > 0 || f.Version != 3 {
		t.Errorf("missing: %v; version %d", want, f.Version)
	}
	tensor, ok := f.Tensor("f32")
	if !ok || !slices.Equal(tensor.Shape, []int64{2, 3}) {
		t.Errorf("f32: %+v", tensor)
	}
}

func TestGetters(t *testing.T) {
	f := open(t)
	if v, ok, err := f.Uint("kind.uint32"); v != 4000000000 || !ok || err != nil {
		t.Error(v, ok, err)
	}
	if v, ok, err := f.Float("kind.int8"); v != -100 || !ok || err != nil {
		t.Error(v, ok, err)
	}
	if v, ok, err := f.Ints("kind.ints"); len(v) != 3 || !ok || err != nil {
		t.Error(v, ok, err)
	}
	if _, ok, err := f.String("nothing"); ok || err != nil {
		t.Error(ok, err)
	}
	for name, get := range map[string]func(string) error{
		"uint":    func(k string) error { _, _, err := f.Uint(k); return err },
		"float":   func(k string) error { _, _, err := f.Float(k); return err },
		"string":  func(k string) error { _, _, err := f.String(k); return err },
		"strings": func(k string) error { _, _, err := f.Strings(k); return err },
		"bool":    func(k string) error { _, _, err := f.Bool(k); return err },
		"ints":    func(k string) error { _, _, err := f.Ints(k); return err },
	} {
		key := "kind.floats"
		if err := get(key); err == nil || !strings.Contains(err.Error(), key) {
			t.Errorf("%s of floats: %v", name, err)
		}
	}
	if _, _, err := f.Uint("kind.int8"); err == nil {
		t.Error("-100 as a count")
	}
}

// file builds a GGUF file by hand.
type file struct{ b bytes.Buffer }

func (f *file) u32(v uint32) *file { f.b.Write(binary.LittleEndian.AppendUint32(nil, v)); return f }
func (f *file) u64(v uint64) *file { f.b.Write(binary.LittleEndian.AppendUint64(nil, v)); return f }
func (f *file) str(s string) *file { f.u64(uint64(len(s))); f.b.WriteString(s); return f }
func (f *file) pad(n int) *file    { f.b.Write(make([]byte, n)); return f }

func header(tensors, metadata uint64) *file {
	f := &file{}
	f.b.WriteString("GGUF")
	return f.u32(3).u64(tensors).u64(metadata)
}

// tensor adds an entry of the table.
func (f *file) tensor(name string, kind Type, offset uint64, dims ...uint64) *file {
	f.str(name).u32(uint32(len(dims)))
	for _, d := range dims {
		f.u64(d)
	}
	return f.u32(uint32(kind)).u64(offset)
}

// TestRefuses holds that what a file lies about is an error that says so.
func TestRefuses(t *testing.T) {
	for name, c := range map[string]struct {
		file *file
		want string
	}{
		"empty":            {&file{}, "does not start with"},
		"another format":   {(&file{}).str("PK"), "does not start with"},
		"version 1":        {version(1), "version 1 is not supported, only 2 and 3"},
		"big-endian":       {version(3 << 24), "big-endian"},
		"tensor count":     {header(1<<60, 0), "tensors in the"},
		"metadata count":   {header(0, 1<<60), "metadata entries in the"},
		"key length":       {header(0, 1).u64(1 << 62).pad(16), "bytes of a string in the"},
		"value kind":       {header(0, 1).str("k").u32(99).pad(8), `metadata "k": unknown kind of value 99`},
		"array length":     {header(0, 1).str("k").u32(kindArray).u32(kindString).u64(1 << 61).pad(8), "array values in the"},
		"array kind":       {header(0, 1).str("k").u32(kindArray).u32(77).u64(0), "unknown kind of array values 77"},
		"array depth":      {nested(), "deep"},
		"bool":             {header(0, 1).str("k").u32(kindBool).pad(1).u32(9), ""},
		"key twice":        {header(0, 2).str("k").u32(kindBool).pad(1).str("k").u32(kindBool).pad(1), `"k" twice`},
		"no dimension":     {header(1, 0).tensor("t", F32, 0).pad(64), `"t" has 0 dimensions`},
		"five dimensions":  {header(1, 0).tensor("t", F32, 0, 1, 1, 1, 1, 1).pad(64), `"t" has 5 dimensions`},
		"zero size":        {header(1, 0).tensor("t", F32, 0, 4, 0).pad(64), `dimension 1 is 0`},
		"sizes overflow":   {header(1, 0).tensor("t", F32, 0, 1<<30, 1<<30, 1<<30).pad(64), `dimension 1 is`},
		"unknown type":     {header(1, 0).tensor("t", 16, 0, 256).pad(999), "type IQ2_XXS is not supported, only F32, F16, Q4_0, Q4_1"},
		"type of no name":  {header(1, 0).tensor("t", 4711, 0, 256).pad(999), "type type(4711) is not supported"},
		"part of a block":  {header(1, 0).tensor("t", Q4_0, 0, 33).pad(64), "33 elements are no whole blocks of Q4_0"},
		"offset":           {header(1, 0).tensor("t", F32, 1<<63, 4).pad(64), "starts at 9223372036854775808"},
		"unaligned offset": {header(1, 0).tensor("t", F32, 4, 4).pad(99), "no multiple of the alignment 32"},
		"truncated data":   {header(1, 0).tensor("t", F32, 0, 64).pad(99), `"t" ends at byte`},
		"name twice":       {header(2, 0).tensor("t", F32, 0, 1).tensor("t", F32, 32, 1).pad(99), `"t" stands twice`},
		"overlap":          {header(2, 0).tensor("t", F32, 0, 16).tensor("u", F32, 32, 1).pad(128), `"t" and "u" overlap`},
		"alignment":        {header(0, 1).str("general.alignment").u32(kindUint32).u32(0), "general.alignment is 0"},
		"alignment kind":   {header(0, 1).str("general.alignment").u32(kindString).str("32"), `"general.alignment" holds string 32`},
		"no table":         {header(2, 0).tensor("t", F32, 0, 1), ""},
	} {
		data := c.file.b.Bytes()
		if name == "bool" {
			data[len(data)-5] = 7
			c.want = "a bool of value 7"
		}
		_, err := New(bytes.NewReader(data), int64(len(data)))
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v, want %q in it", name, err, c.want)
		}
	}
}

func version(v uint32) *file {
	f := &file{}
	f.b.WriteString("GGUF")
	return f.u32(v).u64(0).u64(0)
}

// nested is arrays in arrays in arrays.
func nested() *file {
	f := header(0, 1).str("k").u32(kindArray)
	for range 100 {
		f.u32(kindArray).u64(1)
	}
	return f.pad(64)
}

// TestTruncated cuts a good file at every length.
func TestTruncated(t *testing.T) {
	data, err := os.ReadFile(blocks)
	if err != nil {
		t.Fatal(err)
	}
	for n := range len(data) - 22 { // the last tensor has 10 bytes and is padded to 32
		if _, err := New(bytes.NewReader(data[:n]), int64(n)); err == nil {
			t.Fatalf("the first %d of %d bytes were taken", n, len(data))
		}
	}
}

// TestOpenFS reads from a file system, with an alignment of its own.
func TestOpenFS(t *testing.T) {
	f := header(1, 1).str("general.alignment").u32(kindUint32).u32(64).tensor("t", F32, 0, 1)
	f.pad((64 - f.b.Len()%64) % 64).u32(math.Float32bits(2.5))
	g, err := OpenFS(fstest.MapFS{"a.gguf": {Data: f.b.Bytes()}}, "a.gguf")
	if err != nil {
		t.Fatal(err)
	}
	defer g.Close()
	if v, err := g.Rows("t", 0, 1); err != nil || v[0] != 2.5 {
		t.Error(v, err)
	}
	if _, err := Open("testdata/none.gguf"); err == nil {
		t.Error("a file that is not there")
	}
	if _, err := Open("gguf_test.go"); err == nil || !strings.Contains(err.Error(), "gguf_test.go") {
		t.Errorf("a Go file: %v", err)
	}
}

// TestMutated changes bytes and whole numbers of the header: an error or a file
// that can be read, never a panic.
func TestMutated(t *testing.T) {
	data, err := os.ReadFile(blocks)
	if err != nil {
		t.Fatal(err)
	}
	header := bytes.Index(data, []byte("bf16")) + 40 // the last entry of the table
	rng := rand.New(rand.NewPCG(1, 1))
	taken := 0
	for range 20000 {
		bad := slices.Clone(data)
		for range 1 + rng.IntN(2) {
			if at := rng.IntN(header); rng.IntN(2) == 0 {
				bad[at] = byte(rng.Uint32())
			} else {
				binary.LittleEndian.PutUint64(bad[at:], rng.Uint64()>>rng.IntN(64))
			}
		}
		if readAll(t, bad) {
			taken++
		}
	}
	t.Logf("%d of 20000 changed files were taken", taken)
}

// readAll tells whether New takes the data, and reads every tensor if so.
func readAll(t *testing.T, data []byte) bool {
	g, err := New(bytes.NewReader(data), int64(len(data)))
	if err != nil {
		return false
	}
	for _, tensor := range g.Tensors {
		if _, err := g.Rows(tensor.Name, 0, tensor.rows()); err != nil {
			t.Fatal(err)
		}
	}
	return true
}

// FuzzNew holds that no file makes the reader panic, and that what it takes can be read.
func FuzzNew(f *testing.F) {
	data, err := os.ReadFile(blocks)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(data)
	f.Add(header(1, 0).tensor("t", F32, 0, 4, 2).pad(64).b.Bytes())
	f.Add(nested().b.Bytes())
	f.Fuzz(func(t *testing.T, data []byte) {
		readAll(t, data)
	})
}
