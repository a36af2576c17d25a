package datasets

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"hash"
	"io"
	"os"
	"path/filepath"
)

// FileSum identifies a file by its content.
type FileSum struct {
	Path    string `json:"path"`
	Bytes   int64  `json:"bytes"`
	SHA256  string `json:"sha256"`
	Records int    `json:"records"`
}

// SumFile reads a file through and returns its size and hash; Records stays 0.
func SumFile(path string) (FileSum, error) {
	f, err := os.Open(path)
	if err != nil {
		return FileSum{}, err
	}
	defer f.Close()
	h := sha256.New()
	n, err := io.Copy(h, f)
	if err != nil {
		return FileSum{}, fmt.Errorf("%s: %w", path, err)
	}
	return FileSum{Path: path, Bytes: n, SHA256: hex.EncodeToString(h.Sum(nil))}, nil
}

// atomicFile is written beside its place and moved there when it is complete,
// so that a file of that name is never half of one.
type atomicFile struct {
	f    *os.File
	path string
	hash hash.Hash
	n    int64
}

func createAtomic(path string) (*atomicFile, error) {
	dir, base := filepath.Split(path)
	if dir == "" {
		dir = "."
	}
	f, err := os.CreateTemp(dir, "."+base+".*.part")
	if err != nil {
		return nil, err
	}
	return &atomicFile{f: f, path: path, hash: sha256.New()}, nil
}

func (a *atomicFile) Write(p []byte) (int, error) {
	n, err := a.f.Write(p)
	a.hash.Write(p[:n])
	a.n += int64(n)
	return n, err
}

// commit moves the file to its place. After an error nothing is left.
func (a *atomicFile) commit(records int) (FileSum, error) {
	err := a.f.Chmod(0o644)
	if err == nil {
		err = a.f.Sync()
	}
	if closeErr := a.f.Close(); err == nil {
		err = closeErr
	}
	if err == nil {
		err = os.Rename(a.f.Name(), a.path)
	}
	if err != nil {
		os.Remove(a.f.Name())
		return FileSum{}, fmt.Errorf("%s: %w", a.path, err)
	}
	return FileSum{Path: a.path, Bytes: a.n, SHA256: hex.EncodeToString(a.hash.Sum(nil)), Records: records}, nil
}

// abort removes what was written.
func (a *atomicFile) abort() {
	a.f.Close()
	os.Remove(a.f.Name())
}
