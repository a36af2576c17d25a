package metrics

// CallLengths is what the cost metrics need of one call of the model.
type CallLengths struct {
	ContextTokens int     // what the call saw, the task prefix included
	OutputTokens  int     // what it sampled
	Seconds       float64 // model time, retrieval apart
}

// PeakContext is the largest number of tokens that one call held, context and
// output together; 0 without calls. MEM1's script leaves out the prompt, counts
// with another model's tokenizer, and skips trajectories without a right answer;
// this counts the sampler's own ids, all of them, in every trajectory.
func PeakContext(calls []CallLengths) int {
	peak := 0
	for _, c := range calls {
		peak = max(peak, c.ContextTokens+c.OutputTokens)
	}
	return peak
}

// Dependency sums (context + l/2)·l over the outputs of length l: the pairs of a
// generated token and a token it depends on (MEM1, arXiv 2506.15841). With the
// exact l/2 the sum does not change when an output is counted in parts, its
// thought and then its action. MEM1's script rounds l/2 down in each part, which
// is less by up to l/2 a part, and leaves out the prompt.
func Dependency(calls []CallLengths) float64 {
	sum := 0.0
	for _, c := range calls {
		l := float64(c.OutputTokens)
		sum += (float64(c.ContextTokens) + l/2) * l
	}
	return sum
}

// InferenceSeconds sums the model time of a trajectory's calls. It is an
// inference time if the trajectory ran alone.
func InferenceSeconds(calls []CallLengths) float64 {
	sum := 0.0
	for _, c := range calls {
		sum += c.Seconds
	}
	return sum
}
