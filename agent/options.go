package agent

import (
	"errors"
	"fmt"
	"runtime"

	"github.com/memopd/memopd-bench/trace"
)

// Options says how episodes are run. Protocol and Tokenizer are needed.
type Options struct {
	Protocol  Protocol
	Update    Update // nil: MEM1Update
	Tokenizer Tokenizer

	// EncodePrefix turns the protocol's prefix to ids, such as the user's message of a
	// chat template with the opening of the answer after it. Everything later,
	// outputs and observations, stays plain. Nil: Tokenizer.Encode.
	EncodePrefix func(text string) []int32

	// ContextTokens is the model's limit: a call is made only when its context
	// and its whole response limit fit. 0: no limit.
	ContextTokens int

	Sampler  trace.Sampler // recorded as it is; Sampler.Seed is the run's seed, see CallSeed
	Model    string        // recorded: what the policy is
	IDPrefix string        // goes before each trajectory's id, to keep ids of many rollouts apart

	Searches int            // searches at a time; 0: one a processor
	Progress func(Progress) // called after each call and each end, from one goroutine at a time
}

// Progress is how far a rollout is.
type Progress struct {
	Episodes     int // in the rollout
	Ended        int
	Calls        int // recorded so far
	OutputTokens int

	// Finished is the trajectory that has just ended, nil after other calls.
	Finished *trace.Trajectory
}

// withDefaults returns the options with what was left out filled in.
func (o Options) withDefaults() (Options, error) {
	if o.Tokenizer == nil {
		return o, errors.New("agent options: no tokenizer")
	}
	if o.ContextTokens < 0 || o.Searches < 0 {
		return o, fmt.Errorf("agent options: context tokens %d, searches %d: below 0", o.ContextTokens, o.Searches)
	}
	if o.EncodePrefix == nil {
		o.EncodePrefix = o.Tokenizer.Encode
	}
	if o.Update == nil {
		o.Update = MEM1Update{}
	}
	if o.Searches == 0 {
		o.Searches = runtime.GOMAXPROCS(0)
	}
	return o, nil
}
