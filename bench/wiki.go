package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"

	"github.com/memopd/memopd-bench/agent"
	"github.com/memopd/memopd-bench/datasets"
	"github.com/memopd/memopd-bench/datasets/miniwiki"
	"github.com/memopd/memopd-bench/eval"
	"github.com/memopd/memopd-bench/model/tokenizer"
	"github.com/memopd/memopd-bench/retriever"
	"github.com/memopd/memopd-bench/trace"
)

// wikiWorkplace is the mini-wiki ready for agents: its tasks, its index, its words.
type wikiWorkplace struct {
	wiki      *miniwiki.Wiki
	tokenizer *tokenizer.Tokenizer
	index     *retriever.Index
	protocol  agent.Protocol
	train     *miniwiki.Sampler
}

// openWiki makes the mini-wiki's data and index under dir unless they are there,
// and opens them. seed is that of the training tasks, not of the wiki.
func openWiki(ctx context.Context, dir string, config miniwiki.Config, seed uint64) (*wikiWorkplace, error) {
	wiki, err := miniwiki.New(config)
	if err != nil {
		return nil, err
	}
	tok, err := wikiTokenizer()
	if err != nil {
		return nil, err
	}
	index, err := prepareWiki(ctx, dir, config)
	if err != nil {
		return nil, err
	}
	worlds, err := wiki.Worlds(datasets.Train)
	if err != nil {
		return nil, err
	}
	sampler, err := miniwiki.NewSampler(worlds, seed)
	if err != nil {
		return nil, err
	}
	return &wikiWorkplace{wiki: wiki, tokenizer: tok, index: index, protocol: agent.Mini(), train: sampler}, nil
}

// prepareWiki makes data and index where they are missing, one process at a
// time, and opens the index.
func prepareWiki(ctx context.Context, dir string, config miniwiki.Config) (*retriever.Index, error) {
	unlock, err := lockFolder(ctx, dir)
	if err != nil {
		return nil, err
	}
	defer unlock()
	if err := makeWikiData(dir, config); err != nil {
		return nil, fmt.Errorf("mini-wiki data: %w", err)
	}
	return openOrBuildIndex(ctx, filepath.Join(dir, indexFolder), filepath.Join(dir, datasets.DocumentsName))
}

// Close releases the index.
func (w *wikiWorkplace) Close() error { return w.index.Close() }

// wikiHorizons are the numbers of questions that task files are made for.
var wikiHorizons = []int{1, 2, 4, 8, 16}

// indexFolder is the name of the index in a folder of data.
const indexFolder = "index"

// makeWikiData writes the wiki's files unless the manifest says that they are
// there; data of another wiki is refused.
func makeWikiData(dir string, config miniwiki.Config) error {
	o := miniwiki.BuildOptions{Config: config, Horizons: wikiHorizons}
	want, err := json.Marshal(o)
	if err != nil {
		return err
	}
	have, err := datasets.ReadManifest(dir)
	if errors.Is(err, fs.ErrNotExist) {
		_, err = miniwiki.Build(dir, o)
		return err
	}
	if err != nil {
		return err
	}
	var compact bytes.Buffer
	if err := json.Compact(&compact, have.Settings); err != nil {
		return err
	}
	if have.Kind != "miniwiki" || !bytes.Equal(compact.Bytes(), want) {
		return fmt.Errorf("%s holds other data (%s %s); choose another folder with --data", dir, have.Kind, compact.Bytes())
	}
	return nil
}

// tasks returns the composed tasks of a split and horizon, the first limit of
// them (0: all): those of the task files.
func (w *wikiWorkplace) tasks(split datasets.Split, n, limit int) ([]datasets.Task, error) {
	count := miniwiki.DefaultTasks(n)
	if limit > 0 {
		count = min(limit, count)
	}
	return w.wiki.Compose(split, n, count)
}

// wikiTokenizer is the word-level tokenizer of the mini-wiki.
func wikiTokenizer() (*tokenizer.Tokenizer, error) {
	return tokenizer.NewWordLevel(miniwiki.Vocabulary(), "<unk>", "<pad>", "<unk>", "<bos>", "<eos>")
}

// openOrBuildIndex opens the index at dir, or builds it from a corpus file when
// nothing is there, or what a stopped build left.
func openOrBuildIndex(ctx context.Context, dir, corpus string) (*retriever.Index, error) {
	index, err := retriever.Open(dir, retriever.OpenOptions{})
	if !errors.Is(err, retriever.ErrNoIndex) && !errors.Is(err, retriever.ErrHalfBuilt) {
		return index, err
	}
	if err := buildIndex(ctx, dir, []string{corpus}, retriever.CorpusOptions{}, retriever.DefaultBuildOptions()); err != nil {
		return nil, err
	}
	return retriever.Open(dir, retriever.OpenOptions{})
}

// buildIndex builds an index with a progress display.
func buildIndex(ctx context.Context, dir string, files []string, read retriever.CorpusOptions, o retriever.BuildOptions) (err error) {
	corpus, err := retriever.OpenCorpus(files, read)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, corpus.Close()) }()
	if err := os.MkdirAll(filepath.Dir(dir), 0o755); err != nil {
		return err
	}
	var bar *progress
	o.Progress = func(documents int, read, total int64) {
		if bar == nil {
			bar = newProgress("index (bytes)", total)
		}
		bar.set(read)
	}
	m, err := retriever.Build(ctx, dir, corpus, o)
	if err != nil {
		return err
	}
	if bar != nil {
		bar.done()
	}
	fmt.Fprintf(os.Stderr, "index %s: %d documents", dir, m.Documents)
	if n, first := corpus.Skipped(); n > 0 {
		fmt.Fprintf(os.Stderr, ", %d bad records skipped, the first: %v", n, first)
	}
	fmt.Fprintln(os.Stderr)
	return nil
}

// horizonShare is how often tasks with so many questions are drawn.
type horizonShare struct {
	Questions int
	Share     float64
}

// oracleSource makes SFT trajectories: the oracle's responses, run through the
// agent and the index as a model's would be, at a mix of horizons.
func (w *wikiWorkplace) oracleSource(ctx context.Context, mix []horizonShare) func(seed uint64) (*trace.Trajectory, error) {
	return func(seed uint64) (*trace.Trajectory, error) {
		rng := rand.New(rand.NewPCG(seed, 0))
		n := mix[len(mix)-1].Questions
		for x, i := rng.Float64(), 0; i < len(mix); i++ {
			if x -= mix[i].Share; x < 0 {
				n = mix[i].Questions
				break
			}
		}
		task, err := w.train.Task(rng.Uint64(), n)
		if err != nil {
			return nil, err
		}
		return w.oracle(ctx, task)
	}
}

// oracle runs the oracle on one task.
func (w *wikiWorkplace) oracle(ctx context.Context, task datasets.Task) (*trace.Trajectory, error) {
	world, ok := w.wiki.World(task.World)
	if !ok {
		return nil, fmt.Errorf("task %s: no world %q", task.ID, task.World)
	}
	turns, err := miniwiki.Oracle(world, task)
	if err != nil {
		return nil, err
	}
	texts := make([]string, len(turns))
	for i, t := range turns {
		texts[i] = t.Response
	}
	policy := agent.NewScript(w.tokenizer, map[string][]string{task.ID: texts})
	options := agent.Options{Protocol: w.protocol, Tokenizer: w.tokenizer, Searches: 1, Model: "oracle"}
	out, err := agent.Rollout(ctx, policy, searcher{w.index}, options, eval.AgentTask(task))
	if err != nil {
		return nil, err
	}
	return out[0], nil
}
