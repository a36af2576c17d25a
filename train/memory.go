package train

import (
	"github.com/memopd/memopd-bench/model"
	"github.com/memopd/memopd-bench/torch"
)

// Phase is a part of a training step, as far as memory goes.
type Phase string

// The phases of a step. SFT has the last two.
const (
	PhaseSample   Phase = "sample"   // rollouts
	PhaseScore    Phase = "score"    // behaviour, reference, teacher and values, without gradients
	PhaseUpdate   Phase = "update"   // forward and backward passes
	PhaseOptimise Phase = "optimise" // AdamW's step
)

// Phases lists all phases in their order.
var Phases = []Phase{PhaseSample, PhaseScore, PhaseUpdate, PhaseOptimise}

// MemoryPart is something that takes device memory, and when.
type MemoryPart struct {
	Name   string  `json:"name"`
	Bytes  int64   `json:"bytes"`
	Phases []Phase `json:"phases"` // in which it lives
}

// MemoryPlan says what a run needs of its device.
type MemoryPlan struct {
	Parts []MemoryPart `json:"parts"`
}

// add notes a part unless it is empty.
func (p *MemoryPlan) add(name string, bytes int64, phases ...Phase) {
	if bytes > 0 {
		p.Parts = append(p.Parts, MemoryPart{name, bytes, phases})
	}
}

// In sums up what lives in a phase, in bytes.
func (p MemoryPlan) In(phase Phase) int64 {
	sum := int64(0)
	for _, part := range p.Parts {
		for _, at := range part.Phases {
			if at == phase {
				sum += part.Bytes
			}
		}
	}
	return sum
}

// Peak is the phase that needs most, and how much, in bytes.
func (p MemoryPlan) Peak() (phase Phase, bytes int64) {
	for _, at := range Phases {
		if n := p.In(at); n > bytes {
			phase, bytes = at, n
		}
	}
	return phase, bytes
}

// Workload are the sizes of what a run is given, in tokens unless said otherwise.
type Workload struct {
	PackedTokens   int `json:"packed_tokens"`   // of a microbatch
	PrefixTokens   int `json:"prefix_tokens"`   // of a task
	Calls          int `json:"calls"`           // in a microbatch's trajectories together, not their tokens
	ResponseTokens int `json:"response_tokens"` // sampled tokens of a call
	Trajectories   int `json:"trajectories"`    // of a step, not their tokens
	SampledRows    int `json:"sampled_rows"`    // requests that are decoded at once
	ContextTokens  int `json:"context_tokens"`  // context and output of a request
}

// actions is the number of sampled tokens in a microbatch.
func (w Workload) actions() int64 { return int64(min(w.Calls*w.ResponseTokens, w.PackedTokens)) }

// keys is the number of attention keys in a microbatch: each call's block sees the
// prefix and itself.
func (w Workload) keys() int64 { return int64(w.PackedTokens) + int64(w.Calls*w.PrefixTokens) }

// own is the number of tokens of a call's block, all blocks being equal.
func (w Workload) own() int64 {
	if w.Calls == 0 {
		return 0
	}
	return max(0, int64(w.PackedTokens-w.PrefixTokens)/int64(w.Calls))
}

// scores is the number of query-key pairs in a microbatch.
func (w Workload) scores() int64 {
	prefix, own := int64(w.PrefixTokens), w.own()
	return prefix*prefix + int64(w.Calls)*own*(prefix+own)
}

// causalScores are those of the scores whose key is not after the query.
func (w Workload) causalScores() int64 {
	prefix, own := int64(w.PrefixTokens), w.own()
	return w.scores() - (prefix*prefix+int64(w.Calls)*own*own)/2
}

// Everything always lives; training alone has gradients.
var (
	always    = Phases
	computing = []Phase{PhaseUpdate, PhaseOptimise}
)

// PlanPPO reckons the device memory of PPO with a student and a teacher, which is
// nil without one. The context of the CUDA driver, libraries' workspaces and the
// allocator's fragmentation come on top.
func PlanPPO(c PPOConfig, student model.Config, teacher *model.Config, w Workload) MemoryPlan {
	var p MemoryPlan
	weights := Parameters(student)
	frozen := c.Frozen().Weights.Size()
	p.add("student: f32 weights", 4*weights, always...)
	p.add("student: AdamW moments", 8*weights, always...)
	p.add("student: gradients", 4*weights, computing...)
	kept := always
	if c.OffloadFrozen {
		kept = []Phase{PhaseScore}
	}
	if c.KLCoefficient != 0 {
		p.add("reference: weights", int64(frozen)*weights, kept...)
	}
	whole := teacher // where its whole distribution is taken in the update
	if c.TeacherEstimator == EstimatorSampled {
		whole = nil
	}
	if teacher != nil {
		p.add("teacher: weights", int64(frozen)*Parameters(*teacher), kept...)
	}
	if whole != nil {
		if c.OffloadFrozen || frozen < 4 {
			p.add("teacher: f32 head", 4*int64(teacher.VocabSize*teacher.HiddenSize), computing...)
		}
		hidden := int64(w.Trajectories*w.Calls*w.ResponseTokens) * int64(teacher.HiddenSize)
		if !c.OffloadFrozen {
			p.add("teacher: last hidden states of the step", 4*hidden, PhaseScore, PhaseUpdate, PhaseOptimise)
		}
	}
	critic := int64(c.CriticHiddenUnits) * int64(student.HiddenSize+2)
	if c.Critic == CriticDecoder {
		critic = weights + int64(student.HiddenSize) + 1
	}
	p.add("critic: f32 weights", 4*critic, always...)
	p.add("critic: AdamW moments", 8*critic, always...)
	p.add("critic: gradients", 4*critic, computing...)
	p.samples(c.Compute, student, w)
	p.scores(c.Compute, student, teacher, w)
	p.updates(c.Compute, student, whole, w)
	return p
}

// PlanSFT reckons the device memory of SFT. Of the workload it takes the microbatch.
func PlanSFT(c SFTConfig, student model.Config, w Workload) MemoryPlan {
	var p MemoryPlan
	weights := Parameters(student)
	p.add("student: f32 weights", 4*weights, computing...)
	p.add("student: AdamW moments", 8*weights, computing...)
	p.add("student: gradients", 4*weights, computing...)
	p.updates(c.Compute, student, nil, w)
	return p
}

// prefixBytesMax is what a sampler keeps of prefixes by default, in bytes.
const prefixBytesMax = 1 << 30

// samples adds what decoding takes: the weights as the sampler makes them ready for
// a step's rollouts, keys and values of all rows and of the tasks' prefixes, logits.
func (p *MemoryPlan) samples(c Compute, student model.Config, w Workload) {
	size := int64(c.Frozen().Compute.Size())
	ready := int64(student.NumHiddenLayers) * castBytes(student, size)
	if c.Device == "cpu" { // there the sampler lays out anew what it multiplies with
		ready = int64(student.NumHiddenLayers)*layerParameters(student)*size + int64(student.VocabSize*student.HiddenSize)*4
	}
	p.add("sampling: weights made ready", ready, PhaseSample)
	perToken := 2 * int64(student.NumHiddenLayers*student.NumKeyValueHeads*student.HeadDim) * size
	p.add("sampling: keys and values", int64(w.SampledRows*w.ContextTokens)*perToken, PhaseSample)
	p.add("sampling: prefixes kept", min(int64(w.Trajectories*w.PrefixTokens)*perToken, prefixBytesMax), PhaseSample)
	p.add("sampling: logits", int64(w.SampledRows)*int64(student.VocabSize)*4, PhaseSample)
}

// scores adds what the passes without gradients take; the larger model's count,
// since one runs after the other.
func (p *MemoryPlan) scores(c Compute, student model.Config, teacher *model.Config, w Workload) {
	layer := layerMemory(student, c, w).working
	logits := chunkRows(c, w) * int64(student.VocabSize) * 4
	head := headCopy(c.Frozen(), student)
	if teacher != nil {
		layer = max(layer, layerMemory(*teacher, c, w).working)
	}
	p.add("scoring: activations of one layer", layer, PhaseScore)
	p.add("scoring: logits of a chunk", logits+head, PhaseScore)
}

// updates adds what a forward and backward pass takes.
func (p *MemoryPlan) updates(c Compute, student model.Config, teacher *model.Config, w Workload) {
	m := layerMemory(student, c, w)
	layers := int64(student.NumHiddenLayers)
	if c.CheckpointLayers {
		p.add("activations: layers' inputs", (layers+1)*m.input, PhaseUpdate)
		p.add("activations: one layer run again", m.working+m.backward+m.weights, PhaseUpdate)
	} else {
		// Of the last layer only the actions' part goes through the feed-forward.
		short := (int64(w.PackedTokens) - w.actions()) * m.feedForwardPerToken
		p.add("activations: all layers", layers*m.saved-short, PhaseUpdate)
		p.add("activations: gradients of one layer", m.backward, PhaseUpdate)
		p.add("compute copies of the weights", layers*m.weights, PhaseUpdate)
	}
	p.add("attention masks", w.scores()*int64(c.Trained().Compute.Size()), PhaseUpdate)
	vocab := int64(student.VocabSize)
	logits := chunkRows(c, w) * vocab * 4
	if teacher != nil {
		logits *= 2
	}
	// The head's gradient of a chunk, before it is added to the others.
	logits += vocab*int64(student.HiddenSize)*4 + 2*w.actions()*int64(student.HiddenSize)*4
	p.add("logits of a chunk", logits, PhaseUpdate)
	p.add("AdamW: denominators", min(max(vocab*int64(student.HiddenSize), torch.AdamWElements), Parameters(student))*4, PhaseOptimise)
}

// chunkRows is the number of positions whose logits exist at once.
func chunkRows(c Compute, w Workload) int64 {
	if c.LogitsPerChunk == 0 {
		return w.actions()
	}
	return min(int64(c.LogitsPerChunk), w.actions())
}

// headCopy is the size of the float32 copy of a head that is stored in a shorter
// type: logits are float32.
func headCopy(p model.Placement, c model.Config) int64 {
	if p.Weights.Size() >= 4 {
		return 0
	}
	return int64(c.VocabSize) * int64(c.HiddenSize) * 4
}
