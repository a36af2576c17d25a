package model

import (
	"encoding/json"
	"fmt"
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

// Save writes a checkpoint folder that Load and Hugging Face's transformers
// read: config.json, generation_config.json, model.safetensors in the type that
// the weights are stored in and, given a tokenizer, tokenizer.json and
// tokenizer_config.json. Files of those names are replaced; the index of a
// checkpoint in parts is removed, since its parts would no longer be the weights.
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
	if err := os.Remove(filepath.Join(dir, indexFilename)); err != nil && !os.IsNotExist(err) {
		return fmt.Errorf("save checkpoint: %w", err)
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
