package model

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/memopd/memopd-bench/model/tokenizer"
	"github.com/memopd/memopd-bench/torch"
)

// dump is logits.json of scripts/peers/transformers_logits.py: the logits of the
// last tokens of each row.
type dump struct {
	Rows   [][]int32     `json:"rows"`
	Logits [][][]float32 `json:"logits"`
}

// lastLogits runs rows as one batch and keeps the last n logits of each.
func lastLogits(d *Decoder, rows [][]int32, n int) [][][]float32 {
	s := torch.NewScope()
	defer s.Close()
	var all []float32
	torch.NoGrad(func() { all = d.Logits(d.HiddenAll(rows)).Float32s() })
	out := make([][][]float32, len(rows))
	token, vocab := 0, d.Config.VocabSize
	for i, row := range rows {
		for j := range row {
			if j >= len(row)-n {
				out[i] = append(out[i], all[token*vocab:(token+1)*vocab])
			}
			token++
		}
	}
	return out
}

// TestTransformersLogits loads checkpoints that transformers wrote and holds our
// logits to its own.
func TestTransformersLogits(t *testing.T) {
	folders, err := filepath.Glob("testdata/transformers/*")
	if err != nil || len(folders) != 8 {
		t.Fatalf("%d folders (%v), want 8", len(folders), err)
	}
	for _, folder := range folders {
		t.Run(filepath.Base(folder), func(t *testing.T) {
			noLeaks(t)
			var want dump
			readJSON(t, filepath.Join(folder, "logits.json"), &want)
			d, err := Load(folder, Placement{})
			if err != nil {
				t.Fatal(err)
			}
			defer d.Free()
			if got := []int32(d.Config.EOSTokenID); !slices.Equal(got, []int32{3, 5}) {
				t.Errorf("end-of-sequence ids %v", got)
			}
			got := lastLogits(d, want.Rows, 9)
			if len(got) != 3 {
				t.Fatalf("%d rows", len(got))
			}
			for i := range want.Logits {
				for j := range want.Logits[i] {
					if e := gap(want.Logits[i][j], got[i][j]); e > 2e-5 {
						t.Errorf("row %d token %d: logits differ by %g of the largest", i, j, e)
					}
				}
			}
		})
	}
}

func readJSON(t testing.TB, path string, into any) {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(data, into); err != nil {
		t.Fatalf("%s: %v", path, err)
	}
}

func testTokenizer(t testing.TB, size int) *tokenizer.Tokenizer {
	t.Helper()
	words := []string{"<pad>", "<unk>", "<bos>", "<eos>", "<think>", "</think>", ";"}
	for i := len(words); i < size; i++ {
		words = append(words, fmt.Sprint("w", i))
	}
	tok, err := tokenizer.NewWordLevel(words, "<unk>", "<pad>", "<unk>", "<bos>", "<eos>")
	if err != nil {
		t.Fatal(err)
	}
	return tok
}

func TestSaveLoad(t *testing.T) {
	for _, kind := range []string{Llama, Qwen2, Qwen3} {
		d := newModel(t, tiny(kind), 11, 1)
		d.Config.EOSTokenID = TokenIDs{3}
		dir := filepath.Join(t.TempDir(), "a", "b")
		tok := testTokenizer(t, 50)
		if err := d.Save(dir, tok); err != nil {
			t.Fatal(err)
		}
		for name, load := range map[string]func() (*Decoder, error){
			"folder": func() (*Decoder, error) { return Load(dir, Placement{}) },
			"fs":     func() (*Decoder, error) { return LoadFS(os.DirFS(dir), Placement{}) },
			"clone":  func() (*Decoder, error) { return d.Clone(), nil },
		} {
			again, err := load()
			if err != nil {
				t.Fatal(err)
			}
			if !reflect.DeepEqual(again.Config, d.Config) {
				t.Errorf("%s %s: config %+v, want %+v", kind, name, again.Config, d.Config)
			}
			sameWeights(t, d, again)
			again.Free()
		}
		read, err := tokenizer.Load(dir)
		if err != nil || !reflect.DeepEqual(read.Encode("<bos> w9 ;"), tok.Encode("<bos> w9 ;")) {
			t.Errorf("tokenizer: %v", err)
		}
	}
}

func sameWeights(t *testing.T, a, b *Decoder) {
	t.Helper()
	pa, pb := a.Parameters(), b.Parameters()
	for i := range pa {
		if pa[i].Name != pb[i].Name || !slices.Equal(pa[i].Tensor.Float32s(), pb[i].Tensor.Float32s()) {
			t.Errorf("%s differs", pa[i].Name)
		}
		if !pb[i].Tensor.RequiresGrad() {
			t.Errorf("%s takes no gradient", pb[i].Name)
		}
	}
}

func TestCopyFrom(t *testing.T) {
	a, b := newModel(t, tiny(Llama), 1, 1), newModel(t, tiny(Llama), 2, 1)
	if err := b.CopyFrom(a); err != nil {
		t.Fatal(err)
	}
	sameWeights(t, a, b)
	other := newModel(t, tiny(Qwen2), 2, 1)
	if err := other.CopyFrom(a); err == nil {
		t.Error("copied from another kind")
	}
}

func TestNewIsSeeded(t *testing.T) {
	a, b, c := newModel(t, tiny(Llama), 1, 1), newModel(t, tiny(Llama), 1, 1), newModel(t, tiny(Llama), 2, 1)
	sameWeights(t, a, b)
	if slices.Equal(a.embed.Float32s(), c.embed.Float32s()) {
		t.Error("another seed gave the same embedding")
	}
}

// TestStrictTensors damages a checkpoint and wants the tensor named.
func TestStrictTensors(t *testing.T) {
	d := newModel(t, tiny(Llama), 12, 1)
	for _, c := range []struct {
		name   string
		change func([]torch.Named) []torch.Named
		want   string
	}{
		{"missing", func(n []torch.Named) []torch.Named { return n[1:] }, `"model.embed_tokens.weight" is missing`},
		{"unexpected", func(n []torch.Named) []torch.Named {
			return append(n, torch.Named{Name: "model.layers.3.mlp.up_proj.weight", Tensor: n[0].Tensor})
		}, `"model.layers.3.mlp.up_proj.weight" is unexpected`},
		{"shape", func(n []torch.Named) []torch.Named {
			n[0].Tensor = n[0].Tensor.Narrow(0, 0, 49)
			return n
		}, `"model.embed_tokens.weight" has the shape [49 32], want [50 32]`},
		{"other head", func(n []torch.Named) []torch.Named {
			return append(n, torch.Named{Name: headName, Tensor: n[0].Tensor.Neg()})
		}, `"lm_head.weight" differs`},
		{"same head", func(n []torch.Named) []torch.Named {
			return append(n, torch.Named{Name: headName, Tensor: n[0].Tensor})
		}, ""},
	} {
		dir := t.TempDir()
		if err := d.Save(dir); err != nil {
			t.Fatal(err)
		}
		s := torch.NewScope()
		if err := torch.WriteSafetensors(filepath.Join(dir, weightsFilename), c.change(d.tensors()), nil); err != nil {
			t.Fatal(err)
		}
		s.Close()
		got, err := Load(dir, Placement{})
		if err == nil {
			got.Free()
		}
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: error %v, want %q in it", c.name, err, c.want)
		}
	}
	if _, err := Load(t.TempDir(), Placement{}); err == nil || !strings.Contains(err.Error(), configFilename) {
		t.Errorf("empty folder: %v", err)
	}
}

// TestGenerationConfigDecidesEOS holds that generation_config.json goes before
// config.json, as in transformers, and may be absent.
func TestGenerationConfigDecidesEOS(t *testing.T) {
	d := newModel(t, tiny(Qwen2), 12, 1)
	d.Config.EOSTokenID = TokenIDs{3}
	dir := t.TempDir()
	if err := d.Save(dir); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, generationFilename)
	for text, want := range map[string]TokenIDs{`{"eos_token_id": [7, 8]}`: {7, 8}, `{"eos_token_id": 9}`: {9}, `{"eos_token_id": null}`: {3}, "": {3}} {
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		if text == "" {
			if err := os.Remove(path); err != nil {
				t.Fatal(err)
			}
		}
		again, err := Load(dir, Placement{})
		if err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(again.Config.EOSTokenID, want) {
			t.Errorf("%s: end-of-sequence ids %v, want %v", text, again.Config.EOSTokenID, want)
		}
		again.Free()
	}
}

// TestExport writes checkpoints, logits and encodings for
// scripts/peers/transformers_logits.py check, when MEMOPD_EXPORT names a folder.
func TestExport(t *testing.T) {
	root := os.Getenv("MEMOPD_EXPORT")
	if root == "" {
		t.Skip("MEMOPD_EXPORT is not set: nothing to export for transformers_logits.py")
	}
	biased := tiny(Llama)
	biased.TieWordEmbeddings = false
	wide := tiny(Qwen3)
	wide.HeadDim, wide.AttentionBias = 10, true
	scaled := tiny(Llama)
	scaled.RopeScaling = &RopeScaling{Factor: 8, LowFreqFactor: 1, HighFreqFactor: 4, OriginalMaxPositionEmbeddings: 32}
	plain := mini()
	plain.BOSTokenID, plain.EOSTokenID = new(int32), TokenIDs{3, 4}
	for name, c := range map[string]Config{"llama_biases": biased, "mini": plain, "qwen2": tiny(Qwen2), "qwen3": wide, "llama3": scaled} {
		export(t, filepath.Join(root, name), newModel(t, c, 13, 2), testTokenizer(t, c.VocabSize))
	}
	short := newModel(t, wide, 14, 2).CloneTo(Placement{Weights: torch.BFloat16})
	defer short.Free()
	export(t, filepath.Join(root, "qwen3_bfloat16"), short, testTokenizer(t, wide.VocabSize))
	trained := "../presets/mini/teacher"
	d, err := Load(trained, Placement{})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Free()
	tok, err := tokenizer.Load(trained)
	if err != nil {
		t.Fatal(err)
	}
	export(t, filepath.Join(root, "teacher"), d, tok)
}

// export writes what transformers_logits.py check reads.
func export(t *testing.T, dir string, d *Decoder, tok *tokenizer.Tokenizer) {
	if err := d.Save(dir, tok); err != nil {
		t.Fatal(err)
	}
	out := dump{Rows: [][]int32{{7}, {1, 2, 3, 4, 5, 6, 7, 8}, {}}}
	for i := range 250 {
		out.Rows[2] = append(out.Rows[2], int32(i*i%d.Config.VocabSize))
	}
	wide := d.CloneTo(Placement{}) // transformers reads the file as float32
	defer wide.Free()
	out.Logits = lastLogits(wide, out.Rows, 9)
	texts := []string{"", "<bos> w9 ; <think> w10", "w9x <bos>w9<eos>", " \u00a0w12\t\u2003;\n", "<bos", "é ;; ;"}
	ids := make([][]int32, len(texts))
	for i, text := range texts {
		ids[i] = append([]int32{}, tok.Encode(text)...)
	}
	writeJSON(t, filepath.Join(dir, "logits.json"), out)
	writeJSON(t, filepath.Join(dir, "encodings.json"), map[string]any{"texts": texts, "ids": ids})
}

func writeJSON(t testing.TB, path string, v any) {
	t.Helper()
	data, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, data, 0o644); err != nil {
		t.Fatal(err)
	}
}
