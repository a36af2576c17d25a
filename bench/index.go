package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/memopd/memopd-bench/retriever"
)

// indexOptions holds the settings of bench index.
type indexOptions struct {
	Dir    string `flag:"dir" help:"folder of the index"`
	Format string `flag:"format" help:"format of the corpus files; auto judges each by its first record"`
	indexing
	Resume  bool `flag:"resume" help:"go on after the last whole shard of a build that was stopped"`
	Rebuild bool `flag:"rebuild" help:"replace an index that is there, once the new one is whole, and throw away what a stopped build left"`
	SkipBad bool `flag:"skip-bad" help:"count bad records and go on, instead of ending with an error"`
}

func newIndex() *cobra.Command {
	var o indexOptions
	defaults := func() error {
		o = indexOptions{Dir: filepath.Join("data", "index"), Format: "auto", indexing: defaultIndexing()}
		return nil
	}
	return command(&cobra.Command{
		Use:   "index FILE...",
		Args:  cobra.MinimumNArgs(1),
		Short: "Build an index of passages for exact BM25",
		Long: fmt.Sprintf(`Builds an index on disk from passage files, gzipped or not, as a stream. Formats:
%v. bleve holds documents and postings; the ranking is BM25 by the formula as
it is written, which the index's manifest names. An index is built shard by shard:
a build that was stopped goes on with --resume. A damaged index is found out when it
is opened; --rebuild replaces it.`, retriever.Formats),
		Example: `  bench index --dir data/wiki/index wiki-18.jsonl.gz
  bench index --format dpr --k1 1.2 --b 0.75 psgs_w100.tsv`,
	}, &o, nil, defaults, func(cmd *cobra.Command, args []string) error {
		format, err := retriever.ParseFormat(o.Format)
		if err != nil {
			return err
		}
		build, err := o.indexing.options()
		if err != nil {
			return err
		}
		build.Replace, build.Resume = o.Rebuild, o.Resume
		return buildIndex(cmd.Context(), o.Dir, args, retriever.CorpusOptions{Format: format, SkipBad: o.SkipBad}, build)
	})
}

// searchOptions holds the settings of bench search.
type searchOptions struct {
	Index string `flag:"index" help:"folder of the index"`
	World string `flag:"world" help:"search the documents of one world alone"`
	K     int    `flag:"k" min:"1" help:"most documents a query"`
	JSON  bool   `flag:"json" help:"print JSON lines: a list of {id, title, score} a query"`
}

func newSearch() *cobra.Command {
	var o searchOptions
	defaults := func() error {
		o = searchOptions{Index: filepath.Join("data", "index"), K: 3}
		return nil
	}
	return command(&cobra.Command{
		Use:     "search QUERY...",
		Args:    cobra.MinimumNArgs(1),
		Short:   "Search an index; each argument is one query in plain text",
		Example: `  bench search --index data/miniwiki/index --world w3 noge`,
	}, &o, nil, defaults, func(cmd *cobra.Command, args []string) error { return runSearch(cmd.Context(), o, args) })
}

func runSearch(ctx context.Context, o searchOptions, queries []string) (err error) {
	index, err := retriever.Open(o.Index, retriever.OpenOptions{})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, index.Close()) }()
	for _, query := range queries {
		hits, err := index.Search(ctx, o.World, query, o.K)
		if err != nil {
			return err
		}
		if err := o.print(query, hits); err != nil {
			return err
		}
	}
	return nil
}

// queryShown is how many characters of a query are repeated.
const queryShown = 80

// shown is a text as a terminal can show it: control characters and what is no UTF-8
// become escapes; what follows the first most characters (0: none) is left out.
func shown(text string, most int) string {
	var b strings.Builder
	n := 0
	for i, r := range text {
		if n++; most > 0 && n > most {
			b.WriteString("…")
			break
		}
		_, size := utf8.DecodeRuneInString(text[i:])
		if r == utf8.RuneError && size == 1 || !unicode.IsPrint(r) {
			b.WriteString(strings.Trim(strconv.Quote(text[i:i+size]), `"`))
			continue
		}
		b.WriteRune(r)
	}
	return b.String()
}

func (o searchOptions) print(query string, hits []retriever.Hit) error {
	if !o.JSON {
		fmt.Printf("%s: %d documents\n", shown(query, queryShown), len(hits))
		for _, h := range hits {
			fmt.Printf("  %8.3f  %s  %s: %s\n", h.Score, shown(h.ID, 0), shown(h.Title, 0), shown(h.Text, 0))
		}
		return nil
	}
	type row struct {
		ID    string  `json:"id"`
		Title string  `json:"title"`
		Score float64 `json:"score"`
	}
	rows := make([]row, len(hits))
	for i, h := range hits {
		rows[i] = row{h.ID, h.Title, h.Score}
	}
	return json.NewEncoder(os.Stdout).Encode(rows)
}
