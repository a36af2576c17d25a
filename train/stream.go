package train

import "math/rand/v2"

// stream names one independent use of randomness.
type stream uint64

// The streams. Their numbers are part of what a seed means: they never change.
const (
	streamSource     stream = 1 // which trajectory the SFT source makes
	streamExamples   stream = 2 // which calls of it are trained, in which layout
	streamPool       stream = 3 // order of a pool's batches
	streamDrill      stream = 4 // ids of copy drills
	streamRollout    stream = 5 // seed of a step's rollouts
	streamMinibatch  stream = 6 // order of trajectories in an epoch
	streamRCE        stream = 7 // which trajectories are checked
	streamCriticInit stream = 8 // initial weights of the critic
)

// mix64 is SplitMix64's finaliser (Steele, Lea, Flood, OOPSLA 2014): a bijection
// in which every input bit changes about half of the output bits.
func mix64(x uint64) uint64 {
	x ^= x >> 30
	x *= 0xbf58476d1ce4e5b9
	x ^= x >> 27
	x *= 0x94d049bb133111eb
	return x ^ x>>31
}

// deriveSeed is a pure function of the run's seed, the stream and any number of
// counters.
func deriveSeed(seed uint64, s stream, counters ...uint64) uint64 {
	h := mix64(seed + 0x9e3779b97f4a7c15)
	h = mix64(h ^ uint64(s)*0x9e3779b97f4a7c15)
	for _, c := range counters {
		h = mix64(h + 0x9e3779b97f4a7c15 + c)
	}
	return h
}

// newRand opens the generator of a stream at the given counters.
func newRand(seed uint64, s stream, counters ...uint64) *rand.Rand {
	h := deriveSeed(seed, s, counters...)
	return rand.New(rand.NewPCG(h, mix64(h+0x9e3779b97f4a7c15)))
}
