package model

import (
	"context"
	"math"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/memopd/memopd-bench/torch"
	"github.com/memopd/memopd-bench/trace"
)

const smolLM2 = "SmolLM2-135M-Instruct"

// asset is a file or folder that scripts/assets.sh fetches; without it the test is skipped.
func asset(t testing.TB, name string) string {
	t.Helper()
	root := os.Getenv("MEMOPD_ASSETS")
	if root == "" {
		root = filepath.Join("..", ".setup", "assets")
	}
	path := filepath.Join(root, filepath.FromSlash(name))
	if _, err := os.Stat(path); err != nil {
		t.Skipf("%s is not there; scripts/assets.sh fetches it", path)
	}
	return path
}

// peer is testdata/smollm2.json, made by scripts/peers/transformers_logits.py gguf.
type peer struct {
	Rows []struct {
		IDs []int32 `json:"ids"`
		At  []struct {
			Place     int       `json:"place"`
			TopIDs    []int     `json:"top_ids"`
			TopLogits []float64 `json:"top_logits"`
			Columns   []int     `json:"columns"`
			Logits    []float64 `json:"logits"`
		} `json:"at"`
	} `json:"rows"`
	Greedy []struct {
		Prompt  string  `json:"prompt"`
		Context []int32 `json:"context"`
		Output  []int32 `json:"output"`
	} `json:"greedy"`
}

// TestSmolLM2 holds logits and greedy continuations of the published GGUF file to transformers'.
func TestSmolLM2(t *testing.T) {
	path := asset(t, smolLM2)
	noLeaks(t)
	d, err := Load(path, Placement{})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Free()
	d.Freeze()
	var want peer
	readJSON(t, filepath.Join("testdata", "smollm2.json"), &want)
	t.Run("logits", func(t *testing.T) { smolLM2Logits(t, d, &want) })
	t.Run("greedy", func(t *testing.T) { smolLM2Greedy(t, d, &want) })
}

func smolLM2Logits(t *testing.T, d *Decoder, want *peer) {
	if len(want.Rows) < 3 {
		t.Fatalf("%d rows", len(want.Rows))
	}
	worst := 0.0
	for i, row := range want.Rows {
		s := torch.NewScope()
		hidden := d.HiddenAll([][]int32{row.IDs})
		for _, at := range row.At {
			got := d.Logits(hidden.Narrow(0, int64(at.Place), 1)).Float32s()
			for j, id := range slices.Concat(at.TopIDs, at.Columns) {
				w := slices.Concat(at.TopLogits, at.Logits)[j]
				gap := math.Abs(float64(got[id]) - w)
				worst = max(worst, gap)
				if !(gap <= 1e-4) {
					t.Errorf("row %d place %d: logit of %d is %v, want %v", i, at.Place, id, got[id], w)
				}
			}
		}
		s.Close()
	}
	t.Logf("largest difference %.2g", worst)
}

func smolLM2Greedy(t *testing.T, d *Decoder, want *peer) {
	s, err := NewSampler(d, trace.Sampler{Greedy: true}, len(want.Greedy))
	if err != nil {
		t.Fatal(err)
	}
	queue, tokens := &list{}, 0
	for _, g := range want.Greedy {
		queue.requests = append(queue.requests, &trace.Request{Context: g.Context, MaxNewTokens: len(g.Output)})
	}
	all := slices.Clone(queue.requests)
	if err := s.Generate(context.Background(), queue); err != nil {
		t.Fatal(err)
	}
	for i, g := range want.Greedy {
		if got := queue.responses[all[i]].Output; !slices.Equal(got, g.Output) {
			t.Errorf("%q: got %v, want %v", g.Prompt, got, g.Output)
		}
		tokens += len(g.Output)
	}
	if tokens < 200 {
		t.Errorf("only %d tokens compared", tokens)
	}
}
