package model

import (
	"fmt"
	"math"
	"strings"

	"github.com/memopd/memopd-bench/model/gguf"
)

// ropeFreqsName is the tensor by which GGUF files stretch rotary positions: what
// each inverse frequency is divided by.
const ropeFreqsName = "rope_freqs.weight"

// ggufConfig reads the configuration from the metadata of a llama, qwen2 or qwen3
// file. As ParseConfig, it refuses by name what this package lacks.
func ggufConfig(f *gguf.File) (*Config, error) {
	arch, _, err := f.String("general.architecture")
	if err != nil {
		return nil, err
	}
	if architectures[arch] == "" {
		return nil, fmt.Errorf("general.architecture %q is not supported, only %q, %q and %q", arch, Llama, Qwen2, Qwen3)
	}
	if parts, _, err := f.Uint("split.count"); err != nil || parts > 1 {
		return nil, fmt.Errorf("split.count is %v: files in parts are not supported", f.Value("split.count"))
	}
	m := ggufMeta{f: f, prefix: arch + ".", read: map[string]bool{}}
	c := &Config{
		ModelType: arch, MaxPositionEmbeddings: m.size("context_length", true), HiddenSize: m.size("embedding_length", true),
		NumHiddenLayers: m.size("block_count", true), IntermediateSize: m.size("feed_forward_length", true),
		NumAttentionHeads: m.size("attention.head_count", true), NumKeyValueHeads: m.size("attention.head_count_kv", false),
		RMSNormEps: m.float("attention.layer_norm_rms_epsilon", 0), RopeTheta: m.float("rope.freq_base", 10000),
		HeadDim: m.size("attention.key_length", false), TieWordEmbeddings: true,
	}
	if t, ok := f.Tensor("output.weight"); ok {
		c.TieWordEmbeddings, c.VocabSize = false, int(t.Shape[0])
	}
	if t, ok := f.Tensor("token_embd.weight"); ok {
		c.VocabSize = int(t.Shape[0])
	}
	if c.NumKeyValueHeads == 0 {
		c.NumKeyValueHeads = c.NumAttentionHeads
	}
	if c.HeadDim == 0 && c.NumAttentionHeads > 0 {
		c.HeadDim = c.HiddenSize / c.NumAttentionHeads
	}
	m.equal("attention.value_length", c.HeadDim, "the head size")
	m.equal("rope.dimension_count", c.HeadDim, "the head size")
	m.equal("vocab_size", c.VocabSize, "the rows of token_embd.weight")
	m.ropeScaling()
	_, bias := f.Tensor("blk.0.attn_q.bias")
	c.AttentionBias = bias && arch != Qwen2
	_, bias = f.Tensor("blk.0.ffn_down.bias")
	c.MLPBias = bias && arch == Llama
	m.tokens(c)
	m.foreign()
	if m.err != nil {
		return nil, m.err
	}
	if err := c.Validate(); err != nil {
		return nil, err
	}
	if c.RopeScaling, err = ggufScaling(f, c); err != nil {
		return nil, err
	}
	return c, nil
}

// ggufMeta reads an architecture's keys, notes which were read, and keeps the first error.
type ggufMeta struct {
	f      *gguf.File
	prefix string
	read   map[string]bool
	err    error
}

func (m *ggufMeta) fail(err error) {
	if m.err == nil {
		m.err = err
	}
}

func (m *ggufMeta) size(key string, needed bool) int {
	key = m.prefix + key
	m.read[key] = true
	v, ok, err := m.f.Uint(key)
	switch {
	case err != nil:
		m.fail(err)
	case !ok && needed:
		m.fail(fmt.Errorf("metadata %q is missing", key))
	case v > 1<<30:
		m.fail(fmt.Errorf("metadata %q is %d", key, v))
	}
	return int(min(v, 1<<30))
}

func (m *ggufMeta) float(key string, absent float64) float64 {
	key = m.prefix + key
	m.read[key] = true
	v, ok, err := m.f.Float(key)
	if err != nil {
		m.fail(err)
	}
	if !ok {
		return absent
	}
	// 32 bits of 1e-05 are 9.99999974e-06; config.json says what was meant.
	short := math.Round(v*1e12) / 1e12
	if float32(short) == float32(v) {
		return short
	}
	return v
}

// equal holds a key that may be absent to the one value that is supported.
func (m *ggufMeta) equal(key string, want int, what string) {
	if got := m.size(key, false); got != 0 && got != want {
		m.fail(fmt.Errorf("metadata %q is %d, only %s, %d, is supported", m.prefix+key, got, what, want))
	}
}

// ropeScaling refuses what stretches positions by metadata; llama3's is a tensor.
func (m *ggufMeta) ropeScaling() {
	kind := m.prefix + "rope.scaling.type"
	m.read[kind] = true
	if s, ok, err := m.f.String(kind); err != nil {
		m.fail(err)
	} else if ok && s != "none" {
		m.fail(fmt.Errorf("metadata %q is %q, which is not supported", kind, s))
	}
	for _, key := range []string{"rope.scaling.factor", "rope.scale_linear", "rope.scaling.attn_factor"} {
		if v := m.float(key, 1); v != 1 && v != 0 {
			m.fail(fmt.Errorf("metadata %q is %v, which is not supported", m.prefix+key, v))
		}
	}
}

// tokens takes the special ids. Chat models end a turn with eot or eom where they have one.
func (m *ggufMeta) tokens(c *Config) {
	id := func(key string) *int32 {
		v, ok, err := m.f.Uint("tokenizer.ggml." + key)
		if err != nil {
			m.fail(err)
		}
		if !ok || v > math.MaxInt32 {
			return nil
		}
		short := int32(v)
		return &short
	}
	c.BOSTokenID, c.PadTokenID = id("bos_token_id"), id("padding_token_id")
	seen := map[int32]bool{}
	for _, key := range []string{"eos_token_id", "eot_token_id", "eom_token_id"} {
		if v := id(key); v != nil && !seen[*v] {
			seen[*v] = true
			c.EOSTokenID = append(c.EOSTokenID, *v)
		}
	}
}

// foreign refuses the architecture's keys that were not read.
func (m *ggufMeta) foreign() {
	for _, key := range m.f.Keys() {
		if !strings.HasPrefix(key, m.prefix) || m.read[key] {
			continue
		}
		switch v := m.f.Value(key); v {
		case false, uint64(0), int64(0), 0.0, "":
		default:
			m.fail(fmt.Errorf("metadata %q = %.40s is not supported", key, fmt.Sprint(v)))
		}
	}
}

// ggufScaling finds the values of Llama 3's scaling behind rope_freqs.weight: the
// file holds what they came to. llama.cpp's converter writes it for llama3 alone,
// of which every published model has the values 1, 4 and 8192 beside the factor,
// which is the largest divisor. Divisors that these do not give are refused.
func ggufScaling(f *gguf.File, c *Config) (*RopeScaling, error) {
	t, ok := f.Tensor(ropeFreqsName)
	if !ok {
		return nil, nil
	}
	if len(t.Shape) != 1 || t.Shape[0] != int64(c.HeadDim/2) {
		return nil, fmt.Errorf("tensor %q has the shape %v, want [%d]", ropeFreqsName, t.Shape, c.HeadDim/2)
	}
	divisors, err := f.Rows(ropeFreqsName, 0, 1)
	if err != nil {
		return nil, err
	}
	s := &RopeScaling{LowFreqFactor: 1, HighFreqFactor: 4, OriginalMaxPositionEmbeddings: 8192}
	for _, d := range divisors {
		s.Factor = max(s.Factor, float64(d))
	}
	if err := s.validate(); err != nil {
		return nil, fmt.Errorf("tensor %q: %w", ropeFreqsName, err)
	}
	plain, scaled := *c, *c
	plain.RopeScaling, scaled.RopeScaling = nil, s
	before, after := newRopeTable(&plain).inverse, newRopeTable(&scaled).inverse
	for i, d := range divisors {
		if got := before[i] / d; !(math.Abs(float64(got/after[i]-1)) < 1e-5) {
			return nil, fmt.Errorf("tensor %q is none of llama3's scaling: divisor %d is %v, want %v", ropeFreqsName, i, d, before[i]/after[i])
		}
	}
	return s, nil
}
