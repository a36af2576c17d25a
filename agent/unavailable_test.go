package agent

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/memopd/memopd-bench/trace"
)

// flaky fails its first searches.
type flaky struct {
	Searcher
	fails int
}

func (f *flaky) Search(ctx context.Context, world, query string, k int) ([]Document, error) {
	if f.fails--; f.fails >= 0 {
		return nil, fmt.Errorf("%w: status 503", ErrSearchUnavailable)
	}
	return f.Searcher.Search(ctx, world, query, k)
}

// A search that cannot be made is told to the model, which may ask again; the record
// says so, and the trajectory goes on.
func TestUnavailableSearchIsAnObservation(t *testing.T) {
	o := miniOptions()
	responses := append([]string{miniOracle[0]}, miniOracle...) // asks again
	o.Searches = 1
	tr := run(t, NewScript(o.Tokenizer, map[string][]string{miniTask.ID: responses}), &flaky{miniWorld, 1}, o, miniTask)[0]
	if tr.End != trace.EndAnswered || tr.RetrievalFailures() != 1 {
		t.Fatalf("ended %s (%s) after %d failures", tr.End, tr.Error, tr.RetrievalFailures())
	}
	first, second := tr.Calls[0], tr.Calls[1]
	if first.RetrievalError != "the search is unavailable: status 503" || len(first.Documents) != 0 || second.RetrievalError != "" || len(second.Documents) != 1 {
		t.Errorf("calls %+v, %+v", first, second)
	}
	if got, want := o.Tokenizer.Decode(first.Observation), o.Protocol.Observation(nil, o.Protocol.Turns(2)-1); strings.TrimSpace(got) != strings.TrimSpace(want) {
		t.Errorf("observation %q, want %q", got, want)
	}
}

func TestUnavailableText(t *testing.T) {
	p := MEM1()
	for left, want := range map[int]string{
		4: "\n\n<information>\nYou have 4 turns left.\nThe search failed; it may work the next time.\n</information>\n\n",
		1: "\n\n<information>\nYou have 1 turn left: give your answers now.\nThe search failed; it may work the next time.\n</information>\n\n",
	} {
		if got := p.Unavailable(left); got != want {
			t.Errorf("%d left: %q, want %q", left, got, want)
		}
	}
}

// A search that fails otherwise, or in a run that was stopped, ends the trajectory.
func TestOtherSearchErrorsEnd(t *testing.T) {
	o := miniOptions()
	ctx, cancel := context.WithCancel(t.Context())
	for name, c := range map[string]struct {
		err error
		end trace.End
	}{"damaged": {errors.New("damaged index"), trace.EndRetrieval}, "stopped": {ErrSearchUnavailable, trace.EndCancelled}} {
		search := searchFunc(func() error {
			if c.end == trace.EndCancelled {
				cancel()
			}
			return c.err
		})
		out, _ := Rollout(ctx, oracle(o.Tokenizer), search, o, miniTask)
		if len(out) != 1 || out[0].End != c.end || out[0].RetrievalFailures() != 0 {
			t.Errorf("%s: %+v", name, out)
		}
		if ctx.Err() != nil {
			ctx, cancel = context.WithCancel(t.Context())
		}
	}
	cancel()
}

// searchFunc is a searcher that fails.
type searchFunc func() error

func (f searchFunc) Search(context.Context, string, string, int) ([]Document, error) {
	return nil, f()
}
