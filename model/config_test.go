package model

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"
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
		{`"rope_scaling": {"type": "linear", "factor": 2}`, `rope_scaling of type "linear"`},
		{`"rope_parameters": {"rope_type": "llama3", "rope_theta": 5000}`, `rope_parameters of type "llama3"`},
		{`"rope_parameters": {"rope_type": "default", "rope_theta": 7000}`, "differ"},
		{`"quantization_config": {"bits": 4}`, "quantization_config"},
		{`"some_new_switch": true`, "some_new_switch"},
		{`"sliding_window": 1024`, "sliding_window 1024"},
		{`"model_type": "qwen2", "use_sliding_window": true`, "use_sliding_window"},
		{`"model_type": "qwen2", "layer_types": ["full_attention", "sliding_attention"]`, `layer_types[1] "sliding_attention"`},
		{`"model_type": "qwen2", "mlp_bias": true`, "qwen2 has no"},
		{`"num_key_value_heads": 3`, "num_key_value_heads 3"},
		{`"hidden_size": 30`, "hidden_size 30"},
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
		`"model_type": "qwen2", "sliding_window": 4096, "max_window_layers": 28, "layer_types": ["full_attention"]`,
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
	for _, c := range []Config{tiny(Llama), tiny(Qwen2), mini()} {
		c.BOSTokenID, c.EOSTokenID = &one, TokenIDs{4, 5}
		data, err := c.marshal()
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
