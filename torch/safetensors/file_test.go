package safetensors

import (
	"bytes"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

func TestFileRoundTrip(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.safetensors")
	tensors := []Tensor{
		Of("flags", []bool{true, false, true}), Of("ids", []int32{-1, 1 << 30}), Of("offsets", []int64{1 << 40}),
		Of("probs", []float32{-0.25, float32(math.Inf(-1))}), Of("rewards", []float64{0.1}), Of("none", []int32{}),
	}
	if err := WriteFile(path, tensors, map[string]string{"layout": "aligned"}); err != nil {
		t.Fatal(err)
	}
	got, metadata, err := ReadFile(path)
	if err != nil || metadata["layout"] != "aligned" || len(got) != len(tensors) {
		t.Fatalf("%v, metadata %v, %d tensors", err, metadata, len(got))
	}
	for _, want := range tensors {
		if g := got[want.Name]; g.DType != want.DType || !bytes.Equal(g.Data, want.Data) || !reflect.DeepEqual(g.Shape, want.Shape) {
			t.Errorf("%+v became %+v", want, g)
		}
	}
	flags, err := Values[bool](got["flags"])
	if err != nil || !reflect.DeepEqual(flags, []bool{true, false, true}) {
		t.Errorf("flags %v (%v)", flags, err)
	}
	probs, err := Values[float32](got["probs"])
	if err != nil || probs[0] != -0.25 || !math.IsInf(float64(probs[1]), -1) {
		t.Errorf("probs %v (%v)", probs, err)
	}
	if _, err := Values[int64](got["ids"]); err == nil || !strings.Contains(err.Error(), `"ids" holds I32, want I64`) {
		t.Errorf("int32 read as int64: %v", err)
	}
}

func TestFileErrors(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.safetensors")
	for name, c := range map[string]struct {
		tensor Tensor
		want   string
	}{
		"short data":    {Tensor{"a", "F32", []int64{2}, make([]byte, 4)}, "has 4 bytes, its shape 8"},
		"unknown dtype": {Tensor{"a", "F7", []int64{2}, make([]byte, 4)}, "unknown dtype"},
	} {
		if err := WriteFile(path, []Tensor{c.tensor}, nil); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
	if left, _ := os.ReadDir(filepath.Dir(path)); len(left) != 0 {
		t.Errorf("failed writes left %v", left)
	}
	if err := os.WriteFile(path, []byte("short"), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, _, err := ReadFile(path); err == nil || !strings.Contains(err.Error(), path) {
		t.Errorf("a broken file: %v", err)
	}
}
