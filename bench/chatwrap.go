package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/memopd/memopd-bench/model/tokenizer"
)

// chatTemplate is how a family of models is shown one message of a user, in ChatML:
// after a system message of its own, if it has one, and before the opening of the
// model's answer.
type chatTemplate struct {
	name   string
	marks  []string // what tells its Jinja text from others
	system string
}

// chatTemplates are the known ones, those that are told most surely first.
var chatTemplates = []chatTemplate{
	{"smollm2", []string{"<|im_start|>", "named SmolLM"}, "You are a helpful AI assistant named SmolLM, trained by Hugging Face"},
	{"qwen2.5", []string{"<|im_start|>", "You are Qwen, created by Alibaba Cloud. You are a helpful assistant."}, "You are Qwen, created by Alibaba Cloud. You are a helpful assistant."},
	{"qwen3", []string{"<|im_start|>", "enable_thinking"}, ""},
}

// encode returns the ids of a user's message in the template. Only the template's
// own marks are special tokens: one that the text spells out stays text.
func (c chatTemplate) encode(tok *tokenizer.Tokenizer, text string) ([]int32, error) {
	begin, hasBegin := tok.ID("<|im_start|>")
	end, hasEnd := tok.ID("<|im_end|>")
	if !hasBegin || !hasEnd {
		return nil, fmt.Errorf("chat template %s: the tokenizer has no <|im_start|> or <|im_end|>", c.name)
	}
	var ids []int32
	message := func(role, content string) {
		ids = slices.Concat(ids, []int32{begin}, tok.Encode(role+"\n"+content), []int32{end}, tok.Encode("\n"))
	}
	if c.system != "" {
		message("system", c.system)
	}
	message("user", text)
	return slices.Concat(ids, []int32{begin}, tok.Encode("assistant\n")), nil
}

// wrap makes the dialect wrap its prompts in a chat template: the one named, or
// with auto the one that the model brings.
func (d *dialect) wrap(name, path string) error {
	if name == "none" || name == "" {
		return nil
	}
	text, err := chatTemplateOf(path)
	if err != nil || text == "" && name == "auto" {
		return err
	}
	names := []string{"auto", "none"}
	for _, c := range chatTemplates {
		fits := !slices.ContainsFunc(c.marks, func(mark string) bool { return !strings.Contains(text, mark) })
		if c.name == name || name == "auto" && fits {
			if err := d.use(c); err != nil {
				return err
			}
			if fits {
				d.chatTemplate = text
			}
			return nil
		}
		names = append(names, c.name)
	}
	if name == "auto" {
		return errors.New("its chat template is not among the known ones: name one with --chat-template, or none")
	}
	return unknownName("chat template", name, names)
}

func (d *dialect) use(c chatTemplate) error {
	if _, err := c.encode(d.tokenizer, "x"); err != nil {
		return err
	}
	d.agent.EncodePrefix = func(text string) []int32 {
		ids, err := c.encode(d.tokenizer, text)
		if err != nil {
			panic(err) // tried above
		}
		return ids
	}
	return nil
}
