package eval

import (
	"github.com/memopd/memopd-bench/datasets"
	"github.com/memopd/memopd-bench/eval/metrics"
	"github.com/memopd/memopd-bench/trace"
)

// TaskRecord is the outcome of one task, a line of a run's tasks.jsonl.
type TaskRecord struct {
	TaskID    string     `json:"task_id"`
	World     string     `json:"world,omitempty"`
	Questions []string   `json:"questions"`
	Golds     [][]string `json:"golds"`
	Answers   []string   `json:"answers"`
	End       trace.End  `json:"end"`
	Calls     int        `json:"calls"`

	EM     float64 `json:"em"` // squad: mean over the task's questions
	F1     float64 `json:"f1"`
	EMMem1 float64 `json:"em_mem1"` // mem1: sum over them
	F1Mem1 float64 `json:"f1_mem1"`

	// Recall is the share of questions one of whose golds stands in a document
	// that the agent was shown.
	Recall float64 `json:"retrieval_recall"`

	// RetrievalFailures are searches that could not be made and were told to the model.
	RetrievalFailures int `json:"retrieval_failures"`

	PeakContext int     `json:"peak_context"` // tokens
	Dependency  float64 `json:"dependency"`

	// InferenceSeconds is the model's time on the task when it ran alone; null
	// for tasks that only ran beside others.
	InferenceSeconds *float64 `json:"inference_seconds"`
}

// NewTaskRecord scores a trajectory on its task. shown are the texts of the
// documents that the agent saw, for the recall.
func NewTaskRecord(task datasets.Task, t *trace.Trajectory, shown []string) TaskRecord {
	r := TaskRecord{
		TaskID: task.ID, World: task.World, Answers: t.Answers, End: t.End, Calls: len(t.Calls),
	}
	if r.Answers == nil {
		r.Answers = []string{}
	}
	for _, q := range task.Questions {
		r.Questions = append(r.Questions, q.Question)
		r.Golds = append(r.Golds, q.Golds)
	}
	squad, mem1 := metrics.SQuAD(t.Answers, r.Golds), metrics.MEM1(t.Answers, r.Golds)
	r.EM, r.F1, r.EMMem1, r.F1Mem1 = squad.EM, squad.F1, mem1.EM, mem1.F1
	r.Recall, r.RetrievalFailures = recall(shown, r.Golds), t.RetrievalFailures()
	lengths := callLengths(t)
	r.PeakContext, r.Dependency = metrics.PeakContext(lengths), metrics.Dependency(lengths)
	return r
}

func recall(shown []string, golds [][]string) float64 {
	if len(golds) == 0 {
		return 0
	}
	found := 0
	for _, g := range golds {
		for _, text := range shown {
			if metrics.HasAnswer(text, g) {
				found++
				break
			}
		}
	}
	return float64(found) / float64(len(golds))
}

func callLengths(t *trace.Trajectory) []metrics.CallLengths {
	out := make([]metrics.CallLengths, len(t.Calls))
	for i := range t.Calls {
		c := &t.Calls[i]
		out[i] = metrics.CallLengths{ContextTokens: len(c.Context), OutputTokens: len(c.Output), Seconds: c.Seconds}
	}
	return out
}
