package bm25

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"unsafe"

	"golang.org/x/sys/unix"
)

// The files of a shard.
const (
	idsName     = "ids.bin"
	offsetsName = "ids.offsets"
	termsName   = "terms.bin"
	chunksName  = "chunks.bin"
	lowsName    = "lows.bin"
	codesName   = "codes.bin"
	boundsName  = "bounds.bin"
	shardName   = "shard.json"
)

func fstName(field int) string   { return fmt.Sprintf("terms-%d.fst", field) }
func pairsName(field int) string { return fmt.Sprintf("pairs-%d.bin", field) }

// termRecord is one term: how many documents have it, and its first chunk; its
// last ends where the next term's begin.
type termRecord struct {
	Chunk uint32
	DF    uint32
}

// chunkRecord is the run of a term's postings within one window of documents; it
// ends where the next chunk begins.
type chunkRecord struct {
	Posting uint64
	Window  uint32
	_       uint32
}

// pair is what a code stands for.
type pair struct{ Frequency, Length uint32 }

// windowBits is the number of bits of a document's number within its window.
const windowBits = 16

// file is a buffered file being written.
type file struct {
	*bufio.Writer
	f *os.File
}

func create(dir, name string) (*file, error) {
	f, err := os.Create(filepath.Join(dir, name))
	if err != nil {
		return nil, err
	}
	return &file{bufio.NewWriterSize(f, 1<<18), f}, nil
}

// close writes what is left and syncs.
func (f *file) close() error {
	return errors.Join(f.Flush(), f.f.Sync(), f.f.Close())
}

func (f *file) uint16(v uint16) { f.Write(binary.LittleEndian.AppendUint16(f.AvailableBuffer(), v)) }
func (f *file) uint32(v uint32) { f.Write(binary.LittleEndian.AppendUint32(f.AvailableBuffer(), v)) }
func (f *file) uint64(v uint64) { f.Write(binary.LittleEndian.AppendUint64(f.AvailableBuffer(), v)) }

// mapped is a file mapped into memory for reading.
type mapped []byte

func mapFile(path string) (mapped, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if info.Size() == 0 {
		return nil, nil
	}
	data, err := unix.Mmap(int(f.Fd()), 0, int(info.Size()), unix.PROT_READ, unix.MAP_SHARED)
	if err != nil {
		return nil, fmt.Errorf("map %s: %w", path, err)
	}
	return data, nil
}

func (m mapped) unmap() error {
	if m == nil {
		return nil
	}
	return unix.Munmap(m)
}

// view is mapped bytes as values of a size without pointers. Files are
// little-endian, as are the machines that Open accepts.
func view[T any](m mapped, name string) ([]T, error) {
	var one T
	size := int(unsafe.Sizeof(one))
	if len(m)%size != 0 {
		return nil, fmt.Errorf("%s has %d bytes, no multiple of %d", name, len(m), size)
	}
	if len(m) == 0 {
		return nil, nil
	}
	return unsafe.Slice((*T)(unsafe.Pointer(&m[0])), len(m)/size), nil
}

// littleEndian tells the byte order of this machine.
func littleEndian() bool { return binary.NativeEndian.Uint16([]byte{1, 0}) == 1 }

// narrow copies 32-bit codes to 16 bits.
func narrow(to io.Writer, from io.Reader, n uint64) error {
	in, out := bufio.NewReaderSize(from, 1<<18), bufio.NewWriterSize(to, 1<<18)
	var b [4]byte
	for range n {
		if _, err := io.ReadFull(in, b[:]); err != nil {
			return err
		}
		if _, err := out.Write(b[:2]); err != nil {
			return err
		}
	}
	return out.Flush()
}
