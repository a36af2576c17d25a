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

// allUpdates are the rules of property tests.
var allUpdates = []Update{
	MEM1Update{}, FullUpdate{}, FullResponseUpdate{}, SuffixUpdate{IDs: 1}, SuffixUpdate{IDs: 30},
	SummaryUpdate{}, WindowUpdate{Turns: 1}, WindowUpdate{Turns: 3}, RefreshUpdate{},
}

// Whatever a model writes and wherever the limits are, the record is valid and a
// ledger gives it back.
func TestAnyEpisodeIsValid(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	ends, parts := map[trace.End]int{}, map[string]int{}
	var all []*trace.Trajectory
	for range 80 {
		o := miniOptions()
		o.Tokenizer = chars{}
		o.Protocol.NewTokens = 1 + r.IntN(120)
		o.Update = allUpdates[r.IntN(len(allUpdates))]
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
		for _, c := range tr.Calls[min(1, len(tr.Calls)):] {
			// Nothing but the first call does without the newest observation, and
			// nothing at all without the task.
			newest := c.Spans[len(c.Spans)-1]
			if newest.Origin != trace.OriginObservation || newest.FromCall != c.Index-1 || newest.Offset != 0 || c.Spans[0].Origin != trace.OriginPrefix {
				t.Errorf("%s, call %d: spans %+v", tr.Agent, c.Index, c.Spans)
			}
			for _, s := range c.Spans {
				if s.Origin == trace.OriginRetained && s.End-s.Start < len(tr.Calls[s.FromCall].Output) {
					parts[tr.Agent]++
				}
			}
		}
	}
	for _, u := range allUpdates {
		_, suffix := u.(SuffixUpdate)
		_, summary := u.(SummaryUpdate)
		if cuts := parts[u.Name()] > 0; cuts != (suffix || summary) {
			t.Errorf("%s: cuts %d outputs", u.Name(), parts[u.Name()])
		}
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
		for i := range allUpdates {
			f.Add(tc.text, byte(i))
		}
	}
	f.Fuzz(func(t *testing.T, text string, update byte) {
		o := miniOptions()
		o.Update = allUpdates[int(update)%len(allUpdates)]
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
