package trace

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// atomicFile is a file beside its final path that commit puts in place.
type atomicFile struct {
	*os.File
	path string
	done bool
}

func createAtomic(path string) (*atomicFile, error) {
	f, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".partial-*")
	if err != nil {
		return nil, fmt.Errorf("ledger %s: %w", path, err)
	}
	return &atomicFile{File: f, path: path}, nil
}

// commit syncs, closes and renames. On an error the file is gone.
func (f *atomicFile) commit() error {
	if f.done {
		return fmt.Errorf("ledger %s: closed already", f.path)
	}
	f.done = true
	err := errors.Join(f.Chmod(0o644), f.Sync(), f.File.Close())
	if err == nil {
		err = os.Rename(f.Name(), f.path)
	}
	if err != nil {
		os.Remove(f.Name())
		return fmt.Errorf("ledger %s: %w", f.path, err)
	}
	return nil
}

// discard removes the file unless it was committed.
func (f *atomicFile) discard() error {
	if f.done {
		return nil
	}
	f.done = true
	return errors.Join(f.File.Close(), os.Remove(f.Name()))
}
