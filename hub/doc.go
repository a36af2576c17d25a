// Package hub downloads published models and data: with resume, checked against
// the size and hash that the publisher states, and safe when two processes want
// the same file.
//
// Downloader fetches one URL. Hub reads repositories of huggingface.co (or of
// HF_ENDPOINT) and keeps them in the cache that Hugging Face's own tools use, so
// that either finds what the other downloaded. Models and Resolve know the
// models by name.
package hub
