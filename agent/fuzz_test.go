package agent

import (
	"context"
	"errors"
	"math/rand/v2"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/memopd/memopd-bench/trace"
)

// babbler writes random runs of tags, words and peculiar ids, and stops as a
// sampler does.
type babbler struct{ r *rand.Rand }

func (b babbler) Generate(_ context.Context, q trace.Queue) error {
	for req, ok := q.Next(); ok; req, ok = q.Next() {
		q.Done(req, b.respond(req))
	}
	return nil
}

func (b babbler) respond(req *trace.Request) *trace.Response {
	pieces := []string{searchOpen, " noge ", searchClose, answerOpen, answerClose, "a; b", thinkOpen, thinkClose, "\xff", "é"}
	resp := &trace.Response{Stop: trace.StopLength}
	for len(resp.Output) < req.MaxNewTokens {
		ids := chars{}.Encode(pieces[b.r.IntN(len(pieces))])
		if b.r.IntN(3) > 0 { // mostly what leads on
			ids = chars{}.Encode(b.action())
		}
		if b.r.IntN(40) == 0 {
			ids = []int32{charEOS}
		}
		if b.r.IntN(5) == 0 {
			ids = append([]int32{charHe + int32(b.r.IntN(3))}, ids...)
		}
		for _, id := range ids {
			resp.Output = append(resp.Output, id)
			resp.LogProbs = append(resp.LogProbs, -b.r.Float32())
			switch {
			case req.Stopped(resp.Output):
				resp.Stop = trace.StopTag
				return resp
			case id == charEOS:
				resp.Stop = trace.StopEOS
				return resp
			case len(resp.Output) == req.MaxNewTokens:
				return resp
			}
		}
	}
	return resp
}

func (b babbler) action() string {
	switch b.r.IntN(12) {
	case 0:
		return "<answer> a; b </answer>"
	case 1:
		return "<search>luckless</search>"
	}
	return "<search>noge</search>"
}

// Whatever a model writes and wherever the limits are, the record is valid and a
// ledger gives it back.
func TestAnyEpisodeIsValid(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	ends := map[trace.End]int{}
	var all []*trace.Trajectory
	for range 40 {
		o := miniOptions()
		o.Tokenizer = chars{}
		o.Protocol.NewTokens = 1 + r.IntN(120)
		if r.IntN(2) == 0 {
			o.Update = FullUpdate{}
		}
		if r.IntN(2) == 0 {
			o.ContextTokens = 200 + r.IntN(600)
		}
		searcher := searcherFunc(func(ctx context.Context, world, query string, k int) ([]Document, error) {
			if strings.Contains(query, "luckless") {
				return nil, errors.New("bad luck")
			}
			return miniWorld.Search(ctx, world, query, k)
		})
		all = append(all, run(t, babbler{r}, searcher, o, copies(5)...)...)
	}
	for _, tr := range all {
		ends[tr.End]++
	}
	for _, end := range []trace.End{trace.EndAnswered, trace.EndTurnLimit, trace.EndUnusable, trace.EndContext, trace.EndRetrieval} {
		if ends[end] == 0 {
			t.Errorf("no trajectory ended with %q: %v", end, ends)
		}
	}
	for _, name := range []string{"l.jsonl", "l.parquet"} {
		path := filepath.Join(t.TempDir(), name)
		if err := trace.WriteAll(path, all); err != nil {
			t.Fatal(err)
		}
		if got, err := trace.ReadAll(path); err != nil || !reflect.DeepEqual(got, all) {
			t.Errorf("%s: read back otherwise: %v", name, err)
		}
	}
}

// FuzzEpisode gives one text as every response.
func FuzzEpisode(f *testing.F) {
	for _, tc := range parseCases {
		f.Add(tc.text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		o := miniOptions()
		o.Tokenizer = chars{}
		policy := NewScript(chars{}, map[string][]string{miniTask.ID: strings.Split(strings.Repeat(text+"\x00", 6), "\x00")})
		out, err := Rollout(t.Context(), policy, miniWorld, o, miniTask)
		if err != nil && !strings.Contains(err.Error(), "no ids") {
			t.Fatal(err)
		}
		if err := out[0].Validate(); err != nil {
			t.Fatal(err)
		}
	})
}
