package audit

import (
	"fmt"
	"os"
	"runtime/debug"
	"slices"
	"strings"

	"github.com/memopd/memopd-bench/torch"
)

// SpeedMemory is the peak of resident memory that an update in one way takes over
// what is there before it, weights and gradients included, in bytes. It belongs in
// a process of its own, since memory that an earlier update left in the heap would
// be used without showing. Freed memory is kept (ctorch's keep_memory) unless
// MALLOC_MMAP_THRESHOLD_ is in the environment: then large tensors are handed back,
// and the peak is that of living tensors.
func SpeedMemory(o SpeedOptions, way string) (int64, error) {
	if !slices.Contains(SpeedWays, way) {
		return 0, fmt.Errorf("speed: unknown way %q (known: %s)", way, strings.Join(SpeedWays, ", "))
	}
	small := o
	small.Shape = SpeedShape{Shape: "memory", Prefix: 8, Calls: 2, CallTokens: 8, ActionShare: 0.25, Trajectories: 1}
	warm, err := newSpeedRun(small)
	if err != nil {
		return 0, err
	}
	r, err := newSpeedRun(o)
	if err != nil {
		return 0, err
	}
	defer zero(o.Model)
	zero(o.Model)
	warm.update(way) // makes the gradients
	for _, p := range o.Model.Parameters() {
		if g := p.Tensor.Grad(); g != nil {
			torch.NoGrad(func() { g.Zero_() })
			g.Free()
		}
	}
	debug.FreeOSMemory()
	// 5 sets VmHWM back to what is resident now (proc(5), clear_refs).
	if err := os.WriteFile("/proc/self/clear_refs", []byte("5"), 0o200); err != nil {
		return 0, fmt.Errorf("speed: the peak of memory cannot be set back: %w", err)
	}
	before, err := residentBytes("VmRSS")
	if err != nil {
		return 0, err
	}
	r.update(way)
	peak, err := residentBytes("VmHWM")
	return peak - before, err
}

// residentBytes is a line of /proc/self/status, such as VmHWM.
func residentBytes(name string) (int64, error) {
	data, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0, fmt.Errorf("speed: memory is read from Linux's /proc: %w", err)
	}
	for line := range strings.Lines(string(data)) {
		if rest, ok := strings.CutPrefix(line, name+":"); ok {
			var kib int64
			if _, err := fmt.Sscan(rest, &kib); err != nil {
				return 0, fmt.Errorf("speed: %s in /proc/self/status: %w", name, err)
			}
			return kib << 10, nil
		}
	}
	return 0, fmt.Errorf("speed: no %s in /proc/self/status", name)
}
