package torch

import (
	"os"
	"runtime"
	"testing"
)

func TestMain(m *testing.M) {
	runtime.LockOSThread()
	SetNumThreads(1)
	os.Exit(m.Run())
}

// scoped opens a scope for the test, and afterwards asserts that no tensor outlived it.
func scoped(t testing.TB) {
	t.Helper()
	before := Live()
	s := NewScope()
	t.Cleanup(func() {
		s.Close()
		if n := Live() - before; n != 0 {
			t.Errorf("%d tensors leaked", n)
		}
	})
}
