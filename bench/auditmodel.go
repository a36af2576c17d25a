package main

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/memopd/memopd-bench/align"
	"github.com/memopd/memopd-bench/model"
	"github.com/memopd/memopd-bench/model/tokenizer"
	"github.com/memopd/memopd-bench/presets"
	"github.com/memopd/memopd-bench/trace"
)

// load loads the model that --model names, or that sampled the trajectories.
func (s auditSource) load(in *auditInput, p model.Placement) (err error) {
	in.from = s.Model
	if in.from == "" {
		if in.from, err = s.sampledBy(in.trajectories); err != nil {
			return err
		}
	}
	in.model, in.tokenizer, err = loadAudited(&in.from, p)
	if err != nil {
		return err
	}
	if err := in.sameTokenizer(); err != nil {
		in.model.Free()
		return err
	}
	return nil
}

// sampledBy is the one model that the trajectories name, or the run's.
func (s auditSource) sampledBy(trajectories []*trace.Trajectory) (string, error) {
	if s.Runs != "" {
		if path, err := trainedModel(s.Runs); err != nil || path != "" {
			return path, err
		}
	}
	var names []string
	for _, t := range trajectories {
		if !slices.Contains(names, t.Model) {
			names = append(names, t.Model)
		}
	}
	if len(names) > 1 {
		return "", fmt.Errorf("the ledgers were sampled by several models (%s): name one with --model, or audit their ledgers one by one", strings.Join(names, ", "))
	}
	if names[0] == "" {
		return "", errors.New("the ledger does not say which model sampled it: name one with --model")
	}
	return names[0], nil
}

// loadAudited loads a model with its tokenizer, if it has one; from becomes its path.
func loadAudited(from *string, p model.Placement) (*model.Decoder, *tokenizer.Tokenizer, error) {
	name := strings.TrimPrefix(*from, builtinModel)
	if preset, role, ok := strings.Cut(name, "/"); ok {
		_, err := presets.Checkpoint(preset, role)
		if _, absent := os.Stat(name); err != nil && absent != nil && onWiki(preset) {
			return nil, nil, err
		}
		if err == nil {
			*from = builtinModel + name
			d, err := loadBuiltin(preset, role, p)
			if err != nil {
				return nil, nil, err
			}
			tok, err := wikiTokenizer()
			return d, tok, err
		}
	}
	path, err := locateModel(name)
	if err != nil {
		return nil, nil, fmt.Errorf("the model that sampled, or --model: %w", err)
	}
	*from = path
	tok, missing := model.LoadTokenizer(path)
	d, err := model.Load(path, p)
	if err != nil {
		return nil, nil, err
	}
	if missing != nil {
		note("%s: no tokenizer (%v): all rows of its head count as its vocabulary", path, missing)
		return d, nil, nil
	}
	if err := limitVocab(d, tok); err != nil {
		d.Free()
		return nil, nil, fmt.Errorf("%s: %w", path, err)
	}
	return d, tok, nil
}

// sameTokenizer refuses a model that speaks other ids than the one that sampled,
// where that one is still at hand.
func (in *auditInput) sameTokenizer() error {
	name := in.trajectories[0].Model
	if in.tokenizer == nil || name == "" || name == in.from || strings.HasPrefix(name, builtinModel) {
		return nil
	}
	own, err := model.LoadTokenizer(name)
	if err != nil {
		return nil // not at hand: the ids' range is still checked
	}
	if err := sameTokens(own, in.tokenizer); err != nil {
		return fmt.Errorf("%s cannot score what %s sampled: %w", in.from, name, err)
	}
	return nil
}

// layoutOptions are what layouts are made with: where the agent thinks in
// <think> tags, MEM1's mask hides that part.
func (in *auditInput) layoutOptions() align.Options {
	if in.tokenizer == nil {
		return align.Options{}
	}
	think := thinkLength(in.tokenizer)
	for _, t := range in.trajectories {
		for k := range t.Calls {
			if think(t, k) > 0 {
				return align.Options{ThinkLength: think}
			}
		}
	}
	return align.Options{}
}
