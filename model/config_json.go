package model

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"sort"
	"strconv"
	"strings"

	"github.com/memopd/memopd-bench/torch"
)

// configFile is config.json: Config and what must have one certain value.
type configFile struct {
	Config
	HiddenAct        string          `json:"hidden_act"`
	AttentionDropout float64         `json:"attention_dropout"`
	PretrainingTP    *int            `json:"pretraining_tp"`
	Partial          *float64        `json:"partial_rotary_factor"`
	UseSlidingWindow bool            `json:"use_sliding_window"`
	LayerTypes       []string        `json:"layer_types"`
	ScalingPart      json.RawMessage `json:"rope_scaling"`
	ParametersPart   json.RawMessage `json:"rope_parameters"`
}

// readKeys are the keys that configFile knows.
var readKeys = []string{
	"model_type", "vocab_size", "hidden_size", "intermediate_size", "num_hidden_layers", "num_attention_heads",
	"num_key_value_heads", "head_dim", "max_position_embeddings", "rms_norm_eps", "rope_theta", "tie_word_embeddings",
	"attention_bias", "mlp_bias", "bos_token_id", "eos_token_id", "pad_token_id", "hidden_act", "attention_dropout",
	"pretraining_tp", "partial_rotary_factor", "use_sliding_window", "layer_types", "rope_scaling", "rope_parameters",
}

// neutralKeys change nothing about the function that the weights compute here:
// names, dtypes on disk, initialisation, caching, values read only with
// use_sliding_window.
var neutralKeys = []string{
	"architectures", "_name_or_path", "name_or_path", "transformers_version", "torch_dtype", "dtype", "initializer_range",
	"use_cache", "sliding_window", "max_window_layers", "is_llama_config", "transformers.js_config", "unsloth_version",
	"unsloth_fixed", "_attn_implementation_autoset", "attn_implementation", "_attn_implementation",
	"return_dict", "problem_type", "id2label", "label2id", "chunk_size_feed_forward",
}

// ParseConfig reads the bytes of a config.json of model_type llama, qwen2 or
// qwen3. A request for something that is not here (rope scaling other than
// llama3's, a sliding window, an activation other than silu, dropout,
// quantisation, any unknown key with a value) is an error that names it.
func ParseConfig(data []byte) (*Config, error) {
	var keys map[string]json.RawMessage
	if err := json.Unmarshal(data, &keys); err != nil {
		return nil, fmt.Errorf("config: %w", err)
	}
	required := []string{"vocab_size", "hidden_size", "intermediate_size", "num_hidden_layers", "num_attention_heads"}
	f := configFile{HiddenAct: "silu"}
	f.MaxPositionEmbeddings, f.RMSNormEps = 2048, 1e-6
	if err := json.Unmarshal(data, &f); err != nil {
		return nil, fmt.Errorf("config: %w", err)
	}
	if architectures[f.ModelType] == "" {
		return nil, f.Validate() // before a key of that type is blamed
	}
	if f.ModelType != Llama {
		if _, ok := keys["max_position_embeddings"]; !ok {
			f.MaxPositionEmbeddings = 32768
		}
		// Their default is 32 whatever the number of heads; a file that leaves that to chance is not guessed at.
		required = append(required, "num_key_value_heads")
	} else if v, ok := keys["sliding_window"]; ok && !isNeutral(v) {
		return nil, fmt.Errorf("config: sliding_window %s is not supported", v)
	}
	for _, key := range required {
		if _, ok := keys[key]; !ok {
			return nil, fmt.Errorf("config: %s is missing", key)
		}
	}
	if err := f.refuse(keys); err != nil {
		return nil, err
	}
	if err := f.rope(); err != nil {
		return nil, err
	}
	c := f.Config
	if c.NumKeyValueHeads == 0 {
		c.NumKeyValueHeads = c.NumAttentionHeads
	}
	if err := c.defaultHeadDim(); err != nil {
		return nil, err
	}
	if err := c.Validate(); err != nil {
		return nil, err
	}
	return &c, nil
}

// defaultHeadDim fills in the head size that a file left out.
func (c *Config) defaultHeadDim() error {
	switch {
	case c.HeadDim != 0 || c.NumAttentionHeads <= 0:
	case c.ModelType == Qwen3:
		c.HeadDim = 128
	case c.HiddenSize%c.NumAttentionHeads != 0:
		return fmt.Errorf("config: hidden_size %d is not a multiple of num_attention_heads %d, and there is no head_dim", c.HiddenSize, c.NumAttentionHeads)
	default:
		c.HeadDim = c.HiddenSize / c.NumAttentionHeads
	}
	return nil
}

// refuse names the first value that asks for what this package lacks.
func (f *configFile) refuse(keys map[string]json.RawMessage) error {
	switch {
	case f.HiddenAct != "silu" && f.HiddenAct != "swish":
		return fmt.Errorf("config: hidden_act %q is not supported, only \"silu\"", f.HiddenAct)
	case f.AttentionDropout != 0:
		return fmt.Errorf("config: attention_dropout %v is not supported", f.AttentionDropout)
	case f.PretrainingTP != nil && *f.PretrainingTP != 1:
		return fmt.Errorf("config: pretraining_tp %d is not supported", *f.PretrainingTP)
	case f.Partial != nil && *f.Partial != 1:
		return fmt.Errorf("config: partial_rotary_factor %v is not supported", *f.Partial)
	case f.UseSlidingWindow:
		return fmt.Errorf("config: use_sliding_window is not supported")
	}
	for i, kind := range f.LayerTypes {
		if kind != "full_attention" {
			return fmt.Errorf("config: layer_types[%d] %q is not supported, only \"full_attention\"", i, kind)
		}
	}
	known := map[string]bool{}
	for _, list := range [][]string{readKeys, neutralKeys} {
		for _, key := range list {
			known[key] = true
		}
	}
	var foreign []string
	for key, value := range keys {
		if !known[key] && !isNeutral(value) {
			foreign = append(foreign, key)
		}
	}
	if len(foreign) > 0 {
		sort.Strings(foreign)
		return fmt.Errorf("config: %s = %s is not supported", foreign[0], keys[foreign[0]])
	}
	return nil
}

// isNeutral tells whether a JSON value asks for nothing: null, false, 0, or an
// empty text, list or object.
func isNeutral(raw json.RawMessage) bool {
	switch string(bytes.TrimSpace(raw)) {
	case "null", "false", "0", "0.0", `""`, "[]", "{}":
		return true
	}
	return false
}

// marshal is config.json, as transformers 4 and 5 read it, of weights in the given type.
func (c *Config) marshal(weights torch.DType) ([]byte, error) {
	out := map[string]any{
		"architectures": []string{architectures[c.ModelType]}, "hidden_act": "silu", "torch_dtype": weights.String(),
		"attention_dropout": 0.0, "use_cache": true,
	}
	data, err := json.Marshal(c)
	if err != nil {
		return nil, fmt.Errorf("config: %w", err)
	}
	if err := json.Unmarshal(data, &out); err != nil {
		return nil, fmt.Errorf("config: %w", err)
	}
	rope := map[string]any{"rope_type": "default", "rope_theta": decimal(c.RopeTheta)}
	if s := c.RopeScaling; s != nil {
		scaling := map[string]any{"rope_type": llama3Rope, "factor": decimal(s.Factor),
			"low_freq_factor": decimal(s.LowFreqFactor), "high_freq_factor": decimal(s.HighFreqFactor),
			"original_max_position_embeddings": s.OriginalMaxPositionEmbeddings}
		out["rope_scaling"] = scaling // transformers 4
		rope = maps.Clone(scaling)
		rope["rope_theta"] = decimal(c.RopeTheta)
	}
	out["rope_parameters"] = rope
	if c.ModelType != Llama {
		delete(out, "mlp_bias")
	}
	if c.ModelType == Qwen2 {
		delete(out, "attention_bias")
	}
	data, err = json.MarshalIndent(out, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("config: %w", err)
	}
	return append(data, '\n'), nil
}

// decimal writes a whole number with a point: transformers warns of a factor that is no float.
func decimal(v float64) json.RawMessage {
	text := strconv.FormatFloat(v, 'g', -1, 64)
	if !strings.ContainsAny(text, ".e") {
		text += ".0"
	}
	return json.RawMessage(text)
}
