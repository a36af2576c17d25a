// Package trace is the ledger of what an agent did: every model call with the
// exact token ids that the sampler saw and produced. Text is never stored in
// place of ids, and ids are never decoded and tokenised again.
//
// The terms are those of MemOPD (arXiv 2608.07068): a trajectory has a task
// prefix, seen by every call, and calls; each call sees the prefix and its own
// mutable context, and produces a sampled action.
package trace

// SchemaVersion is written into each stored trajectory; docs/LEDGER.md
// describes it. It changes when a field changes its meaning.
const SchemaVersion = 1

// Origin says where a span of a call's context came from.
type Origin string

// The origins of context tokens.
const (
	OriginPrefix      Origin = "prefix"      // the task prefix, alike in every call
	OriginRetained    Origin = "retained"    // a copy of an earlier call's output
	OriginObservation Origin = "observation" // what the environment answered
	OriginUnknown     Origin = "unknown"     // of an import: the source does not say
)

// Span is a run of context tokens [Start, End) of one origin. FromCall is the
// call whose output or observation it is, -1 for the prefix and the unknown. Offset is the place
// in that output or observation where the copy begins, 0 for a whole one.
type Span struct {
	Origin   Origin `json:"origin"`
	FromCall int    `json:"from_call"`
	Offset   int    `json:"offset"`
	Start    int    `json:"start"`
	End      int    `json:"end"`
}

// StopReason says why the sampler ended a call's output.
type StopReason string

// The stop reasons of a call.
const (
	StopEOS     StopReason = "eos"           // an end-of-sequence token; it is the output's last id
	StopTag     StopReason = "stop_tag"      // the agent's stop condition held (a closing tag); the ids that closed it are kept
	StopLength  StopReason = "length"        // MaxNewTokens reached
	StopContext StopReason = "context_limit" // the model's context was full, or the request did not fit
	StopScript  StopReason = "script"        // a scripted output ended; nothing was sampled
	StopUnknown StopReason = "unknown"       // of an import: the source does not say
)

// Outcome says what the agent made of a call's output.
type Outcome string

// The outcomes of a call.
const (
	OutcomeSearch   Outcome = "search"   // a query, answered by the environment
	OutcomeAnswer   Outcome = "answer"   // the final answers
	OutcomeUnusable Outcome = "unusable" // nothing that the protocol takes; Call.Reason says why
	OutcomeUnknown  Outcome = "unknown"  // of an import: nobody read the output
)

// End says why a trajectory ended.
type End string

// The ends of a trajectory.
const (
	EndAnswered   End = "answered"    // an answer was given
	EndTurnLimit  End = "turn_limit"  // the turn budget was spent without an answer
	EndUnusable   End = "unusable"    // a call produced nothing usable
	EndContext    End = "context"     // the next call's context, or its response, did not fit
	EndUpdate     End = "update"      // the context update named what was not recorded
	EndRetrieval  End = "retrieval"   // the searcher failed
	EndCancelled  End = "cancelled"   // the run was stopped
	EndModelError End = "model_error" // the model failed
	EndUnknown    End = "unknown"     // of an import: the source does not say
)

// Meaning says of which distribution log-probs are.
type Meaning string

// The meanings of log-probs. Raw ones fit what was sampled only at temperature 1
// without top-k and top-p: else they are off by the logarithm of the share that
// was left to draw from.
const (
	MeaningProcessed Meaning = ""        // the one drawn from: temperature, top-k and top-p applied
	MeaningRaw       Meaning = "raw"     // the model's, before temperature, top-k and top-p
	MeaningUnknown   Meaning = "unknown" // of an import: the source does not say
)

// Sampler holds the settings a trajectory was sampled with. Those of an import
// that its source does not state are 0, and named in Trajectory.Lacks.
type Sampler struct {
	Greedy      bool    `json:"greedy"`
	Temperature float64 `json:"temperature"`
	TopK        int     `json:"top_k"` // 0: all
	TopP        float64 `json:"top_p"` // 1: all
	Seed        uint64  `json:"seed"`
	Meaning     Meaning `json:"meaning,omitempty"` // of the log-probs
}

// Call is one call of the model as it was run.
type Call struct {
	Index   int     `json:"index"`
	Context []int32 `json:"context"` // exact ids the sampler saw, the task prefix included
	Spans   []Span  `json:"spans"`   // a partition of Context, in order
	Output  []int32 `json:"output"`  // sampled ids, the stop token included; empty only of an import whose source holds the context alone

	// LogProbs holds one value an output id: its log-probability under the
	// distribution it was drawn from (temperature, top-k and top-p applied), or the one that
	// Sampler.Meaning names. For greedy decoding it
	// is the log-probability at temperature 1. Nil: the output was not sampled
	// (a script, an import without them), so it has none.
	LogProbs []float32 `json:"log_probs"`

	Stop             StopReason `json:"stop"`
	Outcome          Outcome    `json:"outcome"`
	Reason           string     `json:"reason,omitempty"`      // why the outcome is unusable
	Query            string     `json:"query,omitempty"`       // what was searched for
	Observation      []int32    `json:"observation,omitempty"` // ids of the environment's answer to this call
	Documents        []string   `json:"documents,omitempty"`   // ids of the documents in the observation
	Seed             uint64     `json:"seed"`                  // seed of this call's draws
	MaxNewTokens     int        `json:"max_new_tokens"`        // 0: not known, of an import
	Seconds          float64    `json:"seconds"`               // model time of this call
	RetrievalSeconds float64    `json:"retrieval_seconds"`     // search time after this call

	// RetrievalError says why the search could not be made; the observation tells the
	// model of it, without documents. Empty: it was made, or none was asked for.
	RetrievalError string `json:"retrieval_error,omitempty"`
}

// Trajectory is one run of an agent on one task.
type Trajectory struct {
	Schema  int      `json:"schema"`
	ID      string   `json:"id"`
	TaskID  string   `json:"task_id"`
	Agent   string   `json:"agent"`  // name of the context update, such as "mem1"
	Model   string   `json:"model"`  // what sampled it: a checkpoint's path or hash
	Prefix  []int32  `json:"prefix"` // the task prefix
	Calls   []Call   `json:"calls"`
	Sampler Sampler  `json:"sampler"`
	End     End      `json:"end"`
	Error   string   `json:"error,omitempty"`   // what failed, for the ends that are failures
	Answers []string `json:"answers,omitempty"` // one a question, as far as given

	Reward float64            `json:"reward"` // set by whoever knows the golds
	Scores map[string]float64 `json:"scores,omitempty"`

	// Lacks names what the source of an import does not hold, such as "log-probs".
	// A rollout of ours lacks nothing.
	Lacks []string `json:"lacks,omitempty"`
}

// Request asks a policy for one response.
type Request struct {
	Context      []int32
	Spans        []Span // a partition of Context, in order
	PrefixLength int    // leading ids of Context that all calls of the trajectory share
	MaxNewTokens int
	Seed         uint64 // of this call's draws, whatever else is in the batch
	TaskID       string // whose request it is; a sampler needs neither this
	Call         int    // nor the call's index in its trajectory

	// Stopped is asked after each sampled id, that id included; true ends the
	// output with StopTag. It may keep state: calls come in order, once an id.
	Stopped func(output []int32) bool
}

// Response is what a policy gave for a request.
type Response struct {
	Output   []int32
	LogProbs []float32
	Stop     StopReason
	Seconds  float64

	// Err says why there is no response, for a failure of this request alone: its
	// trajectory ends as [EndModelError], the others go on. The rest is not read.
	Err error
}

// Queue hands requests to a policy and takes its responses back. Done may make
// further requests ready, so a policy that refills finished rows asks Next again
// after each Done. Both are called from one goroutine.
type Queue interface {
	// Next returns a ready request, or false while there is none; with no
	// request out, false means the end.
	Next() (*Request, bool)
	Done(*Request, *Response)
}

// RetrievalFailures counts the searches that could not be made and were told to the
// model.
func (t *Trajectory) RetrievalFailures() int {
	n := 0
	for i := range t.Calls {
		if t.Calls[i].RetrievalError != "" {
			n++
		}
	}
	return n
}

// SampledTokens counts the output ids of all calls.
func (t *Trajectory) SampledTokens() int {
	n := 0
	for i := range t.Calls {
		n += len(t.Calls[i].Output)
	}
	return n
}
