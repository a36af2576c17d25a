package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/memopd/memopd-bench/agent"
	"github.com/memopd/memopd-bench/model"
	"github.com/memopd/memopd-bench/model/tokenizer"
)

// alphabet is the byte alphabet of GPT-2: printable bytes as themselves, the
// others from U+0100 on.
func alphabet() (runes [256]rune) {
	next := rune(0x100)
	for b := range runes {
		if b > ' ' && b < 0x7f || b > 0xa0 && b != 0xad {
			runes[b] = rune(b)
			continue
		}
		runes[b], next = next, next+1
	}
	return runes
}

// tinyBPE learns merges from a text, the most frequent pair of a word first, and
// returns a tokenizer.json with SmolLM2's special tokens.
func tinyBPE(t *testing.T, text string, merges int) []byte {
	t.Helper()
	runes := alphabet()
	vocab := map[string]int{"<|endoftext|>": 0, "<|im_start|>": 1, "<|im_end|>": 2}
	for _, r := range runes {
		vocab[string(r)] = len(vocab)
	}
	var words [][]string
	for _, w := range strings.SplitAfter(text, " ") {
		var parts []string
		for _, b := range []byte(" " + strings.TrimSuffix(w, " ")) {
			parts = append(parts, string(runes[b]))
		}
		words = append(words, parts)
	}
	list := []string{}
	for range merges {
		count := map[[2]string]int{}
		best := [2]string{}
		for _, w := range words {
			for i := range len(w) - 1 {
				p := [2]string{w[i], w[i+1]}
				count[p]++
				if c, b := count[p], count[best]; c > b || c == b && p[0]+" "+p[1] < best[0]+" "+best[1] {
					best = p
				}
			}
		}
		if _, there := vocab[best[0]+best[1]]; there || count[best] < 2 {
			break
		}
		vocab[best[0]+best[1]] = len(vocab)
		list = append(list, best[0]+" "+best[1])
		for k, w := range words {
			var merged []string
			for i := 0; i < len(w); i++ {
				if i+1 < len(w) && w[i] == best[0] && w[i+1] == best[1] {
					merged = append(merged, w[i]+w[i+1])
					i++
					continue
				}
				merged = append(merged, w[i])
			}
			words[k] = merged
		}
	}
	var added []map[string]any
	for id, content := range []string{"<|endoftext|>", "<|im_start|>", "<|im_end|>"} {
		added = append(added, map[string]any{"id": id, "content": content, "special": true,
			"single_word": false, "lstrip": false, "rstrip": false, "normalized": false})
	}
	steps := map[string]any{"type": "Sequence", "pretokenizers": []any{
		map[string]any{"type": "Digits", "individual_digits": true},
		map[string]any{"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": true},
	}}
	data, err := json.Marshal(map[string]any{
		"version": "1.0", "added_tokens": added, "pre_tokenizer": steps,
		"decoder": map[string]any{"type": "ByteLevel", "add_prefix_space": true, "trim_offsets": true, "use_regex": true},
		"model":   map[string]any{"type": "BPE", "vocab": vocab, "merges": list},
	})
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// smolTemplate is SmolLM2's chat template, as its makers published it.
const smolTemplate = "{% for message in messages %}{% if loop.first and messages[0]['role'] != 'system' %}{{ '<|im_start|>system\nYou are a helpful AI assistant named SmolLM, trained by Hugging Face<|im_end|>\n' }}{% endif %}{{'<|im_start|>' + message['role'] + '\n' + message['content'] + '<|im_end|>' + '\n'}}{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"

// A model with byte-level BPE and a chat template: what is saved on the way brings
// both along, and every prompt is wrapped.
func TestRealQuestionsWithChatTemplate(t *testing.T) {
	w := newWorkplace(t)
	w.realQuestions()
	w.mustBench(buildReal)
	p := agent.MEM1()
	text := p.Prefix([]string{"Which river flows through the birthplace of Ada Brook?"}) + p.Observation(nil, 3)
	tok, err := tokenizer.Parse(tinyBPE(t, strings.ReplaceAll(text, "\n", " "), 300))
	if err != nil {
		t.Fatal(err)
	}
	m, err := model.New(model.Config{
		ModelType: model.Llama, VocabSize: tok.Size() + 5, EOSTokenID: model.TokenIDs{2},
		HiddenSize: 16, IntermediateSize: 32, NumHiddenLayers: 1, NumAttentionHeads: 2, NumKeyValueHeads: 1, HeadDim: 8,
		MaxPositionEmbeddings: 4096, RMSNormEps: 1e-6, RopeTheta: 10000, TieWordEmbeddings: true,
	}, 1)
	if err != nil {
		t.Fatal(err)
	}
	defer m.Free()
	if err := m.Save(filepath.Join(w.dir, "tiny"), tok); err != nil {
		t.Fatal(err)
	}
	w.write("tiny/"+model.ChatTemplateFile, smolTemplate)
	const small = " --preset small --data real --response-tokens 320 "
	w.mustBench("pretrain" + small + "--model tiny --steps 2 --tokens-per-step 4096 --tokens-per-microbatch 4096 --examples-per-pool 4")
	for _, role := range []string{"student", "teacher"} {
		if got := string(w.file("runs/small/pretrain/seed-0/" + role + "/" + model.ChatTemplateFile)); got != smolTemplate {
			t.Errorf("the %s's chat template is %q", role, got)
		}
	}
	const short = " --preset small --data real --response-tokens 24 --response-tokens-per-question 0 "
	w.mustBench("train" + short + "--steps 1 --prompts-per-step 2")
	w.mustBench("eval" + short + "--tasks 1 --timed-tasks 0 --variants memopd --ledger jsonl")
	d, err := modelDialect(speakingPreset(presetSmall), filepath.Join(w.dir, "runs/small/memopd/seed-0/model"))
	if err != nil {
		t.Fatal(err)
	}
	for _, tr := range w.ledger("runs/small/eval/q2/memopd/seed-0/ledger.jsonl") {
		prompt := d.tokenizer.Decode(tr.Prefix)
		if !strings.HasPrefix(prompt, "<|im_start|>system\nYou are a helpful AI assistant named SmolLM") ||
			!strings.HasSuffix(prompt, "\n<|im_end|>\n<|im_start|>assistant\n") || !strings.Contains(prompt, "\nQuestions: ") {
			t.Errorf("prompt %q", prompt)
		}
	}
	if _, err := os.Stat(filepath.Join(w.dir, "runs/small/memopd/seed-0/model", model.ChatTemplateFile)); err != nil {
		t.Error(err)
	}
}
