package miniwiki

import "math/rand/v2"

// Streams keep the draws of different purposes apart under one seed.
const (
	streamWorld uint64 = iota + 1
	streamSampler
	streamSplit
)

// mix hashes parts into a seed, so that neighbouring seeds share no stream
// (the finaliser of SplitMix64).
func mix(parts ...uint64) uint64 {
	var h uint64
	for _, p := range parts {
		h += p + 0x9e3779b97f4a7c15
		h = (h ^ h>>30) * 0xbf58476d1ce4e5b9
		h = (h ^ h>>27) * 0x94d049bb133111eb
		h ^= h >> 31
	}
	return h
}

func pick(rng *rand.Rand, from []int) int { return from[rng.IntN(len(from))] }
