package main

import (
	"fmt"

	"github.com/memopd/memopd-bench/model/tokenizer"
)

// chatTemplateFile is Hugging Face's file of a chat template beside a model.
const chatTemplateFile = "chat_template.jinja"

// wrap makes the dialect wrap its prompts in a chat template.
func (d *dialect) wrap(name, path string) error {
	if name == "none" || name == "auto" || name == "" {
		return nil
	}
	return fmt.Errorf("chat template %q is not known yet", name)
}

// loadTokenizer reads the tokenizer of the model at a path.
func loadTokenizer(path string) (*tokenizer.Tokenizer, error) { return tokenizer.Load(path) }
