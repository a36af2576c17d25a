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
	"strings"

	"github.com/memopd/memopd-bench/model/gguf"
	"github.com/memopd/memopd-bench/torch"
)

// Description is what a checkpoint says of itself, without its weights being
// read. Also one that Load refuses is described, as far as it can be.
type Description struct {
	Path       string          `json:"path"`
	Format     string          `json:"format"`                // safetensors or gguf
	ModelType  string          `json:"model_type"`            // "" if it does not say
	Config     *Config         `json:"config"`                // nil where it is not supported
	Problems   []string        `json:"problems"`              // why Load refuses it, and what else could not be read
	Files      []DescribedFile `json:"files"`                 // of the weights
	Types      []DescribedType `json:"types"`                 // on disk, the most parameters first
	Parameters int64           `json:"parameters"`            // on disk; tied embeddings once. 0 where the weights are away
	Embeddings int64           `json:"embedding_parameters"`  // of these, token embeddings and a head of its own
	Tokenizer  *TokenizerFacts `json:"tokenizer"`             // nil if there is none
	Template   string          `json:"chat_template"`         // Jinja as it is shipped; "" if there is none
	TemplateIn string          `json:"chat_template_in"`      // where it stands
	Rows       int64           `json:"vocabulary_rows"`       // of the token embeddings; those of the configuration where the weights are away
	EOS        []int32         `json:"end_of_sequence_ids"`   // that generation ends at
	Beyond     int64           `json:"rows_beyond_tokenizer"` // rows that no token has; 0 if either is not known
}

// DescribedFile is a file of weights.
type DescribedFile struct {
	Name  string `json:"name"`
	Bytes int64  `json:"bytes"`
}

// DescribedType says how much is stored in a type.
type DescribedType struct {
	Type       string `json:"type"`
	Tensors    int    `json:"tensors"`
	Parameters int64  `json:"parameters"`
}

// Describe reads what a checkpoint folder or a .gguf file says of itself. What
// it lacks or what this package does not support is among the Problems; an error
// is only that there is nothing to read.
func Describe(path string) (*Description, error) {
	d := &Description{Path: path, Problems: []string{}, Format: "safetensors", EOS: []int32{}}
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	dir, file := filepath.Dir(path), filepath.Base(path)
	if info.IsDir() {
		dir = path
		if file, err = findGGUF(os.DirFS(path)); err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
	} else if !isGGUF(path) {
		return nil, fmt.Errorf("%s is neither a folder nor a .gguf file", path)
	}
	if file != "" {
		d.Format = "gguf"
		err = d.ofGGUF(os.DirFS(dir), file)
	} else {
		err = d.ofFolder(os.DirFS(dir))
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	if d.Config != nil {
		d.EOS = d.Config.EOSTokenID
		if d.Rows == 0 {
			d.Rows = int64(d.Config.VocabSize)
		}
	}
	if d.Config != nil && len(d.Problems) == 0 {
		d.problem(checkFiles(os.DirFS(dir), file, d.Config))
	}
	if d.Tokenizer != nil && d.Tokenizer.Size > 0 && d.Rows > 0 {
		d.Beyond = d.Rows - int64(d.Tokenizer.Size)
	}
	slices.SortFunc(d.Types, func(a, b DescribedType) int { return int(min(1, max(-1, b.Parameters-a.Parameters))) })
	return d, nil
}

// checkFiles holds the weights of a folder, or those of its GGUF file, to what the configuration asks for.
func checkFiles(fsys fs.FS, file string, c *Config) error {
	var w source
	var err error
	if file == "" {
		w, err = openWeights(fsys)
	} else {
		_, w, err = openGGUF(fsys, file)
	}
	if err != nil {
		return err
	}
	defer w.close()
	return checkTensors(c, c.slots(), w)
}

// problem notes what is wrong, once.
func (d *Description) problem(err error) {
	if err != nil && !slices.Contains(d.Problems, err.Error()) {
		d.Problems = append(d.Problems, err.Error())
	}
}

func (d *Description) ofFolder(fsys fs.FS) error {
	data, err := fs.ReadFile(fsys, configFilename)
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("holds neither %s nor a .gguf file", configFilename)
	}
	if err != nil {
		return err
	}
	var loose struct {
		ModelType string   `json:"model_type"`
		EOS       TokenIDs `json:"eos_token_id"`
	}
	d.problem(json.Unmarshal(data, &loose))
	d.ModelType, d.EOS = loose.ModelType, loose.EOS
	d.Config, err = readConfig(fsys)
	d.problem(err)
	d.weightsOfFolder(fsys)
	d.tokenizerOfFolder(fsys)
	return nil
}

// weightsOfFolder takes sizes and types from the headers of the files.
func (d *Description) weightsOfFolder(fsys fs.FS) {
	names := []string{weightsFilename}
	if _, err := fs.Stat(fsys, weightsFilename); err != nil {
		index, err := readIndex(fsys)
		if err != nil {
			d.problem(fmt.Errorf("no weights in safetensors: %w", err))
			return
		}
		names = slices.Compact(slices.Sorted(maps.Values(index)))
	}
	for _, name := range names {
		info, err := fs.Stat(fsys, name)
		if err != nil {
			d.problem(err)
			continue
		}
		d.Files = append(d.Files, DescribedFile{name, info.Size()})
		f, err := torch.OpenSafetensorsFS(fsys, name)
		if err != nil {
			d.problem(err)
			continue
		}
		for _, tensor := range f.Names() {
			shape, _ := f.Shape(tensor)
			kind := "other"
			if _, dtype, err := f.Section(tensor); err == nil {
				kind = dtype.String()
			} else {
				d.problem(err)
			}
			d.tensor(tensor, kind, shape)
		}
		d.problem(f.Close())
	}
}

// tensor counts one tensor; name is Hugging Face's.
func (d *Description) tensor(name, kind string, shape []int64) {
	n := int64(1)
	for _, size := range shape {
		n *= size
	}
	d.Parameters += n
	if name == embeddingsName && len(shape) == 2 {
		d.Rows = shape[0]
	}
	if name == embeddingsName || name == headName {
		d.Embeddings += n
	}
	i := slices.IndexFunc(d.Types, func(t DescribedType) bool { return t.Type == kind })
	if i < 0 {
		i = len(d.Types)
		d.Types = append(d.Types, DescribedType{Type: kind})
	}
	d.Types[i].Tensors++
	d.Types[i].Parameters += n
}

func (d *Description) ofGGUF(fsys fs.FS, name string) error {
	f, err := gguf.OpenFS(fsys, name)
	if err != nil {
		return err
	}
	defer f.Close() // only read from
	if info, err := fs.Stat(fsys, name); err == nil {
		d.Files = []DescribedFile{{name, info.Size()}}
	}
	d.ModelType, _, err = f.String("general.architecture")
	d.problem(err)
	d.Config, err = ggufConfig(f)
	d.problem(err)
	for _, t := range f.Tensors {
		own := t.Name
		switch own {
		case "token_embd.weight":
			own = embeddingsName
		case "output.weight":
			own = headName
		}
		d.tensor(own, strings.ToLower(t.Type.String()), t.Shape)
	}
	d.tokenizerOfGGUF(f)
	return nil
}
