package model

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

// ChatTemplateFile is Hugging Face's file of a chat template beside a model.
const ChatTemplateFile = "chat_template.jinja"

// ChatTemplate is the text of the chat template that a model brings, "" without
// one: of its folder's chat_template.jinja, else of tokenizer_config.json, else of
// its GGUF file, as path or the only one in the folder.
func ChatTemplate(path string) (string, error) {
	file := path
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		if text, _, err := folderTemplate(os.DirFS(path)); text != "" || err != nil {
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
	text, _, err := f.String(ggufTemplate)
	return text, err
}

// ggufTemplate is GGUF's key of the chat template.
const ggufTemplate = "tokenizer.chat_template"

// folderTemplate is the chat template of a checkpoint's folder and the file that
// it stands in.
func folderTemplate(fsys fs.FS) (text, in string, err error) {
	data, err := fs.ReadFile(fsys, ChatTemplateFile)
	if err == nil {
		return string(data), ChatTemplateFile, nil
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return "", "", err
	}
	data, err = fs.ReadFile(fsys, tokenizerConfigFilename)
	if errors.Is(err, fs.ErrNotExist) {
		return "", "", nil
	}
	if err == nil {
		text, err = configuredTemplate(data)
	}
	if err != nil {
		return "", "", fmt.Errorf("%s: %w", tokenizerConfigFilename, err)
	}
	return text, tokenizerConfigFilename, nil
}

// configuredTemplate is the chat template in a tokenizer_config.json: a text, or
// several with names, of which "default" is meant.
func configuredTemplate(data []byte) (string, error) {
	var config struct {
		Template json.RawMessage `json:"chat_template"`
	}
	if err := json.Unmarshal(data, &config); err != nil {
		return "", err
	}
	var text string
	if config.Template == nil || json.Unmarshal(config.Template, &text) == nil {
		return text, nil
	}
	var several []struct{ Name, Template string }
	if err := json.Unmarshal(config.Template, &several); err != nil {
		return "", fmt.Errorf("chat_template is neither a text nor a list: %w", err)
	}
	for _, t := range several {
		if t.Name == "default" {
			return t.Template, nil
		}
	}
	return "", nil
}
