// Command retrieval builds an index of a collection with package retriever and
// times its searches, beside the peers in this folder.
//
//	retrieval build FORMULA CORPUS INDEX
//	retrieval search INDEX QUERIES K SECONDS THREADS RANKINGS
//
// FORMULA is lucene or bleve; terms are parted at white space. It prints one JSON object.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/memopd/memopd-bench/retriever"
)

func main() {
	out, err := run(os.Args[1:])
	if err == nil {
		err = json.NewEncoder(os.Stdout).Encode(out)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "retrieval:", err)
		os.Exit(1)
	}
}

func run(args []string) (any, error) {
	switch {
	case len(args) == 4 && args[0] == "build":
		return build(args[1], args[2], args[3])
	case len(args) == 7 && args[0] == "search":
		return search(args[1:])
	}
	return nil, errors.New("want build FORMULA CORPUS INDEX or search INDEX QUERIES K SECONDS THREADS RANKINGS")
}

func build(formula, corpus, index string) (any, error) {
	o := retriever.BuildOptions{Analyser: retriever.AnalyserWhitespace}
	if formula == "bleve" {
		o.Scoring = retriever.BleveScoring()
	}
	start := time.Now()
	c, err := retriever.OpenCorpus([]string{corpus}, retriever.CorpusOptions{})
	if err != nil {
		return nil, err
	}
	m, err := retriever.Build(context.Background(), index, c, o)
	if err != nil {
		return nil, errors.Join(err, c.Close())
	}
	return map[string]any{"documents": m.Documents, "seconds": time.Since(start).Seconds()}, c.Close()
}

func search(args []string) (any, error) {
	numbers := make([]float64, 3)
	for i := range numbers {
		var err error
		if numbers[i], err = strconv.ParseFloat(args[2+i], 64); err != nil {
			return nil, err
		}
	}
	k, seconds, threads := int(numbers[0]), numbers[1], int(numbers[2])
	runtime.GOMAXPROCS(threads)
	queries, err := lines(args[1])
	if err != nil {
		return nil, err
	}
	x, err := retriever.Open(args[0], retriever.OpenOptions{})
	if err != nil {
		return nil, err
	}
	defer x.Close()
	if err := writeRankings(x, queries, k, args[5]); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancelCause(context.Background())
	defer cancel(nil)
	var done atomic.Int64
	var wg sync.WaitGroup
	start, cpu := time.Now(), cpuSeconds()
	for range threads {
		wg.Go(func() {
			for time.Since(start).Seconds() < seconds {
				if _, err := x.Rank(ctx, "", queries[int(done.Add(1))%len(queries)], k); err != nil {
					cancel(err)
					return
				}
			}
		})
	}
	wg.Wait()
	used := cpuSeconds() - cpu
	return map[string]any{"queries": done.Load(), "seconds": time.Since(start).Seconds(), "cpu_seconds": used}, context.Cause(ctx)
}

// cpuSeconds is the CPU time of this process.
func cpuSeconds() float64 {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return float64(u.Utime.Nano()+u.Stime.Nano()) / 1e9
}

// writeRankings asks each query twice, so that files are in memory.
func writeRankings(x *retriever.Index, queries []string, k int, path string) error {
	var out strings.Builder
	for range 2 {
		out.Reset()
		for _, q := range queries {
			ranked, err := x.Rank(context.Background(), "", q, k)
			if err != nil {
				return err
			}
			for _, r := range ranked {
				out.WriteString(r.ID + " ")
			}
			out.WriteString("\n")
		}
	}
	return os.WriteFile(path, []byte(out.String()), 0o644)
}

func lines(path string) ([]string, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var all []string
	s := bufio.NewScanner(f)
	for s.Scan() {
		all = append(all, s.Text())
	}
	return all, s.Err()
}
