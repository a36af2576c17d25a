package hub

import (
	"fmt"
	"os"
	"path"
	"slices"
	"strings"
)

// The files of a model that are read here or by transformers.
const (
	configName    = "config.json"
	singleWeights = "model.safetensors"
	weightsIndex  = "model.safetensors.index.json"
)

// aroundWeights are the files beside the weights, fetched where a repository has them.
var aroundWeights = []string{
	configName, "generation_config.json", "tokenizer.json", "tokenizer_config.json", "special_tokens_map.json",
	"added_tokens.json", "chat_template.jinja",
}

// fetchChosen gets the files that are wanted, small ones first, so that a model
// that cannot be used shows early. Parts are those that the index names, not
// every file of that kind: some repositories hold the weights twice.
func fetchChosen(l *Listing, patterns []string, get func(Entry) (string, error)) error {
	if len(patterns) > 0 {
		chosen, err := matching(l, patterns)
		if err != nil {
			return err
		}
		return getAll(chosen, get)
	}
	byName := map[string]Entry{}
	for _, e := range l.Files {
		byName[e.Name] = e
	}
	var chosen []Entry
	for _, name := range aroundWeights {
		if e, ok := byName[name]; ok {
			chosen = append(chosen, e)
		}
	}
	single, hasSingle := byName[singleWeights]
	index, hasIndex := byName[weightsIndex]
	gguf := withSuffix(l, ".gguf")
	switch {
	case hasSingle:
		return getAll(append(chosen, single), get)
	case hasIndex:
		return fetchParts(l.Repo, byName, append(chosen, index), get)
	case len(gguf) == 1:
		return getAll(append(chosen, gguf...), get)
	}
	return fmt.Errorf("%s has no %s%s", l.Repo.ID, singleWeights, instead(l))
}

// fetchParts gets the files of which the last is the index, then those it names.
func fetchParts(repo Repo, byName map[string]Entry, chosen []Entry, get func(Entry) (string, error)) error {
	if err := getAll(chosen[:len(chosen)-1], get); err != nil {
		return err
	}
	file, err := get(chosen[len(chosen)-1])
	if err != nil {
		return err
	}
	data, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	names, err := partsOf(data)
	if err != nil {
		return fmt.Errorf("%s: %w", repo.ID, err)
	}
	slices.Sort(names)
	var parts []Entry
	for _, name := range names {
		e, ok := byName[name]
		if !ok {
			return fmt.Errorf("%s: %s, which the index names, is %w", repo.ID, name, ErrNotFound)
		}
		parts = append(parts, e)
	}
	return getAll(parts, get)
}

func getAll(entries []Entry, get func(Entry) (string, error)) error {
	for _, e := range entries {
		if _, err := get(e); err != nil {
			return err
		}
	}
	return nil
}

// matching lists the files that any pattern fits; a pattern that fits none is an error.
func matching(l *Listing, patterns []string) ([]Entry, error) {
	var out []Entry
	for _, pattern := range patterns {
		found := false
		for _, e := range l.Files {
			ok, err := path.Match(pattern, e.Name)
			if err != nil {
				return nil, fmt.Errorf("pattern %q: %w", pattern, err)
			}
			found = found || ok
			if ok && !slices.Contains(out, e) {
				out = append(out, e)
			}
		}
		if !found {
			return nil, fmt.Errorf("%s: file %q is %w", l.Repo.ID, pattern, ErrNotFound)
		}
	}
	return out, nil
}

// withSuffix lists the files at the top whose name ends so.
func withSuffix(l *Listing, suffix string) []Entry {
	var out []Entry
	for _, e := range l.Files {
		if !strings.Contains(e.Name, "/") && strings.HasSuffix(e.Name, suffix) {
			out = append(out, e)
		}
	}
	return out
}

// instead names what a repository without usable weights does have.
func instead(l *Listing) string {
	var names []string
	for _, suffix := range []string{".safetensors", ".gguf", ".bin", ".pth"} {
		for _, e := range withSuffix(l, suffix) {
			names = append(names, e.Name)
		}
	}
	if len(names) == 0 {
		return ""
	}
	return " but " + strings.Join(names, ", ") + "; a file can be named"
}
