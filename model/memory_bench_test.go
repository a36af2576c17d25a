package model

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"testing"

	"github.com/memopd/memopd-bench/align"
)

// statusKiB is a line of /proc/self/status, such as VmHWM, in KiB.
func statusKiB(b *testing.B, name string) int {
	data, err := os.ReadFile("/proc/self/status")
	if err != nil {
		b.Skipf("peak memory is read from Linux's /proc: %v", err)
	}
	for line := range strings.Lines(string(data)) {
		if rest, ok := strings.CutPrefix(line, name+":"); ok {
			var kib int
			if _, err := fmt.Sscan(rest, &kib); err != nil {
				b.Fatal(err)
			}
			return kib
		}
	}
	b.Skipf("no %s in /proc/self/status", name)
	return 0
}

// BenchmarkForwardMemory is the peak of resident memory that Forward, the loss in
// pieces and Backward add, with layers checkpointed and without: 12 layers of the
// mini preset's width on about 6,000 packed tokens. Run it with
// MALLOC_MMAP_THRESHOLD_=65536, so that what is freed is not kept.
func BenchmarkForwardMemory(b *testing.B) {
	c := mini()
	c.NumHiddenLayers = 12
	d, err := New(c, 1)
	if err != nil {
		b.Fatal(err)
	}
	defer d.Free()
	rng := rand.New(rand.NewPCG(1, 1))
	var batch []*align.Packed
	for n := 0; n < 6000; {
		p, _ := episode(rng, 250, 4, 60)
		n += len(p.IDs)
		batch = append(batch, p)
	}
	for _, checkpoint := range []bool{true, false} {
		b.Run(fmt.Sprintf("checkpoint=%v", checkpoint), func(b *testing.B) {
			for b.Loop() {
				// 5 sets VmHWM back to what is resident now (proc(5), clear_refs).
				if err := os.WriteFile("/proc/self/clear_refs", []byte("5"), 0o200); err != nil {
					b.Skipf("the peak cannot be set back: %v", err)
				}
				before := statusKiB(b, "VmRSS")
				forwardGrads(d, batch, ForwardOptions{CheckpointLayers: checkpoint}, 512)
				b.ReportMetric(float64(statusKiB(b, "VmHWM")-before)/1024, "peak-MiB")
			}
		})
	}
}
