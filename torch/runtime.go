package torch

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/memopd/memopd-bench/torch/internal/ctorch"
)

// ManualSeed seeds libtorch's generators on all devices.
func ManualSeed(seed uint64) { raise("manual_seed", ctorch.Seed(seed)) }

// SetNumThreads sets the threads that an operator may use, in libtorch and in OpenBLAS.
func SetNumThreads(n int) { ctorch.SetThreads(n) }

// NumThreads is the number of threads that an operator may use.
func NumThreads() int { return ctorch.Threads() }

// Version is the libtorch that the binding was compiled against, such as "1.13.1".
func Version() string { return ctorch.Version() }

// atLeast says whether the libtorch is of that version or a later one.
func atLeast(major, minor int) bool {
	var have [2]int
	if n, _ := fmt.Sscanf(Version(), "%d.%d", &have[0], &have[1]); n < 2 {
		return false
	}
	return have[0] > major || have[0] == major && have[1] >= minor
}

// BLASCore names the processor that OpenBLAS takes this one for, "" where
// libtorch does without OpenBLAS. One that is too new for its release gets the
// kernels of "Prescott", of 2004, which are several times slower;
// OPENBLAS_CORETYPE in the environment chooses better ones.
func BLASCore() string { return ctorch.BLASCore() }

// CUDADevices counts the CUDA devices that answer; 0 in a CPU build.
func CUDADevices() int { return ctorch.CUDADevices() }

// CUDAAvailable says whether ToDevice("cuda:0") can work.
func CUDAAvailable() bool { return CUDADevices() > 0 }

// CheckDevice reports a device name that is none, or that names a device which is not there.
func CheckDevice(name string) error {
	kind, index, err := parseDevice(name)
	if err != nil {
		return err
	}
	if kind == 0 {
		return nil
	}
	switch n := CUDADevices(); {
	case n == 0:
		return fmt.Errorf("device %q: no CUDA device answers (libtorch %s; a CPU build has none)", name, Version())
	case index >= n:
		return fmt.Errorf("device %q: there are %d CUDA devices", name, n)
	}
	return nil
}

// Synchronize waits until a CUDA device has done what it was given; the CPU never lags behind.
func Synchronize(device string) {
	kind, index, err := parseDevice(device)
	if err == nil && kind != 0 {
		err = CheckDevice(device)
	}
	if err != nil {
		panic(&Error{Op: "synchronize", Message: err.Error()})
	}
	if kind != 0 {
		raise("synchronize", ctorch.Synchronize(index))
	}
}

// CUDAMemory is the bytes of the current CUDA device that are taken, by all programs, and all that it has; 0, 0 without one.
// libtorch keeps what it has once taken, so after a run the difference to before is the run's peak.
func CUDAMemory() (used, total int64) { return ctorch.CUDAMemory() }

// place is a device as an argument of the operator op on tensors, which it names where the device is not there.
func place(op, device string, tensors ...*Tensor) ctorch.Arg {
	kind, index, err := parseDevice(device)
	if err == nil && kind != 0 {
		err = CheckDevice(device)
	}
	if err != nil {
		raise(op, err.Error(), tensors...)
	}
	return ctorch.Device(kind, index)
}

// parseDevice reads "cpu", "cuda" or "cuda:N" into libtorch's type and index.
func parseDevice(name string) (kind, index int, err error) {
	base, number, numbered := strings.Cut(name, ":")
	index = -1
	if numbered {
		if index, err = strconv.Atoi(number); err != nil || index < 0 || index > 127 {
			return 0, 0, fmt.Errorf("device %q: not a device number: %q", name, number)
		}
	}
	switch base {
	case "cpu":
		return 0, index, nil
	case "cuda":
		return 1, index, nil
	}
	return 0, 0, fmt.Errorf("device %q: neither cpu nor cuda:N", name)
}

func deviceName(kind, index int) string {
	switch kind {
	case 0:
		return "cpu"
	case 1:
		return fmt.Sprintf("cuda:%d", max(index, 0))
	}
	return fmt.Sprintf("device(%d):%d", kind, index)
}
