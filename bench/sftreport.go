package main

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"io"
	"strings"

	"github.com/memopd/memopd-bench/remote"
	"github.com/memopd/memopd-bench/results"
	"github.com/memopd/memopd-bench/trace"
)

// verdict says what became of a teacher's trajectory.
type verdict string

const (
	verdictKept        verdict = "kept"
	verdictFailed      verdict = "failed"
	verdictTruncated   verdict = "truncated"
	verdictUnusable    verdict = "unusable"
	verdictUnanswered  verdict = "unanswered"
	verdictFormat      verdict = "format"
	verdictAnswerCount verdict = "answer_count"
	verdictWrong       verdict = "wrong"
	verdictTooLong     verdict = "too_long"
	verdictDuplicate   verdict = "duplicate"
)

// verdicts are in the order of the filters.
var verdicts = []verdict{
	verdictFailed, verdictTruncated, verdictUnusable, verdictUnanswered, verdictFormat,
	verdictAnswerCount, verdictWrong, verdictTooLong, verdictDuplicate,
}

// wellFormed tells whether a response is a memory and one action, nothing else:
// <think> … </think> and <search> … </search> or <answer> … </answer>. That the
// action can be read is for agent.Parse.
func wellFormed(text string) bool {
	text = strings.TrimSpace(text)
	memory, ok := strings.CutPrefix(text, "<think>")
	if !ok {
		return false
	}
	end := strings.LastIndex(memory, "</think>")
	if end < 0 || strings.TrimSpace(memory[:end]) == "" || strings.Contains(text, "<information>") || strings.Contains(memory, "<think>") {
		return false
	}
	action := strings.TrimSpace(memory[end+len("</think>"):])
	return strings.HasPrefix(action, "<search>") && strings.HasSuffix(action, "</search>") ||
		strings.HasPrefix(action, "<answer>") && strings.HasSuffix(action, "</answer>")
}

// longestCall is the most tokens that a call held, context and output together.
func longestCall(tr *trace.Trajectory) int {
	longest := 0
	for _, c := range tr.Calls {
		longest = max(longest, len(c.Context)+len(c.Output))
	}
	return longest
}

// contents is a hash of a trajectory's prefix and outputs.
func contents(tr *trace.Trajectory) [32]byte {
	var b []byte
	add := func(ids []int32) {
		b = binary.LittleEndian.AppendUint32(b, uint32(len(ids)))
		for _, id := range ids {
			b = binary.LittleEndian.AppendUint32(b, uint32(id))
		}
	}
	add(tr.Prefix)
	for _, c := range tr.Calls {
		add(c.Output)
	}
	return sha256.Sum256(b)
}

// sftReport is OUT.report.json: how a ledger came about. The counts are of all runs
// together, Requests of the last.
type sftReport struct {
	Command      string            `json:"command"`
	Teacher      string            `json:"teacher"`
	Finished     bool              `json:"finished"`
	Tasks        int               `json:"tasks"`
	Trajectories int               `json:"trajectories"` // that ended, kept or not
	Kept         int               `json:"kept"`
	Examples     int               `json:"examples"` // turns of what is kept
	Searches     int               `json:"examples_search"`
	Answers      int               `json:"examples_answer"`
	OutputTokens int               `json:"examples_output_tokens"` // in the student's tokens
	LongestCall  int               `json:"longest_call_tokens"`
	Rejected     map[verdict]int   `json:"rejected"` // by filter
	Ends         map[trace.End]int `json:"ends"`
	Requests     remote.Stats      `json:"requests"`
	Seconds      float64           `json:"seconds"`
	Manifest     *results.Manifest `json:"manifest"`
}

func (r *sftReport) add(tr *trace.Trajectory) {
	if r.Ends == nil {
		r.Ends, r.Rejected = map[trace.End]int{}, map[verdict]int{}
		for _, v := range verdicts {
			r.Rejected[v] = 0
		}
	}
	r.Trajectories++
	r.Ends[tr.End]++
}

func (r *sftReport) addKept(tr *trace.Trajectory) {
	r.add(tr)
	r.Kept++
	for _, c := range tr.Calls {
		r.Examples++
		r.OutputTokens += len(c.Output)
		if c.Outcome == trace.OutcomeSearch {
			r.Searches++
		} else {
			r.Answers++
		}
	}
	r.LongestCall = max(r.LongestCall, longestCall(tr))
}

func (r *sftReport) addRejected(tr *trace.Trajectory, v verdict) {
	r.add(tr)
	r.Rejected[v]++
}

// milestone is a line for every hundredth trajectory, "" for the others.
func (r *sftReport) milestone() string {
	if r.Trajectories%100 != 0 {
		return ""
	}
	return r.line()
}

func (r *sftReport) line() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d trajectories: %d kept with %d examples (%d searches, %d answers)", r.Trajectories, r.Kept, r.Examples, r.Searches, r.Answers)
	for _, v := range verdicts {
		if n := r.Rejected[v]; n > 0 {
			fmt.Fprintf(&b, ", %d %s", n, v)
		}
	}
	return b.String()
}

func (r *sftReport) print(w io.Writer, path string) error {
	_, err := fmt.Fprintf(w, "%s: %s\n", path, r.line())
	return err
}

// writeReport replaces OUT.report.json.
func (t *teaching) writeReport() error {
	return results.WriteJSON(t.options.base()+".report.json", t.report)
}
