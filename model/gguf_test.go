package model

import (
	"bytes"
	"encoding/binary"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/memopd/memopd-bench/model/gguf"
)

// TestGGUF loads what scripts/peers/gguf_vectors.py converted and wants the
// weights and the config of the folder that it was made of.
func TestGGUF(t *testing.T) {
	files, err := filepath.Glob("testdata/gguf/*.gguf")
	if err != nil || len(files) < 5 {
		t.Fatalf("%d files (%v)", len(files), err)
	}
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".gguf")
		if name == "llama_rope_llama3" {
			continue // TestGGUFRopeScaling
		}
		t.Run(name, func(t *testing.T) {
			noLeaks(t)
			got, err := Load(file, Placement{})
			if err != nil {
				t.Fatal(err)
			}
			defer got.Free()
			want, err := Load(filepath.Join("testdata/transformers", name), Placement{})
			if err != nil {
				t.Fatal(err)
			}
			defer want.Free()
			if !reflect.DeepEqual(got.Config, want.Config) {
				t.Errorf("config %+v, want %+v", got.Config, want.Config)
			}
			sameWeights(t, want, got)
		})
	}
}

// TestGGUFFolder finds the file in a folder, and refuses to choose.
func TestGGUFFolder(t *testing.T) {
	noLeaks(t)
	data, err := os.ReadFile("testdata/gguf/qwen3_tied.gguf")
	if err != nil {
		t.Fatal(err)
	}
	file := &fstest.MapFile{Data: data}
	d, err := LoadFS(fstest.MapFS{"a.GGUF": file, "README.md": {}}, Placement{})
	if err != nil {
		t.Fatal(err)
	}
	d.Free()
	for want, fsys := range map[string]fstest.MapFS{
		"2 GGUF files (a.gguf, b.gguf)": {"a.gguf": file, "b.gguf": file},
		"config: model_type":            {"a.gguf": file, configFilename: {Data: []byte("{}")}},
		"open config.json":              {"README.md": {}},
	} {
		if _, err := LoadFS(fsys, Placement{}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %q in it", err, want)
		}
	}
	if _, err := Load("gguf_test.go", Placement{}); err == nil || !strings.Contains(err.Error(), "neither a folder nor a .gguf file") {
		t.Errorf("a Go file: %v", err)
	}
}

// TestGGUFRefuses changes a good file, in place, to one that asks for more, and wants that named.
func TestGGUFRefuses(t *testing.T) {
	for _, c := range []struct{ file, old, new, want string }{
		{"qwen3_tied", "general.architecture\x08\x00\x00\x00\x05\x00\x00\x00\x00\x00\x00\x00qwen3", // its kind, a text, and length
			"general.architecture\x08\x00\x00\x00\x05\x00\x00\x00\x00\x00\x00\x00gemma", `"gemma" is not supported`},
		{"qwen3_tied", "qwen3.context_length", "qwen3.expert____used", `"qwen3.context_length" is missing`},
		{"llama_grouped_biases", "llama.vocab_size", "llama.swin_width", `"llama.swin_width" = 40 is not supported`},
		{"llama_grouped_biases", "llama.attention.value_length", "llama.attention.sliding_wind", `"llama.attention.sliding_wind" = 6`},
		{"qwen3_tied", "blk.1.attn_q_norm.weight", "blk.1.attn_x_norm.weight", `"blk.1.attn_x_norm.weight" is unexpected`},
		{"qwen3_tied", "blk.1.attn_q_norm.weight", "blk.2.attn_q_norm.weight", `"model.layers.1.self_attn.q_norm.weight" is missing`},
		{"qwen2_untied_parts", "\x0d\x00\x00\x00\x00\x00\x00\x00output.weight", "\x0d\x00\x00\x00\x00\x00\x00\x00outlet.weight", `"outlet.weight" is unexpected`},
		{"qwen2_untied_parts", "token_embd.weight", "tiken_embd.weight", `"tiken_embd.weight" is unexpected`},
		{"llama_rope_llama3", "none", "none", "none of llama3's scaling"}, // its original length is not 8192
		{"llama_rope_llama3", "rope_freqs.weight", "rope_frets.weight", `"rope_frets.weight" is unexpected`},
	} {
		noLeaks(t)
		data, err := os.ReadFile(filepath.Join("testdata/gguf", c.file+".gguf"))
		if err != nil {
			t.Fatal(err)
		}
		if c.old != c.new && bytes.Count(data, []byte(c.old)) != 1 {
			t.Fatalf("%s: %q stands there %d times", c.file, c.old, bytes.Count(data, []byte(c.old)))
		}
		data = bytes.Replace(data, []byte(c.old), []byte(c.new), 1)
		d, err := LoadFS(fstest.MapFS{"m.gguf": {Data: data}}, Placement{})
		if err == nil {
			d.Free()
		}
		if err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), "m.gguf") {
			t.Errorf("%s without %q: error %v, want %q in it", c.file, c.old, err, c.want)
		}
	}
}

// llama31Divisors are for a base of 10000, heads of 16 and llama 3.1's 8192.
var llama31Divisors = []float32{1, 1, 1, 1, 1, 1, 4.681482315063477, 8}

// TestGGUFRopeScaling finds llama3's scaling behind its divisors, which are by gguf_vectors.py for a factor of 8.
func TestGGUFRopeScaling(t *testing.T) {
	const path = "testdata/gguf/llama_rope_llama3.gguf"
	f, err := gguf.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	old, err := f.Rows(ropeFreqsName, 0, 1)
	if err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	data = bytes.Replace(data, float32Bytes(old), float32Bytes(llama31Divisors), 1)
	d, err := LoadFS(fstest.MapFS{"m.gguf": {Data: data}}, Placement{})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Free()
	want := RopeScaling{Factor: 8, LowFreqFactor: 1, HighFreqFactor: 4, OriginalMaxPositionEmbeddings: 8192}
	if d.Config.RopeScaling == nil || *d.Config.RopeScaling != want {
		t.Errorf("scaling %+v, want %+v", d.Config.RopeScaling, want)
	}
}

func float32Bytes(values []float32) []byte {
	var b []byte
	for _, v := range values {
		b = binary.LittleEndian.AppendUint32(b, math.Float32bits(v))
	}
	return b
}

// TestGGUFMutated holds that no change of a header's bytes makes Load panic or leave tensors.
func TestGGUFMutated(t *testing.T) {
	data, err := os.ReadFile("testdata/gguf/qwen3_tied.gguf")
	if err != nil {
		t.Fatal(err)
	}
	header := bytes.Index(data, []byte("output_norm.weight")) // close to the end of the table
	rng := rand.New(rand.NewPCG(1, 1))
	taken := 0
	noLeaks(t)
	for range 3000 {
		bad := slices.Clone(data)
		for range 1 + rng.IntN(3) {
			bad[rng.IntN(header)] = byte(rng.Uint32())
		}
		if d, err := LoadFS(fstest.MapFS{"m.gguf": {Data: bad}}, Placement{}); err == nil {
			d.Free()
			taken++
		}
	}
	t.Logf("%d of 3000 changed files load", taken)
}
