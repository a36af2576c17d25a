package train

import (
	"os"
	"runtime"
	"testing"

	"github.com/memopd/memopd-bench/torch"
)

func TestMain(m *testing.M) {
	runtime.LockOSThread()
	torch.SetNumThreads(1)
	os.Exit(m.Run())
}
