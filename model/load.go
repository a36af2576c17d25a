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

	"github.com/memopd/memopd-bench/torch"
)

// Load reads a checkpoint. path is one of
//
//   - a folder in Hugging Face's layout: config.json, the weights in
//     model.safetensors or, without that, in the parts that
//     model.safetensors.index.json lists, and, for the end-of-sequence ids alone,
//     generation_config.json where there is one;
//   - a GGUF file, or a folder with one and no config.json.
//
// Weights are rounded to the placement's type, and each goes piece by piece to
// where it is placed, so that loading takes the memory of the decoder and little
// more. A tensor that is missing, unexpected or of another shape is an error that
// names it, and so is whatever the configuration asks and this package lacks.
func Load(path string, p Placement) (*Decoder, error) {
	d, err := func() (*Decoder, error) {
		info, err := os.Stat(path)
		if err != nil {
			return nil, err
		}
		if info.IsDir() {
			return LoadFS(os.DirFS(path), p)
		}
		if !isGGUF(path) {
			return nil, errors.New("neither a folder nor a .gguf file")
		}
		return loadGGUF(os.DirFS(filepath.Dir(path)), filepath.Base(path), p)
	}()
	if err != nil {
		return nil, fmt.Errorf("load %s: %w", path, err)
	}
	return d, nil
}

// LoadFS is Load of a folder from the root of fsys, such as an embedded checkpoint.
func LoadFS(fsys fs.FS, p Placement) (*Decoder, error) {
	name, err := findGGUF(fsys)
	if err != nil {
		return nil, err
	}
	if name != "" {
		return loadGGUF(fsys, name, p)
	}
	c, err := readConfig(fsys)
	if err != nil {
		return nil, err
	}
	w, err := openWeights(fsys)
	if err != nil {
		return nil, err
	}
	return load(*c, w, p)
}

func isGGUF(name string) bool { return strings.EqualFold(filepath.Ext(name), ".gguf") }

// findGGUF names the GGUF file of a folder; "" where config.json decides.
func findGGUF(fsys fs.FS) (string, error) {
	if _, err := fs.Stat(fsys, configFilename); !errors.Is(err, fs.ErrNotExist) {
		return "", err
	}
	entries, err := fs.ReadDir(fsys, ".")
	if err != nil {
		return "", err
	}
	var names []string
	for _, e := range entries {
		if isGGUF(e.Name()) {
			names = append(names, e.Name())
		}
	}
	switch len(names) {
	case 0:
		return "", nil // readConfig tells that config.json is missing
	case 1:
		return names[0], nil
	}
	return "", fmt.Errorf("no %s, and %d GGUF files (%s): name one of them", configFilename, len(names), strings.Join(names, ", "))
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
	if err := c.Validate(); err != nil {
		return nil, fmt.Errorf("%s: %w", generationFilename, err)
	}
	return c, nil
}

// source is the open weights of a checkpoint, tensors by Hugging Face's names.
type source interface {
	names() []string
	shape(name string) ([]int64, bool)
	// stored is the type that fill writes a tensor in.
	stored(name string) (torch.DType, error)
	// fill writes the rows of a tensor from row from on, along dimension 0, over
	// dst: a contiguous CPU tensor of the stored type.
	fill(name string, from int64, dst *torch.Tensor) error
	// group is how many rows of a tensor must be read together.
	group(name string) int64
	// same tells whether two tensors of one shape hold the same bytes.
	same(a, b string) (bool, error)
	close()
}

// load makes a decoder of the config and fills it from w, which it closes.
func load(c Config, w source, p Placement) (d *Decoder, err error) {
	defer w.close()
	if err := p.check(); err != nil {
		return nil, err
	}
	slots := c.slots()
	if err := checkTensors(&c, slots, w); err != nil {
		return nil, err
	}
	err = torch.Try(func() error {
		d = allocate(c, p)
		return d.read(w)
	})
	if err != nil {
		if d != nil {
			d.Free()
		}
		return nil, err
	}
	d.bind()
	return d, nil
}

// read fills the parameters, whose tensors checkTensors has seen in w.
func (d *Decoder) read(w source) error {
	r := reading{source: w, stages: map[torch.DType]*torch.Tensor{}}
	defer r.free()
	for i, s := range d.slots {
		row := int64(0)
		for _, p := range s.parts {
			scope := torch.NewScope()
			err := r.copy(p.name, d.parameters[i].Tensor.Detach().Narrow(0, row, p.rows))
			scope.Close()
			if err != nil {
				return err
			}
			row += p.rows
		}
	}
	return nil
}

// pieceBytes is how much of a tensor is read at once; a test makes it small.
var pieceBytes int64 = 8 << 20

// reading copies tensors piece by piece. What cannot be read in place goes
// through one stage a type: a tensor made anew for each piece would leave holes in
// the heap, since malloc finds no room for an aligned block in one of equal size.
type reading struct {
	source
	stages map[torch.DType]*torch.Tensor
}

func (r *reading) free() {
	for _, t := range r.stages {
		t.Free()
	}
}

// copy writes a tensor's elements, converted, over dst, which has its shape.
func (r *reading) copy(name string, dst *torch.Tensor) error {
	stored, err := r.stored(name)
	if err != nil {
		return err
	}
	if !slices.Contains(floats, stored) {
		return fmt.Errorf("tensor %q is in %v, want one of %v", name, stored, floats)
	}
	shape := dst.Shape()
	rows, rowNumel := shape[0], dst.Numel()/shape[0]
	group := r.group(name)
	step := max(pieceBytes/(rowNumel*int64(stored.Size()))/group, 1) * group
	for from := int64(0); from < rows; from += step {
		scope := torch.NewScope()
		shape[0] = min(step, rows-from)
		piece := dst.Narrow(0, from, shape[0])
		if dst.Device() == "cpu" && dst.DType() == stored {
			err = r.fill(name, from, piece)
		} else {
			stage := r.stage(stored, shape[0]*rowNumel).View(shape...)
			if err = r.fill(name, from, stage); err == nil {
				piece.Copy_(stage)
			}
		}
		scope.Close()
		if err != nil {
			return err
		}
	}
	return nil
}

// stage is n elements of a CPU tensor that serves again and again.
func (r *reading) stage(d torch.DType, n int64) *torch.Tensor {
	t := r.stages[d]
	if t == nil || t.Numel() < n {
		t.Free()
		t = torch.Empty(d, max(n, pieceBytes/int64(d.Size()))).Own()
		r.stages[d] = t
	}
	return t.Narrow(0, 0, n)
}

// sortedNames are the keys of a map of tensors.
func sortedNames[T any](m map[string]T) []string { return slices.Sorted(maps.Keys(m)) }
