package main

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/memopd/memopd-bench/agent"
	"github.com/memopd/memopd-bench/model"
	"github.com/memopd/memopd-bench/model/tokenizer"
)

// speaking holds the settings of how a model is spoken to.
type speaking struct {
	Protocol                  string `flag:"protocol" help:"prompt: mem1, mini, or a template's file; empty: mini on the mini-wiki, mem1 on real questions"`
	ChatTemplate              string `flag:"chat-template" help:"what the prompt is wrapped in: auto (what the model brings), none, smollm2, qwen2.5, qwen3, llama3"`
	TopK                      int    `flag:"top-k" help:"documents that a search shows; 0: the protocol's"`
	DocumentWords             int    `flag:"document-words" help:"words after which a document is cut; 0: the protocol's"`
	ResponseTokens            int    `flag:"response-tokens" help:"token limit of one response, with --response-tokens-per-question; 0: the protocol's"`
	ResponseTokensPerQuestion int    `flag:"response-tokens-per-question" help:"tokens that each question adds to --response-tokens, for the answers in memory"`
	TurnsPerQuestion          int    `flag:"turns-per-question" help:"turns that each question adds to the budget; 0: the protocol's"`
	Update                    string `flag:"update" help:"context update, what a call sees of the calls before: mem1 or full-response (the last response and its observation), suffix:N (of that response the last N ids), summary (of it the thinking), window:N (the last N turns), refresh (all responses, the last observation), full (everything); bench eval: empty is the run's own"`
	Retriever                 string `flag:"retriever" help:"URL of a retrieval server with Search-R1's POST /retrieve, such as bench serve retriever, or opensearch+https://HOST:PORT/INDEX, that is searched in place of the index; real questions alone"`
	RetrieverAttempts         int    `flag:"retriever-attempts" help:"times that a search is tried while --retriever gives no answer, with pauses that double: 6 are 8 to 16 seconds for a server to come back"`
	Rows                      int    `flag:"sampler-rows" help:"calls that are sampled at once"`
}

// rowsMax is the number of calls that are sampled at once unless told otherwise.
const rowsMax = 64

// protocol is the prompt with its limits. standard is its name where none is given.
func (s speaking) protocol(standard string) (agent.Protocol, error) {
	if s.TopK < 0 || s.DocumentWords < 0 || s.ResponseTokens < 0 || s.ResponseTokensPerQuestion < 0 || s.TurnsPerQuestion < 0 || s.Rows < 1 {
		return agent.Protocol{}, fmt.Errorf("top-k %d, document-words %d, response-tokens %d and %d a question, turns-per-question %d, sampler-rows %d: want 0 or more, and at least 1 row",
			s.TopK, s.DocumentWords, s.ResponseTokens, s.ResponseTokensPerQuestion, s.TurnsPerQuestion, s.Rows)
	}
	if s.Protocol == "" {
		s.Protocol = standard
	}
	p, err := agent.LoadProtocol(s.Protocol)
	if err != nil {
		return p, err
	}
	if s.ResponseTokens > 0 {
		p.NewTokens, p.NewTokensPerQuestion = s.ResponseTokens, s.ResponseTokensPerQuestion
	}
	for _, set := range []struct {
		value int
		at    *int
	}{{s.TopK, &p.TopK}, {s.DocumentWords, &p.DocumentWords}, {s.TurnsPerQuestion, &p.TurnsPerQuestion}} {
		if set.value > 0 {
			*set.at = set.value
		}
	}
	return p, nil
}

// update is the context update, MEM1's where none is named.
func (s speaking) update() (agent.Update, error) {
	return agent.UpdateNamed(cmp.Or(s.Update, defaultUpdate))
}

// defaultUpdate is what models have learned that nobody says otherwise of.
const defaultUpdate = "mem1"

// dialect is how one model is spoken to, and what is kept of that beside its weights.
type dialect struct {
	tokenizer    *tokenizer.Tokenizer
	agent        agent.Options // Protocol, Update, Tokenizer, EncodePrefix
	chatTemplate string        // its text, saved with the model; "": none
}

func newDialect(tok *tokenizer.Tokenizer, p agent.Protocol) *dialect {
	return &dialect{tokenizer: tok, agent: agent.Options{Protocol: p, Tokenizer: tok}}
}

// modelDialect is the dialect of the model at a path, on real questions.
func modelDialect(s speaking, path string) (*dialect, error) {
	p, err := s.protocol("mem1")
	if err != nil {
		return nil, err
	}
	update, err := s.update()
	if err != nil {
		return nil, err
	}
	tok, err := model.LoadTokenizer(path)
	if err != nil {
		return nil, err
	}
	d := newDialect(tok, p)
	d.agent.Update = update
	if err := d.wrap(s.ChatTemplate, path); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return d, nil
}

// saveModel writes a decoder, its tokenizer and its chat template.
func (d *dialect) saveModel(dir string, m *model.Decoder) error {
	if err := errors.Join(m.Save(dir), d.tokenizer.Save(dir)); err != nil {
		return err
	}
	if d.chatTemplate == "" {
		return nil
	}
	return os.WriteFile(filepath.Join(dir, model.ChatTemplateFile), []byte(d.chatTemplate), 0o644)
}
