package gguf

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Type is how a tensor's elements are stored, numbered as ggml_type.
type Type uint32

// The types that are known.
const (
	F32  Type = 0
	F16  Type = 1
	Q4_0 Type = 2
	Q4_1 Type = 3
	Q5_0 Type = 6
	Q5_1 Type = 7
	Q8_0 Type = 8
	Q4_K Type = 12
	Q5_K Type = 13
	Q6_K Type = 14
	BF16 Type = 30
)

// types is the layout of each known type: so many elements in so many bytes.
var types = map[Type]struct {
	name       string
	elements   int64
	bytes      int64
	dequantise func(raw []byte, out []float32)
}{
	F32: {"F32", 1, 4, float32s}, F16: {"F16", 1, 2, float16s}, BF16: {"BF16", 1, 2, bfloat16s},
	Q4_0: {"Q4_0", 32, 18, q4_0}, Q4_1: {"Q4_1", 32, 20, q4_1}, Q5_0: {"Q5_0", 32, 22, q5_0}, Q5_1: {"Q5_1", 32, 24, q5_1},
	Q8_0: {"Q8_0", 32, 34, q8_0}, Q4_K: {"Q4_K", 256, 144, q4_k}, Q5_K: {"Q5_K", 256, 176, q5_k}, Q6_K: {"Q6_K", 256, 210, q6_k},
}

// others names ggml's types that are not known here, for messages.
var others = map[Type]string{
	9: "Q8_1", 10: "Q2_K", 11: "Q3_K", 15: "Q8_K", 16: "IQ2_XXS", 17: "IQ2_XS", 18: "IQ3_XXS", 19: "IQ1_S", 20: "IQ4_NL",
	21: "IQ3_S", 22: "IQ2_S", 23: "IQ4_XS", 24: "I8", 25: "I16", 26: "I32", 27: "I64", 28: "F64", 29: "IQ1_M",
	34: "TQ1_0", 35: "TQ2_0", 39: "MXFP4",
}

// String is ggml's name of the type.
func (t Type) String() string {
	if k, ok := types[t]; ok {
		return k.name
	}
	if name, ok := others[t]; ok {
		return name
	}
	return fmt.Sprintf("type(%d)", uint32(t))
}

// check reports a type that is not known and rows that blocks do not fill.
func (t Type) check(columns int64) error {
	k, ok := types[t]
	if !ok {
		var names []string
		for _, known := range slices.Sorted(maps.Keys(types)) {
			names = append(names, known.String())
		}
		return fmt.Errorf("type %v is not supported, only %s", t, strings.Join(names, ", "))
	}
	if columns%k.elements != 0 {
		return fmt.Errorf("rows of %d elements are no whole blocks of %v, which have %d", columns, t, k.elements)
	}
	return nil
}

// rowBytes is the size of a row of so many elements.
func (t Type) rowBytes(columns int64) int64 { return columns / types[t].elements * types[t].bytes }
