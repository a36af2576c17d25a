package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/memopd/memopd-bench/model/gguf"
)

// chatTemplateFile is Hugging Face's file of a chat template beside a model.
const chatTemplateFile = "chat_template.jinja"

// chatTemplateOf is the text of the chat template that a model brings, "" without
// one: of its folder's chat_template.jinja, else tokenizer_config.json, else of
// its GGUF file.
func chatTemplateOf(path string) (string, error) {
	file := path
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		text, err := os.ReadFile(filepath.Join(path, chatTemplateFile))
		if err == nil || !errors.Is(err, fs.ErrNotExist) {
			return string(text), err
		}
		if text, err := configuredTemplate(filepath.Join(path, "tokenizer_config.json")); text != "" || err != nil {
			return text, err
		}
		found, err := filepath.Glob(filepath.Join(path, "*.gguf"))
		if err != nil || len(found) != 1 {
			return "", err
		}
		file = found[0]
	}
	if !strings.EqualFold(filepath.Ext(file), ".gguf") {
		return "", nil
	}
	f, err := gguf.Open(file)
	if err != nil {
		return "", err
	}
	defer f.Close()
	text, _, err := f.String("tokenizer.chat_template")
	return text, err
}

// configuredTemplate is the chat template in a tokenizer_config.json: a text, or
// several with names, of which "default" is meant.
func configuredTemplate(path string) (string, error) {
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	var config struct {
		Template json.RawMessage `json:"chat_template"`
	}
	if err := json.Unmarshal(data, &config); err != nil {
		return "", fmt.Errorf("%s: %w", path, err)
	}
	var text string
	if config.Template == nil || json.Unmarshal(config.Template, &text) == nil {
		return text, nil
	}
	var several []struct{ Name, Template string }
	if err := json.Unmarshal(config.Template, &several); err != nil {
		return "", fmt.Errorf("%s: chat_template is neither a text nor a list: %w", path, err)
	}
	for _, t := range several {
		if t.Name == "default" {
			return t.Template, nil
		}
	}
	return "", nil
}
