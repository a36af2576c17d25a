package retriever

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"github.com/memopd/memopd-bench/retriever/bm25"
)

const (
	// FormatVersion is the version of the index folder; it changes when an index
	// that was built before can no longer be searched, or would score differently.
	FormatVersion = 2

	bleveVersion = "v2.6.3"            // as in go.mod; scores may change with it
	manifestName = "memopd-index.json" // no other program's
)

// Manifest describes an index. It is written last, so an index that has one is
// whole.
type Manifest struct {
	FormatVersion int              `json:"format_version"`
	BleveVersion  string           `json:"bleve_version"`
	Scoring       Scoring          `json:"scoring"`
	Analyser      Analyser         `json:"analyser"`
	FoldASCII     bool             `json:"fold_ascii"`  // letters lose their accents before they are parted into words
	TitleBoost    float64          `json:"title_boost"` // weight of the title field beside that of the contents, 1
	Documents     int              `json:"documents"`
	Shards        []Shard          `json:"shards"`
	Statistics    *bm25.Statistics `json:"statistics,omitempty"` // of all shards; none with bleve's own scoring
	Skipped       int              `json:"skipped"`              // bad records passed over
	Inputs        []Input          `json:"inputs"`
	Files         []FileSum        `json:"files"`
	CRC32C        uint32           `json:"crc32c"` // of this object with crc32c 0, as written by encoding/json
}

// Shard is a part of an index with a bleve index of its own, and postings to rank by.
type Shard struct {
	Name      string `json:"name"` // its folder
	Documents int    `json:"documents"`
}

// The folders of a shard.
const (
	bleveFolder    = "bleve"
	postingsFolder = "bm25"
)

// FileSum is one file of the index, for finding damage.
type FileSum struct {
	Name   string `json:"name"` // relative, with slashes
	Bytes  int64  `json:"bytes"`
	CRC32C uint32 `json:"crc32c"`
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// seal returns the checksum that belongs into the manifest.
func (m Manifest) seal() (uint32, error) {
	m.CRC32C = 0
	raw, err := json.Marshal(m)
	return crc32.Checksum(raw, castagnoli), err
}

// write lists the files of dir and writes the manifest there, synced to disk.
func (m *Manifest) write(dir string) error {
	files, err := sumFiles(dir)
	if err != nil {
		return err
	}
	m.Files = files
	if m.CRC32C, err = m.seal(); err != nil {
		return err
	}
	raw, err := m.encode()
	if err != nil {
		return err
	}
	return writeSynced(filepath.Join(dir, manifestName), raw)
}

func (m *Manifest) encode() ([]byte, error) {
	raw, err := json.MarshalIndent(m, "", "  ")
	return append(raw, '\n'), err
}

func writeSynced(path string, data []byte) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	return errors.Join(err, f.Sync(), f.Close())
}

// syncDir makes the names in a folder last.
func syncDir(dir string) error {
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

func sumFiles(dir string) ([]FileSum, error) {
	var sums []FileSum
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || path == filepath.Join(dir, manifestName) {
			return err
		}
		name, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		sum := FileSum{Name: filepath.ToSlash(name)}
		sum.Bytes, sum.CRC32C, err = sumFile(path)
		sums = append(sums, sum)
		return err
	})
	return sums, err
}

func sumFile(path string) (size int64, crc uint32, err error) {
	f, err := os.Open(path)
	if err != nil {
		return 0, 0, err
	}
	h := crc32.New(castagnoli)
	size, err = io.CopyBuffer(h, struct{ io.Reader }{f}, make([]byte, 1<<20))
	return size, h.Sum32(), errors.Join(err, f.Close())
}

// readManifest reads and checks the manifest of an index folder, not its files.
func readManifest(dir string) (*Manifest, error) {
	raw, err := os.ReadFile(filepath.Join(dir, manifestName))
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) {
		return nil, noManifest(dir)
	}
	if err != nil {
		return nil, err
	}
	var version struct { // fields of other formats may be of other types
		Format int `json:"format_version"`
	}
	if json.Unmarshal(raw, &version) == nil && version.Format != FormatVersion {
		return nil, fmt.Errorf("%w: format %d, this program reads %d; build it again", ErrVersion, version.Format, FormatVersion)
	}
	var m Manifest
	if err := json.Unmarshal(raw, &m); err != nil {
		return nil, fmt.Errorf("%w: %s: %v; build it again", ErrCorrupt, manifestName, err)
	}
	crc, err1 := m.seal()
	same, err2 := m.encode() // JSON has several spellings of one value
	if err := errors.Join(err1, err2); err != nil || crc != m.CRC32C || !bytes.Equal(raw, same) {
		return nil, fmt.Errorf("%w: %s was altered; build it again", ErrCorrupt, manifestName)
	}
	return &m, m.check()
}

// check compares what scores depend on with this program.
func (m *Manifest) check() error {
	switch {
	case m.BleveVersion != bleveVersion:
		return fmt.Errorf("%w: built with bleve %s, this program has %s; build it again", ErrVersion, m.BleveVersion, bleveVersion)
	case len(m.Shards) == 0 || m.Scoring.exact() == (m.Statistics == nil):
		return fmt.Errorf("%w: %s has no shards or no statistics; build it again", ErrCorrupt, manifestName)
	}
	if err := m.Scoring.check(); err != nil {
		return fmt.Errorf("%w: %v; build it again", ErrVersion, err)
	}
	return m.Analyser.check()
}

// checkFiles finds files that are missing, cut short or, when their checksums
// are asked for, altered.
func (m *Manifest) checkFiles(dir string, checksums bool) error {
	for _, want := range m.Files {
		path := filepath.Join(dir, filepath.FromSlash(want.Name))
		info, err := os.Stat(path)
		if err != nil {
			return fmt.Errorf("%w: %v; build it again", ErrCorrupt, err)
		}
		if info.Size() != want.Bytes {
			return fmt.Errorf("%w: %s has %d bytes, not %d; build it again", ErrCorrupt, want.Name, info.Size(), want.Bytes)
		}
		if !checksums {
			continue
		}
		if _, crc, err := sumFile(path); err != nil {
			return fmt.Errorf("%s: %w", want.Name, err)
		} else if crc != want.CRC32C {
			return fmt.Errorf("%w: the bytes of %s were altered; build it again", ErrCorrupt, want.Name)
		}
	}
	return nil
}

// noManifest tells a half-built folder from one that is not ours.
func noManifest(dir string) error {
	entries, err := os.ReadDir(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		if _, err := os.Stat(buildingPath(dir)); err == nil {
			return fmt.Errorf("%w: %s is left of a build that was stopped, or is still running; build it again",
				ErrHalfBuilt, buildingPath(dir))
		}
		return fmt.Errorf("%w: there is no %s; build it", ErrNoIndex, dir)
	case err != nil:
		return fmt.Errorf("%w: %v", ErrForeign, err)
	case len(entries) == 0:
		return fmt.Errorf("%w: the folder is empty; build it", ErrNoIndex)
	}
	for _, e := range entries {
		if e.Name() == bleveMetaName {
			return fmt.Errorf("%w: a bleve index without our %s: another program's, or a part of ours; build it again in a new folder",
				ErrForeign, manifestName)
		}
	}
	return fmt.Errorf("%w: no %s, but other files; choose another folder", ErrForeign, manifestName)
}
