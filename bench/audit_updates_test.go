package main

import (
	"encoding/json"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/memopd/memopd-bench/eval/audit"
	"github.com/memopd/memopd-bench/results"
)

// The five updates of the paper pass on fresh rollouts, where the flattened history
// does not, unless nothing was forgotten. The ledger gives the same figures again.
func TestAuditUpdates(t *testing.T) {
	w := newWorkplace(t)
	fresh := w.updateRows("audit updates --trajectories 2 --gradient-trajectories 1 --json --save-ledger l.jsonl --certificate kept/c.json")
	var names, paper []string
	for _, r := range fresh {
		names, paper = append(names, r.Update), append(paper, r.Paper)
		forgets := r.Update != "full"
		if !r.Pass || r.Trajectories != 2 || r.Calls < 4 || r.Tokens < 20 || !(r.P99 <= 1e-4) || r.Flips != 0 || !(r.MaxDLogit > 0 && r.MaxDLogit <= 1e-3) || !(r.GradError <= 1e-3) {
			t.Errorf("%+v", r)
		}
		if forgets != (r.ControlP99 > 1e-2) {
			t.Errorf("%s: the flattened history has p99 %g", r.Update, r.ControlP99)
		}
		if r.StoredTokens >= r.SeparateTokens || r.ContextMax <= int(r.ContextMean) || len(r.ContextByCall) < 2 {
			t.Errorf("%s: %d tokens stored of %d, contexts %g on average, at most %d, by call %v", r.Update, r.StoredTokens, r.SeparateTokens, r.ContextMean, r.ContextMax, r.ContextByCall)
		}
	}
	if want := []string{"full-response", "suffix:8", "summary", "window:2", "refresh", "full"}; !reflect.DeepEqual(names, want) {
		t.Errorf("updates %q, want %q", names, want)
	}
	if want := []string{"full response retention", "suffix retention", "summary replacement", "sliding window", "retrieval refresh", ""}; !reflect.DeepEqual(paper, want) {
		t.Errorf("in the paper %q, want %q", paper, want)
	}
	again := w.updateRows("audit updates --ledger l.jsonl --trajectories 0 --gradient-trajectories 1 --json")
	if !reflect.DeepEqual(again, fresh) {
		t.Errorf("the ledger gives\n%+v, want\n%+v", again, fresh)
	}

	var kept struct {
		Pass      bool
		Updates   []audit.UpdateRow
		Model     string
		Tokenizer string
		Config    string
		Ledgers   []audit.Ledger
		Manifest  results.Manifest
	}
	w.readJSON("kept/c.json", &kept)
	if sum, err := results.HashFile(filepath.Join(w.dir, "l.jsonl")); err != nil || len(kept.Ledgers) != 1 || kept.Ledgers[0].SHA256 != sum {
		t.Errorf("ledgers %+v, %v", kept.Ledgers, err)
	}
	if !kept.Pass || len(kept.Updates) != 6 || len(kept.Model) != 64 || len(kept.Tokenizer) != 64 || len(kept.Config) != 64 || len(kept.Manifest.Command) < 5 || kept.Manifest.Machine.Cores == 0 {
		t.Errorf("certificate %+v", kept)
	}
}

func (w workplace) updateRows(line string) []audit.UpdateRow {
	w.t.Helper()
	var rows []audit.UpdateRow
	if out := w.mustBench(line); json.Unmarshal([]byte(out), &rows) != nil || len(rows) == 0 {
		w.t.Fatalf("bench %s printed %s", line, out)
	}
	return rows
}

// An update that does not pass, or is none, ends with an error that says so.
func TestAuditUpdatesRefuses(t *testing.T) {
	w := newWorkplace(t)
	stdout, stderr, status := w.bench("audit updates --trajectories 1 --gradient-trajectories 0 --update window:1,full --tolerance 1e-12 --save-ledger l.jsonl")
	if status != 1 || !strings.Contains(stderr, "context update window:1: aligned: p99") || !strings.Contains(stdout, "sliding window") {
		t.Errorf("exit %d\n%s%s", status, stdout, stderr)
	}
	for _, c := range []struct{ line, want string }{
		{"--update window:0", "1 or more"},
		{"--update summary,none", `unknown context update "none"`},
		{"--preset paper", "known: mini, small"},
		{"--trajectories -1", "--trajectories: -1"},
		{"--ledger l.jsonl --update summary", `no trajectory of the context update "summary" (they hold: window:1, full)`},
		{"--ledger nosuch.jsonl", "nosuch.jsonl"},
	} {
		stdout, stderr, status := w.bench("audit updates " + c.line)
		if status == 0 || stdout != "" || !strings.Contains(stderr, c.want) || strings.Contains(stderr, "goroutine") {
			t.Errorf("%s: exit %d, want an error with %q, got\n%s%s", c.line, status, c.want, stdout, stderr)
		}
	}
}
