package main

import (
	"fmt"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/memopd/memopd-bench/datasets"
	"github.com/memopd/memopd-bench/model"
	"github.com/memopd/memopd-bench/model/tokenizer"
	"github.com/memopd/memopd-bench/retriever/client"
	"github.com/memopd/memopd-bench/train"
)

// The presets: sets of defaults for a purpose.
const (
	presetMini  = "mini"  // minutes a run on a laptop: the mini-wiki, a decoder of 0.8M parameters
	presetSmoke = "smoke" // the same in a minute, for tests and a first look
	presetSmall = "small" // real questions and SmolLM2-135M, hours on two cores
	presetPaper = "paper" // the paper's: real questions, Qwen2.5-3B, a teacher of 7B, on a GPU
)

var presetNames = []string{presetMini, presetSmoke, presetSmall, presetPaper}

// onWiki tells the presets of the mini-wiki from those of real questions.
func onWiki(preset string) bool { return preset == presetMini || preset == presetSmoke }

// dataFolder is where a preset's tasks lie.
func dataFolder(preset string) string {
	if onWiki(preset) {
		return filepath.Join("data", "miniwiki")
	}
	return realData
}

// The published models that the presets of real questions begin with.
const (
	smallModel   = "SmolLM2-135M-Instruct"
	paperModel   = "Qwen2.5-3B"
	paperTeacher = "Qwen2.5-7B-Instruct"
)

// baseModel is the published model that a preset's SFT begins with.
func baseModel(preset string) string {
	if preset == presetPaper {
		return paperModel
	}
	return smallModel
}

// speakingPreset is how a preset's model is spoken to. The small one's limits keep
// contexts at about a thousand tokens, which a CPU can take; the paper's are
// MEM1's.
func speakingPreset(preset string) speaking {
	s := speaking{ChatTemplate: "none", Update: defaultUpdate, Rows: rowsMax, RetrieverAttempts: client.DefaultOptions().AttemptsMax}
	switch preset {
	case presetSmall:
		s.ChatTemplate, s.TopK, s.DocumentWords = "auto", 2, 80
		s.ResponseTokens, s.ResponseTokensPerQuestion, s.Rows = 160, 16, 8
	case presetPaper:
		s.ChatTemplate = "auto"
	}
	return s
}

// modelShape holds the sizes of a decoder that is made anew.
type modelShape struct {
	HiddenSize       int `flag:"hidden-size" help:"width of a new decoder"`
	Layers           int `flag:"layers" help:"layers of a new decoder"`
	Heads            int `flag:"heads" help:"attention heads of a new decoder"`
	KeyValueHeads    int `flag:"key-value-heads" help:"key and value heads of a new decoder (grouped-query attention)"`
	IntermediateSize int `flag:"intermediate-size" help:"width of the feed-forward part of a new decoder"`
	ContextTokens    int `flag:"context-tokens" help:"context limit of a new decoder, in tokens"`
}

func miniShape() modelShape {
	return modelShape{HiddenSize: 128, Layers: 4, Heads: 4, KeyValueHeads: 4, IntermediateSize: 336, ContextTokens: 4096}
}

// config is the decoder's configuration for a tokenizer's vocabulary.
func (s modelShape) config(tok *tokenizer.Tokenizer) (model.Config, error) {
	c := model.Config{
		ModelType: model.Llama, VocabSize: tok.Size(),
		HiddenSize: s.HiddenSize, IntermediateSize: s.IntermediateSize, NumHiddenLayers: s.Layers,
		NumAttentionHeads: s.Heads, NumKeyValueHeads: s.KeyValueHeads, HeadDim: s.HiddenSize / max(1, s.Heads),
		MaxPositionEmbeddings: s.ContextTokens, RMSNormEps: 1e-6, RopeTheta: 10000, TieWordEmbeddings: true,
	}
	for _, special := range []struct {
		word string
		set  func(int32)
	}{
		{"<bos>", func(id int32) { c.BOSTokenID = &id }},
		{"<eos>", func(id int32) { c.EOSTokenID = model.TokenIDs{id} }},
		{"<pad>", func(id int32) { c.PadTokenID = &id }},
	} {
		id, ok := tok.ID(special.word)
		if !ok {
			return c, fmt.Errorf("the vocabulary has no %s", special.word)
		}
		special.set(id)
	}
	return c, c.Validate()
}

// sftPreset returns a preset's settings of supervised fine-tuning.
func sftPreset(name string) (train.SFTConfig, modelShape, error) {
	switch name {
	case presetMini:
		return train.MiniSFT(), miniShape(), nil
	case presetSmoke:
		shape := miniShape()
		shape.HiddenSize, shape.Layers, shape.IntermediateSize = 64, 2, 176
		return train.SmokeSFT(), shape, nil
	case presetSmall:
		return train.SmallSFT(), modelShape{}, nil
	case presetPaper:
		return train.PaperSFT(), modelShape{}, nil
	}
	return train.SFTConfig{}, modelShape{}, unknownName("preset", name, presetNames)
}

// ppoPreset returns a preset's settings of reinforcement learning.
func ppoPreset(name string) (train.PPOConfig, error) {
	switch name {
	case presetMini:
		return train.MiniPPO(), nil
	case presetSmoke:
		return train.SmokePPO(), nil
	case presetSmall:
		return train.SmallPPO(), nil
	case presetPaper:
		return train.PaperPPO(), nil
	}
	return train.PPOConfig{}, unknownName("preset", name, presetNames)
}

// parseMix reads shares of horizons such as "q1:.1,q2:.2,q16:.7".
func parseMix(text string) ([]horizonShare, error) {
	var mix []horizonShare
	sum := 0.0
	for _, part := range strings.Split(text, ",") {
		name, share, ok := strings.Cut(strings.TrimSpace(part), ":")
		n, err := datasets.ParseHorizon(name)
		if err != nil {
			return nil, fmt.Errorf("horizon mix %q: %w", text, err)
		}
		x, err := strconv.ParseFloat(share, 64)
		if !ok || err != nil || !(x >= 0) {
			return nil, fmt.Errorf("horizon mix %q: want horizon:share, such as q2:.3, not %q", text, part)
		}
		mix = append(mix, horizonShare{n, x})
		sum += x
	}
	if !(sum > 0) {
		return nil, fmt.Errorf("horizon mix %q: the shares sum to %g", text, sum)
	}
	for i := range mix {
		mix[i].Share /= sum
	}
	return mix, nil
}
