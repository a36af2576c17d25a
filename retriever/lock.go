package retriever

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
)

// buildingPath is the folder in which the index dir is built.
func buildingPath(dir string) string { return dir + ".building" }

// lockBuilding makes the folder and locks it for this process, without waiting.
// The lock ends with the process, so remains of a killed build can be told from
// a running one. Close the file to unlock.
func lockBuilding(path string) (*os.File, error) {
	for range 10 { // more than one try only if a build ends just now
		if err := os.Mkdir(path, 0o755); err != nil && !errors.Is(err, os.ErrExist) {
			return nil, err
		}
		f, err := os.Open(path)
		if errors.Is(err, os.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
			busy := fmt.Errorf("%w: it is being built in %s (%v); wait for its end", ErrBusy, path, err)
			return nil, errors.Join(busy, f.Close())
		}
		if sameFile(f, path) {
			return f, nil
		}
		if err := f.Close(); err != nil {
			return nil, err
		}
	}
	return nil, fmt.Errorf("%w: other builds in %s come and go", ErrBusy, path)
}

// sameFile reports whether the folder that was locked still has its name.
func sameFile(f *os.File, path string) bool {
	locked, err := f.Stat()
	if err != nil {
		return false
	}
	named, err := os.Stat(path)
	return err == nil && os.SameFile(locked, named)
}

// clearDir removes what a killed build left.
func clearDir(dir string) error {
	entries, err := os.ReadDir(dir)
	for _, e := range entries {
		err = errors.Join(err, os.RemoveAll(filepath.Join(dir, e.Name())))
	}
	return err
}
