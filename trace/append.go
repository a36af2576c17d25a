package trace

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"syscall"
)

// Appender adds trajectories to a JSONL ledger, each on disk once Write returns.
// Unlike a [Writer]'s, its file stands under its name from the beginning: it is for
// runs that take long and are taken up again.
type Appender struct {
	path string
	file *os.File
	err  error // of a write that failed: what follows it would be unreadable
}

// Append opens a ledger to add to, and makes it if there is none. A line that a
// stopped run left without its end is taken off; torn is its bytes. A ledger
// that another process has open for adding is an error.
func Append(path string) (_ *Appender, torn int64, err error) {
	if extension(path) != ".jsonl" {
		return nil, 0, fmt.Errorf("ledger %s: only a .jsonl ledger can be added to", path)
	}
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return nil, 0, fmt.Errorf("ledger: %w", err)
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		return nil, 0, errors.Join(fmt.Errorf("ledger %s: another process adds to it: %w", path, err), f.Close())
	}
	if torn, err = mend(f); err != nil {
		return nil, 0, errors.Join(fmt.Errorf("ledger %s: %w", path, err), f.Close())
	}
	return &Appender{path: path, file: f}, torn, nil
}

// mend cuts a file behind its last whole line, leaves it positioned there, and
// returns how many bytes were cut.
func mend(f *os.File) (int64, error) {
	size, err := f.Seek(0, io.SeekEnd)
	if err != nil {
		return 0, err
	}
	end := int64(0)
	buffer := make([]byte, 1<<16)
	for at := size; at > 0 && end == 0; {
		n := min(at, int64(len(buffer)))
		at -= n
		if _, err := f.ReadAt(buffer[:n], at); err != nil {
			return 0, err
		}
		end = at + int64(bytes.LastIndexByte(buffer[:n], '\n')) + 1
		if end == at { // none in this part
			end = 0
		}
	}
	if end < size {
		if err := f.Truncate(end); err != nil {
			return 0, err
		}
	}
	_, err = f.Seek(end, io.SeekStart)
	return size - end, err
}

// Write adds a trajectory. It refuses one that does not Validate.
func (a *Appender) Write(t *Trajectory) error {
	if a.err != nil {
		return a.err
	}
	if err := t.Validate(); err != nil {
		return fmt.Errorf("ledger %s: %w", a.path, err)
	}
	var line bytes.Buffer
	enc := json.NewEncoder(&line)
	enc.SetEscapeHTML(false) // tags stay readable
	if err := enc.Encode(t); err != nil {
		return fmt.Errorf("ledger %s: trajectory %q: %w", a.path, t.ID, err)
	}
	_, err := a.file.Write(line.Bytes())
	if err = errors.Join(err, a.file.Sync()); err != nil {
		a.err = fmt.Errorf("ledger %s: %w", a.path, err)
	}
	return a.err
}

// Close closes the file.
func (a *Appender) Close() error { return a.file.Close() }
