package model

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"sort"
)

// llama3Rope is the rope_type of the one scaling that is known.
const llama3Rope = "llama3"

// RopeScaling is Llama 3's stretching of rotary positions, by the names of
// config.json: wavelengths longer than original_max_position_embeddings /
// low_freq_factor grow by factor, those shorter than
// original_max_position_embeddings / high_freq_factor stay, and those between
// are interpolated. As transformers' _compute_llama3_parameters.
type RopeScaling struct {
	Factor                        float64 `json:"factor"`
	LowFreqFactor                 float64 `json:"low_freq_factor"`
	HighFreqFactor                float64 `json:"high_freq_factor"`
	OriginalMaxPositionEmbeddings int     `json:"original_max_position_embeddings"`
}

// validate reports values that make no scaling; nil is valid.
func (s *RopeScaling) validate() error {
	switch {
	case s == nil:
	case !(s.Factor >= 1) || math.IsInf(s.Factor, 0):
		return fmt.Errorf("config: rope scaling: factor is %v", s.Factor)
	case !(s.LowFreqFactor > 0) || !(s.HighFreqFactor > s.LowFreqFactor) || math.IsInf(s.HighFreqFactor, 0):
		return fmt.Errorf("config: rope scaling: low_freq_factor %v must be above 0 and below high_freq_factor %v", s.LowFreqFactor, s.HighFreqFactor)
	case s.OriginalMaxPositionEmbeddings < 1:
		return fmt.Errorf("config: rope scaling: original_max_position_embeddings is %d", s.OriginalMaxPositionEmbeddings)
	}
	return nil
}

// scale changes inverse frequencies in place, float32 at each step as transformers does; nil leaves them.
func (s *RopeScaling) scale(inverse []float32) {
	if s == nil {
		return
	}
	original := float64(s.OriginalMaxPositionEmbeddings)
	longest, shortest := float32(original/s.LowFreqFactor), float32(original/s.HighFreqFactor)
	factor := float32(s.Factor)
	for i, f := range inverse {
		wavelength := float32(2*math.Pi) / f
		switch {
		case wavelength > longest:
			inverse[i] = f / factor
		case wavelength >= shortest:
			smooth := (float32(original)/wavelength - float32(s.LowFreqFactor)) / float32(s.HighFreqFactor-s.LowFreqFactor)
			inverse[i] = (1-smooth)*f/factor + smooth*f
		}
	}
}

// ropePart is rope_parameters (transformers 5) or rope_scaling (4).
type ropePart struct {
	kind    string // rope_type, or type, its older name; "default" without
	theta   *float64
	scaling *RopeScaling
}

// read takes a part of kind default or llama3 and refuses, by name, what it would have to ignore.
func (p *ropePart) read(data []byte) error {
	var fields struct {
		RopeType string   `json:"rope_type"`
		Type     string   `json:"type"`
		Theta    *float64 `json:"rope_theta"`
		Partial  *float64 `json:"partial_rotary_factor"`
		RopeScaling
	}
	var keys map[string]json.RawMessage
	if err := json.Unmarshal(data, &keys); err != nil {
		return err
	}
	if err := json.Unmarshal(data, &fields); err != nil {
		return err
	}
	if fields.RopeType != "" && fields.Type != "" && fields.RopeType != fields.Type {
		return fmt.Errorf("rope_type %q and type %q differ", fields.RopeType, fields.Type)
	}
	p.theta, p.kind = fields.Theta, "default"
	for _, kind := range []string{fields.RopeType, fields.Type} {
		if kind != "" {
			p.kind = kind
		}
	}
	known := []string{"rope_type", "type", "rope_theta", "partial_rotary_factor"}
	switch p.kind {
	case "default":
	case llama3Rope:
		own := []string{"factor", "low_freq_factor", "high_freq_factor", "original_max_position_embeddings"}
		for _, key := range own {
			if keys[key] == nil {
				return fmt.Errorf("%s is missing", key)
			}
		}
		known = append(known, own...)
		p.scaling = &fields.RopeScaling
	default:
		return fmt.Errorf("type %q is not supported", p.kind)
	}
	if fields.Partial != nil && *fields.Partial != 1 {
		return fmt.Errorf("partial_rotary_factor %v is not supported", *fields.Partial)
	}
	var foreign []string
	for key, value := range keys {
		if !slices.Contains(known, key) && !isNeutral(value) {
			foreign = append(foreign, key)
		}
	}
	if len(foreign) > 0 {
		sort.Strings(foreign)
		return fmt.Errorf("%s = %s is not supported with type %q", foreign[0], keys[foreign[0]], p.kind)
	}
	return nil
}

// rope takes base and scaling from whichever place holds them; two places must agree.
func (f *configFile) rope() error {
	var before *ropePart
	for _, place := range []struct {
		name string
		raw  json.RawMessage
	}{{"rope_scaling", f.ScalingPart}, {"rope_parameters", f.ParametersPart}} {
		name, part := place.name, &ropePart{}
		if len(place.raw) == 0 || isNeutral(place.raw) {
			continue
		}
		if err := part.read(place.raw); err != nil {
			return fmt.Errorf("config: %s: %w", name, err)
		}
		if part.theta != nil {
			if f.RopeTheta != 0 && f.RopeTheta != *part.theta {
				return fmt.Errorf("config: rope_theta %v and %s.rope_theta %v differ", f.RopeTheta, name, *part.theta)
			}
			f.RopeTheta = *part.theta
		}
		if before != nil && (before.kind != part.kind || part.scaling != nil && *before.scaling != *part.scaling) {
			return fmt.Errorf("config: rope_scaling and rope_parameters differ")
		}
		before, f.Config.RopeScaling = part, part.scaling
	}
	if f.RopeTheta == 0 {
		f.RopeTheta = 10000
	}
	return nil
}
