// Package gguf reads GGUF model files, llama.cpp's format: the metadata, the
// tensors, whose quantised blocks it turns into float32, and the tokenizer. Pure
// Go. The format is described in github.com/ggml-org/ggml/blob/master/docs/gguf.md,
// the blocks in ggml-common.h of the same repository.
//
// A file is not trusted: counts, lengths and offsets are held against the size
// of the file before anything is allocated for them. That, and dequantisation,
// is why the header is read here and not by github.com/gpustack/gguf-parser-go,
// which would also bring an HTTP client and some 25 packages that are not used.
package gguf
