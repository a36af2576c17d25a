package model

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strings"

	"github.com/memopd/memopd-bench/torch"
)

// weights are the open safetensors files of a checkpoint and which of them holds a tensor.
type weights struct {
	files  []*torch.Safetensors
	holder map[string]*torch.Safetensors
	buffer []byte
}

// openWeights opens model.safetensors, which transformers prefers too, or the parts that the index lists.
func openWeights(fsys fs.FS) (*weights, error) {
	names := []string{weightsFilename}
	var index map[string]string
	if _, err := fs.Stat(fsys, weightsFilename); errors.Is(err, fs.ErrNotExist) {
		index, err = readIndex(fsys)
		if errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("neither %s nor %s: weights are read from safetensors and GGUF files alone", weightsFilename, indexFilename)
		}
		if err != nil {
			return nil, err
		}
		names = names[:0]
		for _, file := range index {
			names = append(names, file)
		}
		slices.Sort(names)
		names = slices.Compact(names)
	}
	w := &weights{holder: map[string]*torch.Safetensors{}}
	for _, name := range names {
		if err := w.open(fsys, name, index); err != nil {
			w.close()
			return nil, err
		}
	}
	for _, tensor := range sortedNames(index) {
		if w.holder[tensor] == nil {
			w.close()
			return nil, fmt.Errorf("%s: tensor %q is not in %s", indexFilename, tensor, index[tensor])
		}
	}
	return w, nil
}

// open adds a file, whose tensors must be those that the index, if there is one, says it holds.
func (w *weights) open(fsys fs.FS, name string, index map[string]string) error {
	f, err := torch.OpenSafetensorsFS(fsys, name)
	if err != nil {
		return err
	}
	w.files = append(w.files, f)
	for _, tensor := range f.Names() {
		switch {
		case w.holder[tensor] != nil:
			return fmt.Errorf("%s: tensor %q stands in another part too", name, tensor)
		case index != nil && index[tensor] == "":
			return fmt.Errorf("%s: tensor %q is not listed in %s", name, tensor, indexFilename)
		case index != nil && index[tensor] != name:
			return fmt.Errorf("%s: tensor %q stands here, %s places it in %s", name, tensor, indexFilename, index[tensor])
		}
		w.holder[tensor] = f
	}
	return nil
}

// readIndex maps tensors to parts, which must be plain names of files beside the index.
func readIndex(fsys fs.FS) (map[string]string, error) {
	data, err := fs.ReadFile(fsys, indexFilename)
	if err != nil {
		return nil, err
	}
	var index struct {
		Map uniqueTexts `json:"weight_map"`
	}
	if err := json.Unmarshal(data, &index); err != nil {
		return nil, fmt.Errorf("%s: %w", indexFilename, err)
	}
	if len(index.Map) == 0 {
		return nil, fmt.Errorf("%s: weight_map is empty", indexFilename)
	}
	for tensor, file := range index.Map {
		if !strings.HasSuffix(file, ".safetensors") || strings.ContainsAny(file, `/\`) || !fs.ValidPath(file) {
			return nil, fmt.Errorf("%s: tensor %q: %q is not the name of a safetensors file", indexFilename, tensor, file)
		}
	}
	return index.Map, nil
}

// uniqueTexts is a JSON object of texts; of two equal keys encoding/json would take the last in silence.
type uniqueTexts map[string]string

func (u *uniqueTexts) UnmarshalJSON(data []byte) error {
	if err := json.Unmarshal(data, (*map[string]string)(u)); err != nil {
		return err
	}
	d, keys := json.NewDecoder(bytes.NewReader(data)), map[string]bool{}
	for i := 0; ; i++ {
		token, err := d.Token()
		if err != nil {
			return nil // the end: the syntax has been checked
		}
		if key, ok := token.(string); ok && i%2 == 1 { // after the brace, keys and values take turns
			if keys[key] {
				return fmt.Errorf("tensor %q is listed twice", key)
			}
			keys[key] = true
		}
	}
}

func (w *weights) close() {
	for _, f := range w.files {
		f.Close() // only read from
	}
}

func (w *weights) names() []string { return sortedNames(w.holder) }

func (w *weights) shape(name string) ([]int64, bool) {
	f := w.holder[name]
	if f == nil {
		return nil, false
	}
	return f.Shape(name)
}

func (w *weights) stored(name string) (torch.DType, error) {
	_, dtype, err := w.holder[name].Section(name)
	return dtype, err
}

func (w *weights) group(string) int64 { return 1 }

func (w *weights) fill(name string, from int64, dst *torch.Tensor) error {
	section, dtype, err := w.holder[name].Section(name)
	if err != nil {
		return err
	}
	bytes := dst.Numel() * int64(dtype.Size())
	if int64(cap(w.buffer)) < bytes {
		w.buffer = make([]byte, bytes)
	}
	data := w.buffer[:bytes]
	if n, err := section.ReadAt(data, from*(bytes/dst.Dim(0))); n < len(data) {
		return fmt.Errorf("tensor %q: %w", name, cmp.Or(err, io.ErrUnexpectedEOF))
	}
	dst.SetBytes(data)
	return nil
}

func (w *weights) same(a, b string) (bool, error) {
	x, xType, err := w.holder[a].Section(a)
	if err != nil {
		return false, err
	}
	y, yType, err := w.holder[b].Section(b)
	if err != nil {
		return false, err
	}
	if xType != yType || x.Size() != y.Size() {
		return false, nil
	}
	p, q := make([]byte, pieceBytes), make([]byte, pieceBytes)
	for {
		n, err := io.ReadFull(x, p)
		m, _ := io.ReadFull(y, q)
		if !bytes.Equal(p[:n], q[:m]) {
			return false, nil
		}
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			return true, nil
		}
		if err != nil {
			return false, fmt.Errorf("tensor %q: %w", a, err)
		}
	}
}
