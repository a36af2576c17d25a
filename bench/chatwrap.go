package main

import (
	"errors"
	"slices"

	"github.com/memopd/memopd-bench/model"
	"github.com/memopd/memopd-bench/model/tokenizer"
)

// wrap makes the dialect wrap its prompts in a chat template: the one named, or
// with auto the one that the model brings.
func (d *dialect) wrap(name, path string) error {
	if name == "none" || name == "" {
		return nil
	}
	text, err := model.ChatTemplate(path)
	if err != nil || text == "" && name == "auto" {
		return err
	}
	brought, known := tokenizer.DetectChatTemplate(text)
	c := brought
	switch {
	case name != "auto":
		if names := tokenizer.ChatTemplateNames(); !slices.Contains(names, name) {
			return unknownName("chat template", name, append([]string{"auto"}, names...))
		}
		if c, err = tokenizer.ChatTemplateNamed(name); err != nil {
			return err
		}
	case !known:
		return errors.New("its chat template is not among the known ones: name one with --chat-template, or none")
	}
	if err := d.use(c); err != nil {
		return err
	}
	note("prompts are wrapped in the chat template %s", c.Name())
	if known && brought == c {
		d.chatTemplate = text
	}
	return nil
}

// use wraps the prompt as a user's only message, before the opening of the answer.
func (d *dialect) use(c tokenizer.ChatTemplate) error {
	encode := func(text string) ([]int32, error) {
		return c.Encode(d.tokenizer, []tokenizer.Message{{Role: "user", Content: text}}, true)
	}
	if _, err := encode("x"); err != nil {
		return err
	}
	d.agent.EncodePrefix = func(text string) []int32 {
		ids, err := encode(text)
		if err != nil {
			panic(err) // tried above
		}
		return ids
	}
	return nil
}
