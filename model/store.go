package model

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/memopd/memopd-bench/torch"
)

// The files of a checkpoint folder in Hugging Face's layout.
const (
	configFilename           = "config.json"
	generationFilename       = "generation_config.json"
	weightsFilename          = "model.safetensors"
	indexFilename            = "model.safetensors.index.json"
	tokenizerFilename        = "tokenizer.json"
	tokenizerConfigFilename  = "tokenizer_config.json"
	headName, embeddingsName = "lm_head.weight", "model.embed_tokens.weight"
)

// Tokenizer is what Save writes as tokenizer.json.
type Tokenizer interface {
	json.Marshaler
	Token(id int32) (string, bool)
}

// Load reads a checkpoint folder: config.json, the weights in model.safetensors
// or in the parts that model.safetensors.index.json lists, and, for the
// end-of-sequence ids alone, generation_config.json where there is one.
// Weights become float32. A tensor that is missing, unexpected or of another
// shape is an error that names it.
func Load(dir string, p Placement) (*Decoder, error) {
	d, err := LoadFS(os.DirFS(dir), p)
	if err != nil {
		return nil, fmt.Errorf("load %s: %w", dir, err)
	}
	return d, nil
}

// LoadFS is Load from the root of fsys, such as an embedded checkpoint.
func LoadFS(fsys fs.FS, p Placement) (*Decoder, error) {
	if p = p.withDefaults(); p != (Placement{}).withDefaults() {
		return nil, fmt.Errorf("placement %+v is not supported", p)
	}
	c, err := readConfig(fsys)
	if err != nil {
		return nil, err
	}
	w, err := openWeights(fsys)
	if err != nil {
		return nil, err
	}
	defer w.close()
	d := allocate(*c)
	d.placement = p
	if err := torch.Try(func() error { return d.read(w) }); err != nil {
		d.Free()
		return nil, err
	}
	d.bind()
	return d, nil
}

func readConfig(fsys fs.FS) (*Config, error) {
	data, err := fs.ReadFile(fsys, configFilename)
	if err != nil {
		return nil, err
	}
	c, err := ParseConfig(data)
	if err != nil {
		return nil, err
	}
	data, err = fs.ReadFile(fsys, generationFilename)
	if errors.Is(err, fs.ErrNotExist) {
		return c, nil
	}
	if err != nil {
		return nil, err
	}
	var g struct {
		EOS TokenIDs `json:"eos_token_id"`
	}
	if err := json.Unmarshal(data, &g); err != nil {
		return nil, fmt.Errorf("%s: %w", generationFilename, err)
	}
	if len(g.EOS) > 0 {
		c.EOSTokenID = g.EOS
	}
	return c, c.Validate()
}

// weights are the open files of a checkpoint and which of them holds a tensor.
type weights struct {
	files  []*torch.Safetensors
	holder map[string]*torch.Safetensors
}

func openWeights(fsys fs.FS) (*weights, error) {
	names := []string{weightsFilename}
	var index struct {
		Map map[string]string `json:"weight_map"`
	}
	if data, err := fs.ReadFile(fsys, indexFilename); err == nil {
		if err := json.Unmarshal(data, &index); err != nil {
			return nil, fmt.Errorf("%s: %w", indexFilename, err)
		}
		names = slices.Compact(slices.Sorted(maps.Values(index.Map)))
	} else if !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	w := &weights{holder: map[string]*torch.Safetensors{}}
	for _, name := range names {
		f, err := torch.OpenSafetensorsFS(fsys, name)
		if err != nil {
			w.close()
			return nil, err
		}
		w.files = append(w.files, f)
		for _, tensor := range f.Names() {
			if w.holder[tensor] != nil {
				w.close()
				return nil, fmt.Errorf("%s: tensor %q stands in another part too", name, tensor)
			}
			w.holder[tensor] = f
		}
	}
	return w, nil
}

func (w *weights) close() {
	for _, f := range w.files {
		f.Close() // only read from
	}
}

// read fills the parameters and holds the files to exactly the tensors that the config asks for.
func (d *Decoder) read(w *weights) error {
	if err := d.checkNames(w); err != nil {
		return err
	}
	for i, s := range d.slots {
		scope := torch.NewScope()
		parts := make([]*torch.Tensor, len(s.parts))
		for j, p := range s.parts {
			t, err := w.holder[p.name].Tensor(p.name)
			if err != nil {
				scope.Close()
				return err
			}
			parts[j] = t.To(torch.Float32)
		}
		whole := parts[0].Clone()
		if len(parts) > 1 {
			whole = torch.Cat(parts, 0)
		}
		d.parameters[i].Tensor = whole.Own().RequiresGrad_(true)
		scope.Close()
	}
	return nil
}

func (d *Decoder) checkNames(w *weights) error {
	wanted := map[string]bool{}
	for _, s := range d.slots {
		for _, p := range s.parts {
			wanted[p.name] = true
			f := w.holder[p.name]
			if f == nil {
				return fmt.Errorf("tensor %q is missing", p.name)
			}
			want := append([]int64{p.rows}, s.shape[1:]...)
			if got, _ := f.Shape(p.name); !slices.Equal(got, want) {
				return fmt.Errorf("tensor %q has the shape %v, want %v", p.name, got, want)
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(w.holder)) {
		if wanted[name] {
			continue
		}
		if name != headName || !d.Config.TieWordEmbeddings {
			return fmt.Errorf("tensor %q is unexpected", name)
		}
		if err := sameTensor(w, name, embeddingsName); err != nil {
			return err
		}
	}
	return nil
}

// sameTensor allows a tied checkpoint to hold its head too, if it is the embedding.
func sameTensor(w *weights, a, b string) error {
	s := torch.NewScope()
	defer s.Close()
	x, err := w.holder[a].Tensor(a)
	if err != nil {
		return err
	}
	y, err := w.holder[b].Tensor(b)
	if err != nil {
		return err
	}
	if !slices.Equal(x.Shape(), y.Shape()) || x.DType() != y.DType() || !x.Equal(y) {
		return fmt.Errorf("tensor %q differs from %q, though tie_word_embeddings is set", a, b)
	}
	return nil
}

// Save writes a checkpoint folder that Load and Hugging Face's transformers
// read: config.json, generation_config.json, model.safetensors in float32 and,
// given a tokenizer, tokenizer.json and tokenizer_config.json. Files of those
// names are replaced.
func (d *Decoder) Save(dir string, tok ...Tokenizer) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("save checkpoint: %w", err)
	}
	files, err := d.textFiles(tok)
	if err != nil {
		return fmt.Errorf("save checkpoint %s: %w", dir, err)
	}
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if err := os.WriteFile(filepath.Join(dir, name), files[name], 0o644); err != nil {
			return fmt.Errorf("save checkpoint: %w", err)
		}
	}
	err = torch.Try(func() error {
		s := torch.NewScope()
		defer s.Close()
		return torch.WriteSafetensors(filepath.Join(dir, weightsFilename), d.tensors(), map[string]string{"format": "pt"})
	})
	if err != nil {
		return fmt.Errorf("save checkpoint %s: %w", dir, err)
	}
	return nil
}

// textFiles are the JSON files of a checkpoint by name.
func (d *Decoder) textFiles(tok []Tokenizer) (map[string][]byte, error) {
	config, err := d.Config.marshal(d.placement.withDefaults().Weights)
	if err != nil {
		return nil, err
	}
	c := &d.Config
	generation, err := json.MarshalIndent(map[string]any{
		"_from_model_config": true, "bos_token_id": c.BOSTokenID, "eos_token_id": c.EOSTokenID, "pad_token_id": c.PadTokenID,
	}, "", "  ")
	if err != nil {
		return nil, err
	}
	files := map[string][]byte{configFilename: config, generationFilename: append(generation, '\n')}
	if len(tok) == 0 {
		return files, nil
	}
	if files[tokenizerFilename], err = tok[0].MarshalJSON(); err != nil {
		return nil, err
	}
	about := map[string]any{"tokenizer_class": "PreTrainedTokenizerFast", "model_max_length": c.MaxPositionEmbeddings,
		"clean_up_tokenization_spaces": false}
	special := map[string]*int32{"bos_token": c.BOSTokenID, "pad_token": c.PadTokenID}
	if len(c.EOSTokenID) > 0 {
		special["eos_token"] = &c.EOSTokenID[0]
	}
	for key, id := range special {
		if id == nil {
			continue
		}
		if text, ok := tok[0].Token(*id); ok {
			about[key] = text
		}
	}
	config, err = json.MarshalIndent(about, "", "  ")
	files[tokenizerConfigFilename] = append(config, '\n')
	return files, err
}

// tensors are the weights under Hugging Face's names.
func (d *Decoder) tensors() []torch.Named {
	var out []torch.Named
	for i, s := range d.slots {
		t := d.parameters[i].Tensor.Detach()
		row := int64(0)
		for _, p := range s.parts {
			out = append(out, torch.Named{Name: p.name, Tensor: t.Narrow(0, row, p.rows)})
			row += p.rows
		}
	}
	return out
}
