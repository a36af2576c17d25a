package model

import (
	"fmt"
	"io/fs"
	"regexp"
	"slices"
	"strings"

	"github.com/memopd/memopd-bench/model/gguf"
	"github.com/memopd/memopd-bench/torch"
)

// loadGGUF reads a file of fsys.
func loadGGUF(fsys fs.FS, name string, p Placement) (*Decoder, error) {
	c, w, err := openGGUF(fsys, name)
	if err != nil {
		return nil, err
	}
	d, err := load(*c, w, p)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return d, nil
}

// openGGUF reads the configuration of a GGUF file and opens its weights.
func openGGUF(fsys fs.FS, name string) (*Config, *ggufWeights, error) {
	f, err := gguf.OpenFS(fsys, name)
	if err != nil {
		return nil, nil, err
	}
	c, err := ggufConfig(f)
	if err != nil {
		f.Close()
		return nil, nil, fmt.Errorf("%s: %w", name, err)
	}
	w, err := newGGUFWeights(f, c)
	if err != nil {
		f.Close()
		return nil, nil, fmt.Errorf("%s: %w", name, err)
	}
	return c, w, nil
}

// ggufWeights is a GGUF file seen by Hugging Face's names.
type ggufWeights struct {
	file   *gguf.File
	own    map[string]string // Hugging Face's name -> the file's
	config *Config
}

// ggufModules are GGUF's names of a layer's modules, and Hugging Face's.
var ggufModules = map[string]string{
	"attn_norm": "input_layernorm", "attn_q": "self_attn.q_proj", "attn_k": "self_attn.k_proj", "attn_v": "self_attn.v_proj",
	"attn_q_norm": "self_attn.q_norm", "attn_k_norm": "self_attn.k_norm", "attn_output": "self_attn.o_proj",
	"ffn_norm": "post_attention_layernorm", "ffn_gate": "mlp.gate_proj", "ffn_up": "mlp.up_proj", "ffn_down": "mlp.down_proj",
}

var ggufLayer = regexp.MustCompile(`^blk\.(\d+)\.(\w+)\.(weight|bias)$`)

// hfName is Hugging Face's name of a tensor, "" for one that has none.
func hfName(own string) string {
	switch own {
	case "token_embd.weight":
		return embeddingsName
	case "output_norm.weight":
		return "model.norm.weight"
	case "output.weight":
		return headName
	}
	if m := ggufLayer.FindStringSubmatch(own); m != nil && ggufModules[m[2]] != "" {
		return "model.layers." + m[1] + "." + ggufModules[m[2]] + "." + m[3]
	}
	return ""
}

func newGGUFWeights(f *gguf.File, c *Config) (*ggufWeights, error) {
	w := &ggufWeights{file: f, own: map[string]string{}, config: c}
	for _, t := range f.Tensors {
		name := hfName(t.Name)
		switch {
		case name != "":
			w.own[name] = t.Name
		case t.Name != ropeFreqsName: // which ggufScaling has read
			return nil, fmt.Errorf("tensor %q is unexpected", t.Name)
		}
	}
	return w, nil
}

func (w *ggufWeights) close() { w.file.Close() } // only read from

func (w *ggufWeights) names() []string { return sortedNames(w.own) }

func (w *ggufWeights) shape(name string) ([]int64, bool) {
	t, ok := w.file.Tensor(w.own[name])
	return slices.Clone(t.Shape), ok
}

func (w *ggufWeights) stored(string) (torch.DType, error) { return torch.Float32, nil }

// group keeps vectors whole, which are one row of the file, and heads, which unpermute needs.
func (w *ggufWeights) group(name string) int64 {
	shape, _ := w.shape(name)
	switch {
	case len(shape) == 1:
		return shape[0]
	case w.permuted(name):
		return int64(w.config.HeadDim)
	}
	return 1
}

func (w *ggufWeights) fill(name string, from int64, dst *torch.Tensor) error {
	rows, width := int64(1), 1
	if dst.Dims() > 1 {
		rows, width = dst.Dim(0), int(dst.Dim(1))
	}
	values, err := w.file.Rows(w.own[name], from, rows)
	if err != nil {
		return err
	}
	if w.permuted(name) {
		w.unpermute(values, width)
	}
	dst.SetFloat32s(values)
	return nil
}

// permuted tells whether llama.cpp's converter reordered a tensor's rows.
func (w *ggufWeights) permuted(name string) bool {
	return w.config.ModelType == Llama && (strings.Contains(name, ".q_proj.") || strings.Contains(name, ".k_proj."))
}

// unpermute puts the rows of whole heads of llama's query and key projections
// back in Hugging Face's order, in place; width is the length of a row.
//
// llama.cpp turns neighbouring values of a head, Hugging Face values that are half
// a head apart. So its converter lays row i of a head's first half at 2i and of
// its second half at 2i+1; for qwen2 and qwen3 llama.cpp rotates as Hugging Face does.
func (w *ggufWeights) unpermute(values []float32, width int) {
	size := w.config.HeadDim
	head := make([]float32, size*width)
	for ; len(values) > 0; values = values[size*width:] {
		copy(head, values)
		for row := range size {
			from := row % (size / 2) * 2
			if row >= size/2 {
				from++
			}
			copy(values[row*width:(row+1)*width], head[from*width:])
		}
	}
}

// same is never asked: a file with a head is not tied.
func (w *ggufWeights) same(a, b string) (bool, error) {
	return false, fmt.Errorf("tensors %q and %q are both there", a, b)
}
