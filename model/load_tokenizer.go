package model

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/memopd/memopd-bench/model/gguf"
	"github.com/memopd/memopd-bench/model/tokenizer"
)

// LoadTokenizer reads the tokenizer of a checkpoint, path being as Load's: a
// folder's tokenizer.json, or the vocabulary of a GGUF file.
func LoadTokenizer(path string) (*tokenizer.Tokenizer, error) {
	file := path
	if !isGGUF(path) {
		_, err := os.Stat(filepath.Join(path, tokenizerFilename))
		if err == nil {
			return tokenizer.Load(path)
		}
		name, other := findGGUF(os.DirFS(path))
		if other != nil || name == "" {
			return nil, fmt.Errorf("load tokenizer: %w", errors.Join(err, other))
		}
		file = filepath.Join(path, name)
	}
	t, err := ggufTokenizer(file)
	if err != nil {
		return nil, fmt.Errorf("load tokenizer %s: %w", file, err)
	}
	return t, nil
}

// ggufTokenizer goes by way of tokenizer.json, so that what the vocabulary asks is
// held to the one reader.
func ggufTokenizer(file string) (*tokenizer.Tokenizer, error) {
	f, err := gguf.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	v, err := f.Vocabulary()
	if err != nil {
		return nil, err
	}
	data, err := v.TokenizerJSON()
	if err != nil {
		return nil, err
	}
	return tokenizer.Parse(data)
}
