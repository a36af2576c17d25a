// Package model is a decoder-only transformer on libtorch: root mean square
// normalisation, rotary positions in the half-rotation form, grouped-query
// attention and a SwiGLU feed-forward block, as in Hugging Face's llama, qwen2
// and qwen3, whose checkpoint folders it reads and writes. It reads GGUF files of
// these too (package gguf).
//
// Hidden scores packed sequences (package align) without a dense mask over the
// whole sequence: every token runs once through the token-wise layers, and
// attention works on one row a block, whose keys are the prefix and the block
// itself. Sampler generates with a key-value cache and refills finished rows.
//
// Shapes in comments: N tokens in a flat batch, R attention rows, C places in a
// row, P places for its prefix, A actions, D hidden size, F feed-forward size,
// H heads, K key-value heads, E head size, V vocabulary.
package model
