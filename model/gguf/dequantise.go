package gguf

import (
	"encoding/binary"
	"math"
)

// Each function turns whole blocks into float32, one after another, in the order
// of operations of ggml's dequantize_row_*. Products are converted to float32
// before a sum, so that no compiler fuses the two.

func float32s(raw []byte, out []float32) {
	for i := range out {
		out[i] = math.Float32frombits(binary.LittleEndian.Uint32(raw[4*i:]))
	}
}

func float16s(raw []byte, out []float32) {
	for i := range out {
		out[i] = half(raw[2*i:])
	}
}

func bfloat16s(raw []byte, out []float32) {
	for i := range out {
		out[i] = math.Float32frombits(uint32(binary.LittleEndian.Uint16(raw[2*i:])) << 16)
	}
}

// half reads an IEEE 754 binary16.
func half(b []byte) float32 {
	h := uint32(binary.LittleEndian.Uint16(b))
	sign, exponent, fraction := h>>15<<31, h>>10&0x1f, h&0x3ff
	switch exponent {
	case 0: // subnormal: fraction times 2^-24
		return math.Float32frombits(sign | math.Float32bits(float32(fraction)*(1.0/(1<<24))))
	case 0x1f: // infinite or not a number
		return math.Float32frombits(sign | 0xff<<23 | fraction<<13)
	}
	return math.Float32frombits(sign | (exponent+127-15)<<23 | fraction<<13)
}

// nibbles writes the low halves of 16 bytes, then the high halves, each less bias, times d, plus m.
func nibbles(qs []byte, out []float32, d float32, bias int, m float32) {
	for j, q := range qs[:16] {
		out[j] = float32(float32(int(q&15)-bias)*d) + m
		out[j+16] = float32(float32(int(q>>4)-bias)*d) + m
	}
}

// q4_0: scale, 32 nibbles.
func q4_0(raw []byte, out []float32) {
	for ; len(out) > 0; raw, out = raw[18:], out[32:] {
		nibbles(raw[2:], out, half(raw), 8, 0)
	}
}

// q4_1: scale, minimum, 32 nibbles.
func q4_1(raw []byte, out []float32) {
	for ; len(out) > 0; raw, out = raw[20:], out[32:] {
		nibbles(raw[4:], out, half(raw), 0, half(raw[2:]))
	}
}

// fifths is nibbles with a fifth bit for each of the 32 values.
func fifths(high uint32, qs []byte, out []float32, d float32, bias int, m float32) {
	for j, q := range qs[:16] {
		low, up := int(q&15)|int(high>>j&1)<<4, int(q>>4)|int(high>>(j+16)&1)<<4
		out[j] = float32(float32(low-bias)*d) + m
		out[j+16] = float32(float32(up-bias)*d) + m
	}
}

// q5_0: scale, 32 fifth bits, 32 nibbles.
func q5_0(raw []byte, out []float32) {
	for ; len(out) > 0; raw, out = raw[22:], out[32:] {
		fifths(binary.LittleEndian.Uint32(raw[2:]), raw[6:], out, half(raw), 16, 0)
	}
}

// q5_1: scale, minimum, 32 fifth bits, 32 nibbles.
func q5_1(raw []byte, out []float32) {
	for ; len(out) > 0; raw, out = raw[24:], out[32:] {
		fifths(binary.LittleEndian.Uint32(raw[4:]), raw[8:], out, half(raw), 0, half(raw[2:]))
	}
}

// q8_0: scale, 32 signed bytes.
func q8_0(raw []byte, out []float32) {
	for ; len(out) > 0; raw, out = raw[34:], out[32:] {
		d := half(raw)
		for j, q := range raw[2:34] {
			out[j] = float32(int8(q)) * d
		}
	}
}

// scaleMin unpacks scale and minimum of sub-block j of 8, six bits each, from the 12 bytes that q4_k and q5_k share.
func scaleMin(packed []byte, j int) (scale, minimum float32) {
	if j < 4 {
		return float32(packed[j] & 63), float32(packed[j+4] & 63)
	}
	return float32(packed[j+4]&15 | packed[j-4]>>6<<4), float32(packed[j+4]>>4 | packed[j]>>6<<4)
}

// q4_k: scale of scales, scale of minima, 12 bytes of scales and minima, 256 nibbles.
func q4_k(raw []byte, out []float32) {
	for ; len(out) > 0; raw, out = raw[144:], out[256:] {
		kSub(raw, raw[16:144], nil, out)
	}
}

// q5_k: as q4_k, with 256 fifth bits before the nibbles.
func q5_k(raw []byte, out []float32) {
	for ; len(out) > 0; raw, out = raw[176:], out[256:] {
		kSub(raw, raw[48:176], raw[16:48], out)
	}
}

// kSub writes the 8 sub-blocks of 32 of a q4_k or q5_k block: sub-blocks 2i and
// 2i+1 are the low and high halves of the same 32 bytes, and bit j of high byte l
// is the fifth bit of value l of sub-block j.
func kSub(raw, qs, high []byte, out []float32) {
	d, least := half(raw), half(raw[2:])
	for j := range 8 {
		scale, minimum := scaleMin(raw[4:16], j)
		scale, minimum = d*scale, least*minimum
		for l, q := range qs[j/2*32:][:32] {
			v := q >> (j % 2 * 4) & 15
			if high != nil {
				v |= high[l] >> j & 1 << 4
			}
			out[j*32+l] = float32(scale*float32(v)) - minimum
		}
	}
}

// q6_k: 256 low nibbles, 256 upper pairs of bits, 16 signed scales, scale of scales.
func q6_k(raw []byte, out []float32) {
	for ; len(out) > 0; raw, out = raw[210:], out[256:] {
		d := half(raw[208:])
		for h := range 2 {
			low, up, scales := raw[h*64:][:64], raw[128+h*32:][:32], raw[192+h*8:][:8]
			for part := range 4 { // 32 values each: nibbles of the first or second 32 bytes, low then high
				for l := range 32 {
					q := low[part%2*32+l] >> (part / 2 * 4) & 15
					v := int(q|up[l]>>(part*2)&3<<4) - 32
					out[h*128+part*32+l] = float32(d*float32(int8(scales[part*2+l/16]))) * float32(v)
				}
			}
		}
	}
}
