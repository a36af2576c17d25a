package retriever_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"path/filepath"

	"github.com/memopd/memopd-bench/retriever"
)

// Documents become an index on disk, and a question finds one of them.
func Example() {
	tmp, err := os.MkdirTemp("", "retriever")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(tmp)
	file := filepath.Join(tmp, "corpus.jsonl")
	lines := `{"id": "0", "contents": "\"Thames\"\nThe Thames flows through London."}
{"id": "1", "contents": "\"Seine\"\nThe Seine flows through Paris."}
`
	if err := os.WriteFile(file, []byte(lines), 0o644); err != nil {
		log.Fatal(err)
	}

	ctx := context.Background()
	corpus, err := retriever.OpenCorpus([]string{file}, retriever.CorpusOptions{})
	if err != nil {
		log.Fatal(err)
	}
	defer corpus.Close()
	dir := filepath.Join(tmp, "index")
	if _, err := retriever.Build(ctx, dir, corpus, retriever.DefaultBuildOptions()); err != nil {
		log.Fatal(err)
	}

	index, err := retriever.Open(dir, retriever.OpenOptions{})
	if err != nil {
		log.Fatal(err)
	}
	defer index.Close()
	hits, err := index.Search(ctx, "", "Which river flows through Paris?", 1)
	if err != nil {
		log.Fatal(err)
	}
	for _, h := range hits {
		fmt.Printf("%s: %s\n", h.Title, h.Text)
	}
	// Output: Seine: The Seine flows through Paris.
}
