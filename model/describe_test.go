package model

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestDescribeFolder: what is described is what is loaded.
func TestDescribeFolder(t *testing.T) {
	for _, name := range []string{"llama_tied", "llama_bfloat16", "qwen2_untied_parts"} {
		dir := filepath.Join("testdata", "transformers", name)
		d, err := Describe(dir)
		if err != nil {
			t.Fatal(err)
		}
		loaded, err := Load(dir, Placement{})
		if err != nil {
			t.Fatal(err)
		}
		c := loaded.Config
		embeddings := int64(c.VocabSize * c.HiddenSize)
		if !c.TieWordEmbeddings {
			embeddings *= 2
		}
		if len(d.Problems) != 0 || d.Format != "safetensors" || d.ModelType != c.ModelType || d.Parameters != int64(loaded.NumParameters()) ||
			d.Embeddings != embeddings || d.Rows != int64(c.VocabSize) || !slices.Equal(d.EOS, c.EOSTokenID) {
			t.Errorf("%s: %+v", name, d)
		}
		kind := map[string]string{"llama_bfloat16": "bfloat16"}[name]
		if kind == "" {
			kind = "float32"
		}
		if len(d.Types) != 1 || d.Types[0].Type != kind || d.Types[0].Parameters != d.Parameters {
			t.Errorf("%s: types %+v", name, d.Types)
		}
		if want := map[bool]int{false: 1, true: 3}[strings.HasSuffix(name, "parts")]; len(d.Files) != want || d.Files[0].Bytes == 0 {
			t.Errorf("%s: files %+v", name, d.Files)
		}
		loaded.Free()
	}
}

// TestDescribeGGUF: the same numbers as of the loaded model, a head of its own included.
func TestDescribeGGUF(t *testing.T) {
	for name, heads := range map[string]int64{"qwen2_untied_parts": 2, "qwen3_tied": 1} {
		path := filepath.Join("testdata", "gguf", name+".gguf")
		d, err := Describe(path)
		if err != nil {
			t.Fatal(err)
		}
		loaded, err := Load(path, Placement{})
		if err != nil {
			t.Fatal(err)
		}
		c := loaded.Config
		if d.Format != "gguf" || d.Parameters != int64(loaded.NumParameters()) || d.Embeddings != heads*int64(c.VocabSize*c.HiddenSize) || d.Rows != int64(c.VocabSize) {
			t.Errorf("%s: %+v", name, d)
		}
		loaded.Free()
	}
}

// TestDescribeUnsupported: the reason stands there, and the rest too.
func TestDescribeUnsupported(t *testing.T) {
	from := filepath.Join("testdata", "transformers", "llama_tied")
	config, err := os.ReadFile(filepath.Join(from, configFilename))
	if err != nil {
		t.Fatal(err)
	}
	weights, err := os.ReadFile(filepath.Join(from, weightsFilename))
	if err != nil {
		t.Fatal(err)
	}
	other := bytes.Replace(config, []byte(`"silu"`), []byte(`"gelu"`), 1)
	if bytes.Equal(config, other) {
		t.Fatal("the config has no silu to replace")
	}
	template := `{"chat_template": [{"name": "tool_use", "template": "T"}, {"name": "default", "template": "D"}]}`
	tokenizer := `{"model": {"type": "BPE", "vocab": {"a": 0, "b": 4}, "merges": ["a b"]},
		"added_tokens": [{"id": 6, "content": "<end>", "special": true}, {"id": 7, "content": "<think>", "special": false}]}`
	dir := t.TempDir()
	write := func(name string, data []byte) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	write(configFilename, other)
	write(weightsFilename, weights)
	write(tokenizerFilename, []byte(tokenizer))
	write(tokenizerConfigFilename, []byte(template))
	d, err := Describe(dir)
	if err != nil {
		t.Fatal(err)
	}
	whole, err := Describe(from)
	if err != nil {
		t.Fatal(err)
	}
	if d.Config != nil || len(d.Problems) != 1 || !strings.Contains(d.Problems[0], `hidden_act "gelu" is not supported`) {
		t.Errorf("%v, %q", d.Config, d.Problems)
	}
	if d.ModelType != Llama || d.Parameters != whole.Parameters || d.Template != "D" || d.TemplateIn != tokenizerConfigFilename {
		t.Errorf("%+v", d)
	}
	want := TokenizerFacts{Kind: "BPE", Size: 8, Merges: 1, Added: 2, Special: 1, In: tokenizerFilename}
	got := *d.Tokenizer
	got.texts = nil
	if got.Kind != want.Kind || got.Size != want.Size || got.Merges != want.Merges || got.Added != want.Added || got.Special != want.Special || d.Beyond != d.Rows-8 ||
		d.Tokenizer.Token(6) != "<end>" {
		t.Errorf("%+v, %d beyond", got, d.Beyond)
	}
	write("chat_template.jinja", []byte("J"))
	write(tokenizerFilename, []byte("{"))
	if err := os.Remove(filepath.Join(dir, weightsFilename)); err != nil {
		t.Fatal(err)
	}
	d, err = Describe(dir)
	if err != nil || d.Template != "J" || len(d.Problems) != 3 || d.Parameters != 0 {
		t.Errorf("%+v, %v", d, err)
	}
	for _, path := range []string{t.TempDir(), filepath.Join(dir, configFilename), filepath.Join(dir, "absent")} {
		if _, err := Describe(path); err == nil {
			t.Errorf("%s is described", path)
		}
	}
}

// TestDescribePublished: the numbers of the published files.
func TestDescribePublished(t *testing.T) {
	d, err := Describe(asset(t, smolLM2))
	if err != nil {
		t.Fatal(err)
	}
	kinds := []DescribedType{{"q4_1", 210, 106_168_320}, {"q8_0", 1, 28_311_552}, {"f32", 61, 35_136}}
	if d.Format != "gguf" || d.Parameters != 134_515_008 || d.Embeddings != 49_152*576 || !slices.Equal(d.Types, kinds) || len(d.Problems) != 0 || !slices.Equal(d.EOS, []int32{2}) {
		t.Errorf("%+v", d)
	}
	if tok := d.Tokenizer; tok.Kind != "gpt2 (smollm)" || tok.Size != 49_152 || tok.Merges != 48_900 || tok.Special != 17 || tok.Token(2) != "<|im_end|>" || d.Beyond != 0 {
		t.Errorf("%+v", tok)
	}
	if !strings.Contains(d.Template, "<|im_start|>") || d.TemplateIn != "gguf" {
		t.Errorf("template %q in %s", d.Template, d.TemplateIn)
	}

	// Qwen2.5-3B's configuration beside its tokenizer: the embeddings have 271 rows more.
	dir := t.TempDir()
	for _, name := range []string{tokenizerFilename, tokenizerConfigFilename} {
		data, err := os.ReadFile(filepath.Join(asset(t, "tokenizers/qwen2.5"), name))
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	config := `{"model_type": "qwen2", "vocab_size": 151936, "hidden_size": 2048, "intermediate_size": 11008, "num_hidden_layers": 36,
		"num_attention_heads": 16, "num_key_value_heads": 2, "rope_theta": 1e6, "tie_word_embeddings": true, "eos_token_id": 151643}`
	if err := os.WriteFile(filepath.Join(dir, configFilename), []byte(config), 0o644); err != nil {
		t.Fatal(err)
	}
	if d, err = Describe(dir); err != nil {
		t.Fatal(err)
	}
	if tok := d.Tokenizer; d.Rows != 151_936 || d.Beyond != 271 || tok.Kind != "BPE" || tok.Merges != 151_387 || tok.Added != 22 || tok.Token(151_643) != "<|endoftext|>" {
		t.Errorf("%d rows, %d beyond, %+v", d.Rows, d.Beyond, tok)
	}
}
