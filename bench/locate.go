package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/memopd/memopd-bench/hub"
	"github.com/memopd/memopd-bench/model"
	"github.com/memopd/memopd-bench/model/tokenizer"
)

// locateModel finds a model by its path, or by the name that bench model fetch
// knows it by: in Hugging Face's cache and where packages and assets lie.
func locateModel(name string) (string, error) {
	if _, err := os.Stat(name); err == nil {
		return name, nil
	}
	known, err := hub.Resolve(name)
	if err != nil {
		return "", fmt.Errorf("%s is neither a folder nor a file: %w", name, err)
	}
	h, err := hub.FromEnvironment()
	if err != nil {
		return "", err
	}
	if dir, ok := h.Cached(hub.Repo{Kind: hub.ModelRepo, ID: known.Repo}, "main"); ok {
		return dir, nil
	}
	for _, dir := range []string{packagedModels, os.Getenv("MEMOPD_ASSETS"), filepath.Join(".setup", "assets")} {
		if path := filepath.Join(dir, known.Name); dir != "" && hub.Whole(path) {
			return path, nil
		}
	}
	return "", fmt.Errorf("the model %s is not here: fetch it with bench model fetch %s", name, name)
}

// loadModel loads a model that speaks a tokenizer's ids; ids that no tokenizer
// writes are taken out of its vocabulary.
func loadModel(path string, p model.Placement, tok *tokenizer.Tokenizer) (*model.Decoder, error) {
	own, err := model.LoadTokenizer(path)
	if err != nil {
		return nil, err
	}
	if err := sameTokens(own, tok); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	d, err := model.Load(path, p)
	if err != nil {
		return nil, err
	}
	if err := limitVocab(d, tok); err != nil {
		d.Free()
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return d, nil
}

// limitVocab leaves a decoder the ids of a tokenizer.
func limitVocab(d *model.Decoder, tok *tokenizer.Tokenizer) error {
	if tok.Size() == d.Config.VocabSize {
		return nil
	}
	return d.LimitVocab(tok.Size())
}

// sameTokens reports the first id that stands for two different tokens: models
// that are compared token by token have to agree on all of them.
func sameTokens(a, b *tokenizer.Tokenizer) error {
	if a == b {
		return nil
	}
	for id := range int32(max(a.Size(), b.Size())) {
		x, inA := a.Token(id)
		y, inB := b.Token(id)
		if x != y || inA != inB {
			return fmt.Errorf("its tokenizer is another one: id %d is %q there and %q here (%d and %d ids)", id, x, y, a.Size(), b.Size())
		}
	}
	return nil
}

// modelName is a short name of the model at a path, for tables and folders.
func modelName(path string) string {
	base := filepath.Base(filepath.Clean(path))
	if generic := []string{modelFolder, "student", "teacher", "actor"}; slices.Contains(generic, base) {
		return filepath.Base(filepath.Dir(filepath.Clean(path))) + "-" + base
	}
	return strings.TrimSuffix(base, ".gguf")
}
