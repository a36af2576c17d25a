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

// BLASCore names the processor that OpenBLAS takes this one for, "" where
// libtorch does without OpenBLAS. One that is too new for its release gets the
// kernels of "Prescott", of 2004, which are several times slower;
// OPENBLAS_CORETYPE in the environment chooses better ones.
func BLASCore() string { return ctorch.BLASCore() }

// CUDADevices counts the CUDA devices that answer; 0 in a CPU build.
func CUDADevices() int { return ctorch.CUDADevices() }

// CUDAAvailable says whether ToDevice("cuda:0") can work.
func CUDAAvailable() bool { return CUDADevices() > 0 }

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
