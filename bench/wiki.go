package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/memopd/memopd-bench/datasets"
	"github.com/memopd/memopd-bench/datasets/miniwiki"
	"github.com/memopd/memopd-bench/model/tokenizer"
	"github.com/memopd/memopd-bench/retriever"
)

// wikiTasks are the mini-wiki's tasks.
type wikiTasks struct {
	wiki  *miniwiki.Wiki
	train *miniwiki.Sampler
}

// openWiki makes the mini-wiki's data and index under dir unless they are there,
// and opens them. seed is that of the training tasks, not of the wiki.
func openWiki(ctx context.Context, dir string, config miniwiki.Config, seed uint64, s speaking) (*environment, error) {
	if s.Retriever != "" {
		return nil, errors.New("--retriever is for real questions: a server knows no worlds of the mini-wiki")
	}
	if s.Protocol != "" && s.Protocol != "mini" || s.ChatTemplate != "" && s.ChatTemplate != "none" && s.ChatTemplate != "auto" {
		return nil, fmt.Errorf("the mini-wiki speaks the protocol mini and no chat template, not %q and %q", s.Protocol, s.ChatTemplate)
	}
	protocol, err := s.protocol("mini")
	if err != nil {
		return nil, err
	}
	update, err := s.update()
	if err != nil {
		return nil, err
	}
	wiki, err := miniwiki.New(config)
	if err != nil {
		return nil, err
	}
	tok, err := wikiTokenizer()
	if err != nil {
		return nil, err
	}
	d := newDialect(tok, protocol)
	d.agent.Update = update
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
	return &environment{
		taskSet: &wikiTasks{wiki, sampler}, dialect: d, index: index,
		dataFile: filepath.Join(dir, datasets.ManifestName), rows: s.Rows, dev: wikiDev,
	}, nil
}

// wikiDev is what models are scored on in the mini-wiki while they train.
var wikiDev = []devSet{{1, 64}, {2, 64}, {8, 32}, {16, 16}}

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

// Task implements taskSet.
func (w *wikiTasks) Task(i uint64, n int) (datasets.Task, error) { return w.train.Task(i, n) }

// Composed implements taskSet: the tasks of the task files.
func (w *wikiTasks) Composed(split datasets.Split, n, limit int) ([]datasets.Task, error) {
	count := miniwiki.DefaultTasks(n)
	if limit > 0 {
		count = min(limit, count)
	}
	return w.wiki.Compose(split, n, count)
}

// Example implements taskSet.
func (w *wikiTasks) Example(_ context.Context, draw uint64, n int) (datasets.Task, []string, error) {
	task, err := w.train.Task(draw, n)
	if err != nil {
		return task, nil, err
	}
	world, ok := w.wiki.World(task.World)
	if !ok {
		return task, nil, fmt.Errorf("task %s: no world %q", task.ID, task.World)
	}
	turns, err := miniwiki.Oracle(world, task)
	if err != nil {
		return task, nil, err
	}
	texts := make([]string, len(turns))
	for i, t := range turns {
		texts[i] = t.Response
	}
	return task, texts, nil
}

// wikiTokenizer is the word-level tokenizer of the mini-wiki.
func wikiTokenizer() (*tokenizer.Tokenizer, error) {
	return tokenizer.NewWordLevel(miniwiki.Vocabulary(), "<unk>", "<pad>", "<unk>", "<bos>", "<eos>")
}

// openOrBuildIndex opens the index at dir, or builds it from a corpus file when
// nothing is there, what a stopped build left, or an index of another version.
func openOrBuildIndex(ctx context.Context, dir, corpus string) (*retriever.Index, error) {
	index, err := retriever.Open(dir, retriever.OpenOptions{})
	build := retriever.DefaultBuildOptions()
	switch {
	case errors.Is(err, retriever.ErrVersion):
		build.Replace = true
	case errors.Is(err, retriever.ErrNoIndex), errors.Is(err, retriever.ErrHalfBuilt):
		build.Resume = true
	default:
		return index, err
	}
	if err := buildIndex(ctx, dir, []string{corpus}, retriever.CorpusOptions{}, build); err != nil {
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
