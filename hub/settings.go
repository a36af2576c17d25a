package hub

import (
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
)

// Hub is huggingface.co or a server that speaks like it, and the cache that its
// files are kept in.
type Hub struct {
	Downloader
	Endpoint string // such as https://huggingface.co
	Token    string // "": none
	Cache    string // folder with models--ORG--NAME folders
	Offline  bool   // the cache alone
}

// FromEnvironment takes the settings that Hugging Face's tools take: HF_ENDPOINT,
// HF_TOKEN or the file HF_TOKEN_PATH (HF_HOME/token), HF_HUB_CACHE (HF_HOME/hub),
// HF_HOME ($XDG_CACHE_HOME/huggingface), HF_HUB_OFFLINE, TRANSFORMERS_OFFLINE.
func FromEnvironment() (*Hub, error) {
	home, err := hfHome()
	if err != nil {
		return nil, err
	}
	h := &Hub{
		Endpoint: strings.TrimRight(firstOf("HF_ENDPOINT", "https://huggingface.co"), "/"),
		Cache:    expand(firstOf("HF_HUB_CACHE", firstOf("HUGGINGFACE_HUB_CACHE", filepath.Join(home, "hub")))),
		Offline:  isTrue(os.Getenv("HF_HUB_OFFLINE")) || isTrue(os.Getenv("TRANSFORMERS_OFFLINE")),
	}
	u, err := url.Parse(h.Endpoint)
	if err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Host == "" {
		return nil, fmt.Errorf("HF_ENDPOINT %q is not an http or https address", h.Endpoint)
	}
	h.Token, err = token(home)
	return h, err
}

// hfHome is HF_HOME with Hugging Face's defaults.
func hfHome() (string, error) {
	if home := os.Getenv("HF_HOME"); home != "" {
		return expand(home), nil
	}
	if cache := os.Getenv("XDG_CACHE_HOME"); cache != "" {
		return filepath.Join(expand(cache), "huggingface"), nil
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return "", fmt.Errorf("no place for the cache: set HF_HOME: %w", err)
	}
	return filepath.Join(home, ".cache", "huggingface"), nil
}

// token is the user's, from the environment or the file that `hf auth login` writes.
func token(home string) (string, error) {
	for _, name := range []string{"HF_TOKEN", "HUGGING_FACE_HUB_TOKEN"} {
		if t := strings.TrimSpace(os.Getenv(name)); t != "" {
			return t, nil
		}
	}
	if isTrue(os.Getenv("HF_HUB_DISABLE_IMPLICIT_TOKEN")) {
		return "", nil
	}
	data, err := os.ReadFile(expand(firstOf("HF_TOKEN_PATH", filepath.Join(home, "token"))))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return "", fmt.Errorf("token: %w", err)
	}
	return strings.TrimSpace(string(data)), nil
}

// firstOf is the variable's value, or the default where it is empty.
func firstOf(variable, otherwise string) string {
	if value := os.Getenv(variable); value != "" {
		return value
	}
	return otherwise
}

// expand resolves ~ and variables, as Hugging Face's tools do.
func expand(path string) string {
	path = os.ExpandEnv(path)
	if rest, ok := strings.CutPrefix(path, "~/"); ok {
		if home, err := os.UserHomeDir(); err == nil {
			return filepath.Join(home, rest)
		}
	}
	return path
}

func isTrue(value string) bool {
	switch strings.ToUpper(value) {
	case "1", "ON", "YES", "TRUE":
		return true
	}
	return false
}
