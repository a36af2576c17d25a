package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"time"
)

// folderLock is the file whose lock a process holds while it works in a folder.
func folderLock(dir string) string { return filepath.Join(dir, ".lock") }

// lockFolder makes a folder if need be and waits until no other process holds
// its lock. The lock goes with the process, however that ends.
func lockFolder(ctx context.Context, dir string) (unlock func(), err error) {
	f, err := awaitLock(ctx, folderLock(dir), func() { note("%s: another process is at work there; waiting", dir) })
	if err != nil {
		return nil, err
	}
	return func() { _ = f.Close() }, nil
}

// lockHeld says whether a process holds a folder's lock (lockFolder).
func lockHeld(dir string) (bool, error) {
	f, err := os.Open(folderLock(dir))
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	defer f.Close()
	err = syscall.Flock(int(f.Fd()), syscall.LOCK_SH|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return true, nil
	}
	return false, err
}

// awaitLock takes a file's lock as soon as no other process holds it; waiting is called
// once if one does.
func awaitLock(ctx context.Context, path string, waiting func()) (*os.File, error) {
	for told := false; ; told = true {
		f, err := flock(path, syscall.LOCK_EX)
		if f != nil || err != nil {
			return f, err
		}
		if !told {
			waiting()
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// flock opens a file, which it makes with its folder if need be, and takes its lock;
// nil without an error when it is held against that. The lock goes with the last
// process that has the file open.
func flock(path string, how int) (*os.File, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return nil, err
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, err
	}
	err = syscall.Flock(int(f.Fd()), how|syscall.LOCK_NB)
	switch {
	case err == nil:
		return f, nil
	case errors.Is(err, syscall.EWOULDBLOCK):
		return nil, f.Close()
	}
	return nil, errors.Join(fmt.Errorf("lock %s: %w", path, err), f.Close())
}
