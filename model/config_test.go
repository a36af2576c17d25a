package model

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"github.com/memopd/memopd-bench/torch"
)

const llamaConfig = `{"model_type": "llama", "vocab_size": 100, "hidden_size": 32, "intermediate_size": 48,
 "num_hidden_layers": 2, "num_attention_heads": 4, "eos_token_id": [1, 2], "torch_dtype": "bfloat16", "rope_theta": 5000.0}`

func TestParseConfigDefaults(t *testing.T) {
	c, err := ParseConfig([]byte(llamaConfig))
	if err != nil {
		t.Fatal(err)
	}
	want := Config{ModelType: Llama, VocabSize: 100, HiddenSize: 32, IntermediateSize: 48, NumHiddenLayers: 2, NumAttentionHeads: 4,
		NumKeyValueHeads: 4, HeadDim: 8, MaxPositionEmbeddings: 2048, RMSNormEps: 1e-6, RopeTheta: 5000, EOSTokenID: TokenIDs{1, 2}}
	if !reflect.DeepEqual(*c, want) {
		t.Errorf("got %+v, want %+v", *c, want)
	}
}

// with returns the config with more keys.
func with(t *testing.T, more string) []byte {
	t.Helper()
	keys := map[string]json.RawMessage{}
	for _, text := range []string{llamaConfig, "{" + more + "}"} {
		if err := json.Unmarshal([]byte(text), &keys); err != nil {
			t.Fatal(err)
		}
	}
	data, err := json.Marshal(keys)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func TestParseConfigRefuses(t *testing.T) {
	for _, c := range []struct{ more, want string }{
		{`"model_type": "mistral"`, `model_type "mistral"`},
		{`"hidden_act": "gelu"`, `hidden_act "gelu"`},
		{`"attention_dropout": 0.1`, "attention_dropout 0.1"},
		{`"pretraining_tp": 2`, "pretraining_tp 2"},
		{`"partial_rotary_factor": 0.5`, "partial_rotary_factor 0.5"},
		{`"rope_scaling": {"type": "linear", "factor": 2}`, `rope_scaling: type "linear"`},
		{`"rope_parameters": {"rope_type": "llama3", "rope_theta": 5000}`, "rope_parameters: factor is missing"},
		{`"rope_scaling": {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 32768}`, `type "yarn"`},
		{`"rope_scaling": {"type": "default", "mrope_section": [16, 24, 24]}`, "mrope_section"},
		{`"rope_scaling": {"rope_type": "llama3", "type": "linear"}`, "differ"},
		{`"rope_scaling": {"rope_type": "llama3", "factor": 8, "low_freq_factor": 4, "high_freq_factor": 4, "original_max_position_embeddings": 64}`,
			"low_freq_factor 4"},
		{`"rope_scaling": {"rope_type": "llama3", "factor": 0.5, "low_freq_factor": 1, "high_freq_factor": 4, "original_max_position_embeddings": 64}`,
			"factor is 0.5"},
		{`"rope_scaling": {"rope_type": "llama3", "factor": 8, "low_freq_factor": 1, "high_freq_factor": 4, "original_max_position_embeddings": 0}`,
			"original_max_position_embeddings is 0"},
		{`"rope_parameters": {"rope_type": "default", "partial_rotary_factor": 0.25}`, "partial_rotary_factor 0.25"},
		{`"rope_parameters": {"rope_type": "default", "rope_theta": 7000}`, "differ"},
		{`"quantization_config": {"bits": 4}`, "quantization_config"},
		{`"some_new_switch": true`, "some_new_switch"},
		{`"sliding_window": 1024`, "sliding_window 1024"},
		{`"model_type": "qwen2", "num_key_value_heads": 2, "use_sliding_window": true`, "use_sliding_window"},
		{`"model_type": "qwen2", "num_key_value_heads": 2, "layer_types": ["full_attention", "sliding_attention"]`, `layer_types[1] "sliding_attention"`},
		{`"model_type": "qwen2", "num_key_value_heads": 2, "mlp_bias": true`, "qwen2 has no"},
		{`"model_type": "qwen3", "num_key_value_heads": 2, "mlp_bias": true`, "qwen3 has no"},
		{`"model_type": "qwen3"`, "num_key_value_heads is missing"},
		{`"num_key_value_heads": 3`, "num_key_value_heads 3"},
		{`"hidden_size": 30`, "hidden_size 30 is not"},
		{`"head_dim": 7`, "head_dim 7 is odd"},
		{`"vocab_size": 0`, "vocab_size is 0"},
		{`"rms_norm_eps": 0`, "rms_norm_eps is 0"},
		{`"eos_token_id": 100`, "token id 100"},
		{`"eos_token_id": "x"`, "neither a number nor a list"},
	} {
		if _, err := ParseConfig(with(t, c.more)); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v, want %q in it", c.more, err, c.want)
		}
	}
	if _, err := ParseConfig([]byte(strings.Replace(llamaConfig, `"vocab_size": 100,`, "", 1))); err == nil ||
		!strings.Contains(err.Error(), "vocab_size is missing") {
		t.Errorf("missing: %v", err)
	}
}

func TestParseConfigTakes(t *testing.T) {
	for _, more := range []string{
		`"quantization_config": null, "some_new_switch": false, "rope_scaling": null, "sliding_window": null`,
		`"model_type": "qwen2", "num_key_value_heads": 4, "sliding_window": 4096, "max_window_layers": 28, "layer_types": ["full_attention"]`,
		`"rope_parameters": {"rope_type": "default", "rope_theta": 5000.0}`,
		`"bos_token_id": -1, "pad_token_id": null, "pretraining_tp": 1, "initializer_range": 0.02`,
	} {
		if _, err := ParseConfig(with(t, more)); err != nil {
			t.Errorf("%s: %v", more, err)
		}
	}
}

func TestConfigRoundTrip(t *testing.T) {
	one := int32(1)
	scaled := tiny(Llama)
	scaled.RopeScaling = &RopeScaling{Factor: 8, LowFreqFactor: 1, HighFreqFactor: 4, OriginalMaxPositionEmbeddings: 64}
	for _, c := range []Config{tiny(Llama), tiny(Qwen2), tiny(Qwen3), mini(), scaled} {
		c.BOSTokenID, c.EOSTokenID = &one, TokenIDs{4, 5}
		data, err := c.marshal(torch.Float32)
		if err != nil {
			t.Fatal(err)
		}
		again, err := ParseConfig(data)
		if err != nil {
			t.Fatalf("%v\n%s", err, data)
		}
		if !reflect.DeepEqual(*again, c) {
			t.Errorf("got %+v, want %+v", *again, c)
		}
	}
}

// TestHeadDim: it need not divide hidden_size, and what a file leaves out is transformers' default.
func TestHeadDim(t *testing.T) {
	for _, c := range []struct {
		more string
		want int
	}{
		{`"head_dim": 10`, 10},
		{`"head_dim": null`, 8},
		{`"model_type": "qwen3", "num_key_value_heads": 2`, 128},
		{`"model_type": "qwen2", "num_key_value_heads": 2`, 8},
	} {
		got, err := ParseConfig(with(t, c.more))
		if err != nil || got.HeadDim != c.want {
			t.Errorf("%s: %+v (%v), want head_dim %d", c.more, got, err, c.want)
		}
	}
}

// TestLlama3Scaling reads the scaling where transformers 4 and 5 put it, alone or in both places.
func TestLlama3Scaling(t *testing.T) {
	const values = `"factor": 32.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0, "original_max_position_embeddings": 8192`
	want := RopeScaling{Factor: 32, LowFreqFactor: 1, HighFreqFactor: 4, OriginalMaxPositionEmbeddings: 8192}
	for _, more := range []string{
		`"rope_scaling": {"rope_type": "llama3", ` + values + `}`,
		`"rope_scaling": {"type": "llama3", ` + values + `}`,
		`"rope_parameters": {"rope_type": "llama3", "rope_theta": 5000.0, ` + values + `}`,
		`"rope_scaling": {"rope_type": "llama3", ` + values + `}, "rope_parameters": {"rope_type": "llama3", ` + values + `}`,
	} {
		c, err := ParseConfig(with(t, more))
		if err != nil {
			t.Errorf("%s: %v", more, err)
		} else if c.RopeScaling == nil || *c.RopeScaling != want || c.RopeTheta != 5000 {
			t.Errorf("%s: scaling %+v, theta %v", more, c.RopeScaling, c.RopeTheta)
		}
	}
	both := `"rope_scaling": {"rope_type": "llama3", ` + values + `}, "rope_parameters": {"rope_type": "default", "rope_theta": 5000}`
	if _, err := ParseConfig(with(t, both)); err == nil || !strings.Contains(err.Error(), "differ") {
		t.Errorf("two places: %v", err)
	}
}

// FuzzParseConfig holds that no file makes ParseConfig panic and that what it
// takes is valid.
func FuzzParseConfig(f *testing.F) {
	f.Add([]byte(llamaConfig))
	f.Add([]byte(`{"model_type":"qwen2","num_attention_heads":0}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		c, err := ParseConfig(data)
		if err != nil {
			return
		}
		if err := c.Validate(); err != nil {
			t.Fatal(err)
		}
	})
}
