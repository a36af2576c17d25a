package model

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
)

// The model types that are known, by their name in config.json.
const (
	Llama = "llama" // Llama 2 and 3, SmolLM2
	Qwen2 = "qwen2" // Qwen2, Qwen2.5
	Qwen3 = "qwen3"
)

// architectures are the class names that transformers gives them.
var architectures = map[string]string{Llama: "LlamaForCausalLM", Qwen2: "Qwen2ForCausalLM", Qwen3: "Qwen3ForCausalLM"}

// Config describes a decoder by the names that config.json has for it. What a
// file leaves out takes Hugging Face's default.
type Config struct {
	ModelType             string   `json:"model_type"` // Llama, Qwen2 or Qwen3
	VocabSize             int      `json:"vocab_size"`
	HiddenSize            int      `json:"hidden_size"`
	IntermediateSize      int      `json:"intermediate_size"`
	NumHiddenLayers       int      `json:"num_hidden_layers"`
	NumAttentionHeads     int      `json:"num_attention_heads"`
	NumKeyValueHeads      int      `json:"num_key_value_heads"`
	HeadDim               int      `json:"head_dim"`                // heads times head_dim need not be hidden_size
	MaxPositionEmbeddings int      `json:"max_position_embeddings"` // the context limit, in tokens
	RMSNormEps            float64  `json:"rms_norm_eps"`
	RopeTheta             float64  `json:"rope_theta"`
	TieWordEmbeddings     bool     `json:"tie_word_embeddings"`
	AttentionBias         bool     `json:"attention_bias"` // llama, qwen3: q, k, v and o have biases; qwen2 always has q, k, v alone
	MLPBias               bool     `json:"mlp_bias"`       // llama alone
	BOSTokenID            *int32   `json:"bos_token_id"`
	EOSTokenID            TokenIDs `json:"eos_token_id"`
	PadTokenID            *int32   `json:"pad_token_id"`

	RopeScaling *RopeScaling `json:"rope_scaling,omitempty"` // nil: positions as they are
}

// TokenIDs is a list of ids that JSON holds as null, one number or a list.
type TokenIDs []int32

// UnmarshalJSON reads null, a number or a list of numbers.
func (t *TokenIDs) UnmarshalJSON(data []byte) error {
	var one *int32
	if json.Unmarshal(data, &one) == nil {
		*t = nil
		if one != nil {
			*t = TokenIDs{*one}
		}
		return nil
	}
	var list []int32
	if err := json.Unmarshal(data, &list); err != nil {
		return errors.New("token ids are neither a number nor a list of numbers")
	}
	*t = list
	return nil
}

// MarshalJSON writes null, a number or a list of numbers.
func (t TokenIDs) MarshalJSON() ([]byte, error) {
	switch len(t) {
	case 0:
		return []byte("null"), nil
	case 1:
		return json.Marshal(t[0])
	}
	return json.Marshal([]int32(t))
}

// Validate reports the first value that no decoder of this package can have.
func (c *Config) Validate() error {
	if architectures[c.ModelType] == "" {
		return fmt.Errorf("config: model_type %q is not supported, only %q, %q and %q", c.ModelType, Llama, Qwen2, Qwen3)
	}
	for _, size := range []struct {
		name  string
		value int
		most  int // what is beyond is a broken file, not a model
	}{
		{"vocab_size", c.VocabSize, 1 << 30}, {"hidden_size", c.HiddenSize, 1 << 30}, {"intermediate_size", c.IntermediateSize, 1 << 30},
		{"num_hidden_layers", c.NumHiddenLayers, 1 << 12}, {"num_attention_heads", c.NumAttentionHeads, 1 << 16},
		{"num_key_value_heads", c.NumKeyValueHeads, 1 << 16}, {"head_dim", c.HeadDim, 1 << 14},
		{"max_position_embeddings", c.MaxPositionEmbeddings, 1 << 30},
	} {
		if size.value <= 0 || size.value > size.most {
			return fmt.Errorf("config: %s is %d", size.name, size.value)
		}
	}
	switch {
	case c.NumAttentionHeads%c.NumKeyValueHeads != 0:
		return fmt.Errorf("config: num_attention_heads %d is not a multiple of num_key_value_heads %d", c.NumAttentionHeads, c.NumKeyValueHeads)
	case c.HeadDim%2 != 0:
		return fmt.Errorf("config: head_dim %d is odd", c.HeadDim)
	case !(c.RMSNormEps > 0):
		return fmt.Errorf("config: rms_norm_eps is %v", c.RMSNormEps)
	case !(c.RopeTheta > 1):
		return fmt.Errorf("config: rope_theta is %v", c.RopeTheta)
	case c.ModelType == Qwen2 && (c.AttentionBias || c.MLPBias):
		return errors.New("config: qwen2 has no attention_bias or mlp_bias")
	case c.ModelType == Qwen3 && c.MLPBias:
		return errors.New("config: qwen3 has no mlp_bias")
	}
	if err := c.RopeScaling.validate(); err != nil {
		return err
	}
	ids := slices.Clone(c.EOSTokenID)
	for _, id := range []*int32{c.BOSTokenID, c.PadTokenID} {
		if id != nil {
			ids = append(ids, *id)
		}
	}
	for _, id := range ids {
		// -1 stands for "none" in some configs.
		if id < -1 || int(id) >= c.VocabSize {
			return fmt.Errorf("config: special token id %d is outside the vocabulary of %d", id, c.VocabSize)
		}
	}
	return nil
}

// qkvBias tells whether the query, key and value projections have biases.
func (c *Config) qkvBias() bool { return c.ModelType == Qwen2 || c.AttentionBias }

// outBias tells whether the attention's output projection has a bias.
func (c *Config) outBias() bool { return c.ModelType != Qwen2 && c.AttentionBias }

// qkNorm tells whether each query and key head is normalised before it is rotated.
func (c *Config) qkNorm() bool { return c.ModelType == Qwen3 }

// mlpBias tells whether the feed-forward projections have biases.
func (c *Config) mlpBias() bool { return c.ModelType == Llama && c.MLPBias }
