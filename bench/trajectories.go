package main

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/memopd/memopd-bench/eval"
	"github.com/memopd/memopd-bench/eval/metrics"
	"github.com/memopd/memopd-bench/results"
	"github.com/memopd/memopd-bench/trace"
)

// readTrajectoryViews makes views of the first tasks of one evaluated run: dir holds
// tasks.jsonl and a ledger (bench eval --ledger). At most limit trajectories; the
// first ones, so that every variant shows the same tasks.
func readTrajectoryViews(dir, variant string, seed int64, horizon string, limit int, decode func([]int32) string) ([]results.TrajectoryView, error) {
	records, err := results.ReadJSONL[eval.TaskRecord](filepath.Join(dir, "tasks.jsonl"))
	if err != nil {
		return nil, fmt.Errorf("trajectories: %w", err)
	}
	byTask := map[string]eval.TaskRecord{}
	for _, r := range records {
		byTask[r.TaskID] = r
	}
	var views []results.TrajectoryView
	path, err := ledgerIn(dir)
	if err != nil {
		return nil, err
	}
	for t, err := range trace.All(path) {
		if err != nil {
			return nil, fmt.Errorf("trajectories: %w", err)
		}
		if len(views) == limit {
			break
		}
		r, ok := byTask[t.TaskID]
		if !ok {
			return nil, fmt.Errorf("trajectories: %s: task %q is not in %s", path, t.TaskID, filepath.Join(dir, "tasks.jsonl"))
		}
		v := trajectoryView(t, r, decode)
		v.Variant, v.Seed, v.Horizon = variant, seed, horizon
		views = append(views, v)
	}
	return views, nil
}

// ledgerIn is the ledger of an evaluated run, in either form.
func ledgerIn(dir string) (string, error) {
	for _, form := range []string{"jsonl", "parquet"} {
		path := filepath.Join(dir, "ledger."+form)
		if _, err := os.Stat(path); err == nil {
			return path, nil
		}
	}
	return "", fmt.Errorf("trajectories: %s holds no ledger: bench eval --ledger jsonl writes it", dir)
}

// trajectoryView puts a trajectory and its task's record into words. Variant, seed and
// horizon are the caller's to set.
func trajectoryView(t *trace.Trajectory, r eval.TaskRecord, decode func([]int32) string) results.TrajectoryView {
	text := func(ids []int32) results.ViewText {
		if len(ids) == 0 {
			return results.ViewText{}
		}
		return results.ViewText{Text: decode(ids), Tokens: len(ids)}
	}
	v := results.TrajectoryView{
		TaskID: t.TaskID, Update: t.Agent, Questions: r.Questions, Golds: r.Golds, Answers: r.Answers, Scores: questionScores(r),
		Values: results.Values{EM: r.EM, F1: r.F1, EMMEM1: r.EMMem1, F1MEM1: r.F1Mem1, PeakContext: float64(r.PeakContext),
			Dependency: r.Dependency, InferenceSeconds: r.InferenceSeconds},
		End: string(t.End), Error: t.Error, Prefix: text(t.Prefix),
	}
	for k := range t.Calls {
		c := &t.Calls[k]
		view := results.CallView{
			ContextTokens: len(c.Context), Response: text(c.Output), Stop: string(c.Stop), Outcome: string(c.Outcome), Reason: c.Reason,
			Query: c.Query, Documents: c.Documents, Observation: text(c.Observation), Failure: c.RetrievalError, Seconds: c.Seconds,
		}
		for _, s := range c.Spans {
			if s.Origin != trace.OriginPrefix {
				view.Context = append(view.Context, results.ContextPart{
					Origin: string(s.Origin), FromCall: s.FromCall, Offset: s.Offset, ViewText: text(c.Context[s.Start:s.End]),
				})
			}
		}
		if k > 0 {
			for _, d := range droppedSpans(t, k) {
				ids := recordedIDs(t, d)
				view.Dropped = append(view.Dropped, results.ContextPart{Origin: string(d.origin), FromCall: d.call, Offset: d.from, ViewText: text(ids)})
			}
		}
		v.Calls = append(v.Calls, view)
	}
	return v
}

// questionScores are the squad scores of each question, by the run's own rules: an
// answer that was not given scores 0.
func questionScores(r eval.TaskRecord) []results.Score {
	scores := make([]results.Score, len(r.Golds))
	for i, golds := range r.Golds {
		if i < len(r.Answers) {
			s := metrics.SQuADQuestion(r.Answers[i], golds)
			scores[i] = results.Score{EM: s.EM, F1: s.F1}
		}
	}
	return scores
}

// recordedRun is a run of ids [from, to) of a call's response or observation.
type recordedRun struct {
	origin   trace.Origin
	call     int
	from, to int
}

func recordedIDs(t *trace.Trajectory, r recordedRun) []int32 {
	if r.origin == trace.OriginRetained {
		return t.Calls[r.call].Output[r.from:r.to]
	}
	return t.Calls[r.call].Observation[r.from:r.to]
}

// droppedSpans lists what call k-1 saw, wrote or was answered and call k does not see,
// oldest first. What an import cannot say the origin of is left out.
func droppedSpans(t *trace.Trajectory, k int) []recordedRun {
	before, now := &t.Calls[k-1], seen(&t.Calls[k])
	at := append(seen(before), recordedRun{trace.OriginRetained, k - 1, 0, len(before.Output)},
		recordedRun{trace.OriginObservation, k - 1, 0, len(before.Observation)})
	var dropped []recordedRun
	for _, r := range at {
		dropped = append(dropped, without(r, now)...)
	}
	slices.SortStableFunc(dropped, func(a, b recordedRun) int {
		return cmp.Or(cmp.Compare(a.call, b.call), -cmp.Compare(a.origin, b.origin), cmp.Compare(a.from, b.from))
	})
	return dropped
}

// seen lists the recorded runs in a call's context.
func seen(c *trace.Call) []recordedRun {
	var runs []recordedRun
	for _, s := range c.Spans {
		if s.Origin == trace.OriginRetained || s.Origin == trace.OriginObservation {
			runs = append(runs, recordedRun{s.Origin, s.FromCall, s.Offset, s.Offset + s.End - s.Start})
		}
	}
	return runs
}

// without is what of r stands in none of the others.
func without(r recordedRun, others []recordedRun) []recordedRun {
	left := []recordedRun{r}
	for _, o := range others {
		if o.origin != r.origin || o.call != r.call {
			continue
		}
		var next []recordedRun
		for _, l := range left {
			if from, to := l.from, min(l.to, o.from); from < to {
				next = append(next, recordedRun{l.origin, l.call, from, to})
			}
			if from, to := max(l.from, o.to), l.to; from < to {
				next = append(next, recordedRun{l.origin, l.call, from, to})
			}
		}
		left = next
	}
	if len(left) == 1 && left[0].from == left[0].to {
		return nil
	}
	return left
}
