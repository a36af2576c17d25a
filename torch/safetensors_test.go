package torch

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
)

// TestSetBytes overwrites rows of a tensor in place, and nothing else.
func TestSetBytes(t *testing.T) {
	scoped(t)
	x := Zeros(Float32, 3, 2)
	x.Narrow(0, 1, 1).SetFloat32s([]float32{2.5, -1})
	x.Narrow(0, 2, 1).SetBytes([]byte{0, 0, 0x80, 0x3f, 0, 0, 0, 0x40})
	if got := x.Float32s(); !slices.Equal(got, []float32{0, 0, 2.5, -1, 1, 2}) {
		t.Errorf("got %v", got)
	}
	for name, f := range map[string]func(){
		"size":       func() { x.SetBytes(make([]byte, 4)) },
		"type":       func() { Zeros(BFloat16, 2).SetFloat32s([]float32{1}) },
		"contiguous": func() { x.Transpose(0, 1).SetFloat32s(make([]float32, 6)) },
	} {
		if err := Try(func() error { f(); return nil }); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

func TestSafetensorsRoundTrip(t *testing.T) {
	scoped(t)
	path := filepath.Join(t.TempDir(), "m.safetensors")
	var in []Named
	for d := range formatNames() {
		in = append(in, Named{"t." + d.String(), FromFloat32([]float32{0, 1, 2, 3, 1, 0}, 2, 3).To(d)})
	}
	in = append(in, Named{"empty", Zeros(Float32, 0, 4)}, Named{"scalar", Scalar(2.5)},
		Named{"transposed", FromFloat32([]float32{1, 2, 3, 4}, 2, 2).Transpose(0, 1)})
	meta := map[string]string{"format": "pt", "ü": "\"<\n"}
	if err := WriteSafetensors(path, in, meta); err != nil {
		t.Fatal(err)
	}
	first, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	out, gotMeta, err := ReadSafetensors(path)
	if err != nil {
		t.Fatal(err)
	}
	if len(out) != len(in) || gotMeta["ü"] != meta["ü"] || len(gotMeta) != 2 {
		t.Fatalf("%d tensors, metadata %v", len(out), gotMeta)
	}
	for _, n := range in {
		got := out[n.Name]
		if got.String() != n.Tensor.String() || !got.Equal(n.Tensor) {
			t.Errorf("%s: %v became %v", n.Name, n.Tensor, got)
		}
	}
	if err := WriteSafetensors(path, append(in[3:len(in):len(in)], in[:3]...), meta); err != nil {
		t.Fatal(err)
	}
	if second, _ := os.ReadFile(path); !bytes.Equal(first, second) {
		t.Error("the order in which tensors are given changes the file")
	}
	if files, _ := os.ReadDir(filepath.Dir(path)); len(files) != 1 {
		t.Errorf("%d files in the folder, want 1", len(files))
	}
	s, err := OpenSafetensorsFS(fstest.MapFS{"a/b": {Data: first}}, "a/b")
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if x, err := s.Tensor("transposed"); err != nil || x.Float32s()[1] != 3 {
		t.Errorf("from a file system: %v, %v", x, err)
	}
	section, dtype, err := s.Section("transposed")
	if err != nil || dtype != Float32 || section.Size() != 16 {
		t.Fatalf("section: %v %v %v", section, dtype, err)
	}
	if x := EmptyOn("cpu", Float32, 2, 2); x.Device() != "cpu" || x.String() != "float32[2 2]" {
		t.Errorf("empty: %v on %s", x, x.Device())
	}
	raw := make([]byte, 8)
	if _, err := section.ReadAt(raw, 4); err != nil || FromBytes(raw, dtype, 2).Float32s()[0] != 3 {
		t.Errorf("second and third of a transposed 1 2 3 4: % x (%v)", raw, err)
	}
	if _, _, err := s.Section("nothing"); err == nil {
		t.Error("a section of nothing")
	}
	if shape, ok := s.Shape("empty"); !ok || len(shape) != 2 || shape[1] != 4 {
		t.Errorf("shape of empty: %v, %v", shape, ok)
	}
}

// formatNames is the types that a file can hold.
func formatNames() map[DType]bool {
	out := map[DType]bool{}
	for _, d := range formatTypes {
		out[d] = true
	}
	return out
}

// TestSafetensorsPython reads what the safetensors package of Hugging Face wrote (scripts/peers/torch_vectors.py).
func TestSafetensorsPython(t *testing.T) {
	scoped(t)
	out, meta, err := ReadSafetensors("testdata/python.safetensors")
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{"f32": "float32[2 3]", "f16": "float16[3]", "bf16": "bfloat16[3]", "i64": "int64[2]", "bool": "bool[2]", "scalar": "float32[]"}
	for name, kind := range want {
		if out[name].String() != kind {
			t.Errorf("%s is %v, want %s", name, out[name], kind)
		}
	}
	for name, values := range map[string][]float32{"f32": {0, 1, 2, 3, 4, 5}, "f16": {0.5, -2, 65504}, "bf16": {0.5, -2, 256},
		"i64": {-7, 1 << 40}, "bool": {1, 0}, "scalar": {3.25}} {
		for i, v := range out[name].Float32s() {
			if v != values[i] {
				t.Errorf("%s[%d] = %v, want %v", name, i, v, values[i])
			}
		}
	}
	if len(out) != len(want) || meta["format"] != "pt" {
		t.Errorf("%d tensors, metadata %v", len(out), meta)
	}
	path := filepath.Join(t.TempDir(), "again")
	var all []Named
	for name, x := range out {
		all = append(all, Named{name, x})
	}
	if err := WriteSafetensors(path, all, meta); err != nil {
		t.Fatal(err)
	}
	a, _ := os.ReadFile("testdata/python.safetensors")
	b, _ := os.ReadFile(path)
	if !bytes.Equal(a, b) {
		t.Errorf("written again, the bytes differ from Hugging Face's: %d and %d bytes", len(b), len(a))
	}
}

func TestSafetensorsErrors(t *testing.T) {
	scoped(t)
	dir := t.TempDir()
	path := filepath.Join(dir, "x.safetensors")
	good := []Named{{"a", Ones(Float32, 4)}}
	if err := WriteSafetensors(path, good, nil); err != nil {
		t.Fatal(err)
	}
	all, _ := os.ReadFile(path)
	cut := filepath.Join(dir, "cut.safetensors")
	if err := os.WriteFile(cut, all[:len(all)-1], 0o644); err != nil {
		t.Fatal(err)
	}
	s, err := OpenSafetensors(path)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	_, lacking := s.Tensor("b")
	_, _, cutErr := ReadSafetensors(cut)
	for name, c := range map[string]struct {
		err  error
		want string
	}{
		"lacking": {lacking, `no tensor "b"`},
		"cut":     {cutErr, "cut.safetensors: safetensors: tensors hold 16 bytes, the file has 15"},
		"twice":   {WriteSafetensors(path, append(good, good...), nil), `"a" is taken`},
		"nil":     {WriteSafetensors(path, []Named{{"n", nil}}, nil), `"n" is nil`},
		"folder":  {WriteSafetensors(filepath.Join(dir, "no", "x"), good, nil), "no such file"},
		"absent":  {func() error { _, err := OpenSafetensors(filepath.Join(dir, "none")); return err }(), "no such file"},
	} {
		if c.err == nil || !strings.Contains(c.err.Error(), c.want) {
			t.Errorf("%s: error %v, want %q in it", name, c.err, c.want)
		}
	}
	if b, _ := os.ReadFile(path); !bytes.Equal(b, all) {
		t.Error("a failed write changed the file")
	}
}
