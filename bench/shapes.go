package main

import (
	"fmt"
	"io/fs"
	"os"
	"strings"

	"github.com/memopd/memopd-bench/model"
	"github.com/memopd/memopd-bench/presets"
)

// published are the shapes of published checkpoints, as their config.json have
// them, for plans and checks that need no weights.
var published = []struct {
	name   string
	config model.Config
}{
	{"SmolLM2-135M", model.Config{
		ModelType: model.Llama, VocabSize: 49152, HiddenSize: 576, IntermediateSize: 1536, NumHiddenLayers: 30,
		NumAttentionHeads: 9, NumKeyValueHeads: 3, HeadDim: 64, MaxPositionEmbeddings: 8192,
		RMSNormEps: 1e-5, RopeTheta: 100000, TieWordEmbeddings: true,
	}},
	{"Qwen2.5-0.5B", qwen25(896, 24, 14, 2, 4864, 151936, true)},
	{"Qwen2.5-1.5B", qwen25(1536, 28, 12, 2, 8960, 151936, true)},
	{"Qwen2.5-3B", qwen25(2048, 36, 16, 2, 11008, 151936, true)},
	{"Qwen2.5-7B", qwen25(3584, 28, 28, 4, 18944, 152064, false)},
}

// qwen25 is a shape of the Qwen2.5 series.
func qwen25(hidden, layers, heads, kv, ffn, vocab int, tied bool) model.Config {
	return model.Config{
		ModelType: model.Qwen2, VocabSize: vocab, HiddenSize: hidden, IntermediateSize: ffn, NumHiddenLayers: layers,
		NumAttentionHeads: heads, NumKeyValueHeads: kv, HeadDim: hidden / heads, MaxPositionEmbeddings: 32768,
		RMSNormEps: 1e-6, RopeTheta: 1e6, TieWordEmbeddings: tied,
	}
}

// shapeOf is a published shape by its name, that of a model in the build
// ("mini/student"), else that of a checkpoint's folder or GGUF file.
func shapeOf(name string) (model.Config, error) {
	known := []string{"mini/student", "mini/teacher"}
	for _, p := range published {
		if p.name == strings.TrimSuffix(name, "-Instruct") { // of the same shape
			return p.config, nil
		}
		known = append(known, p.name)
	}
	if role, ok := strings.CutPrefix(name, "mini/"); ok {
		if files, err := presets.Checkpoint("mini", role); err == nil {
			return configIn(files)
		}
	}
	if _, err := os.Stat(name); err != nil {
		return model.Config{}, unknownName("model", name, append(known, "a checkpoint's folder or .gguf file"))
	}
	d, err := model.Describe(name)
	if err != nil {
		return model.Config{}, err
	}
	if d.Config == nil {
		return model.Config{}, fmt.Errorf("%s: %s", name, strings.Join(d.Problems, "; "))
	}
	return *d.Config, nil
}

func configIn(files fs.FS) (model.Config, error) {
	data, err := fs.ReadFile(files, "config.json")
	if err != nil {
		return model.Config{}, err
	}
	c, err := model.ParseConfig(data)
	if err != nil {
		return model.Config{}, err
	}
	return *c, nil
}
