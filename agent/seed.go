package agent

import (
	"crypto/sha256"
	"encoding/binary"
)

// CallSeed derives the seed of one call's draws: the first 8 bytes of SHA-256,
// big-endian, with the top bit cleared (so that it fits a signed integer), over
// the text "memopd-bench/seed/1", a zero byte, run, sample and call as 8 big-endian
// bytes each, and the task's id.
//
// Run is the run's seed; sample counts the episodes of one task in a rollout from
// 0. So an episode draws alike whatever else is in its rollout.
func CallSeed(run uint64, taskID string, sample, call int) uint64 {
	b := append([]byte("memopd-bench/seed/1"), 0)
	b = binary.BigEndian.AppendUint64(b, run)
	b = binary.BigEndian.AppendUint64(b, uint64(sample))
	b = binary.BigEndian.AppendUint64(b, uint64(call))
	sum := sha256.Sum256(append(b, taskID...))
	return binary.BigEndian.Uint64(sum[:8]) &^ (1 << 63)
}
