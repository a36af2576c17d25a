package datasets

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// rows gives the records of a file one after another, as JSON.
type rows interface {
	// next returns a record that is valid until the next call, or io.EOF.
	// Other errors end the file.
	next() ([]byte, error)
	// place says where the last record stands: its unit, and its number from 1.
	place() (unit string, n int)
}

// maxRecordBytes bounds one line of a file, so that a file without line ends is
// an error and not all of the memory.
const maxRecordBytes = 64 << 20

// sniff looks through gzip and a byte order mark and tells an array from lines.
func sniff(r io.Reader) (rows, error) {
	b := bufio.NewReaderSize(r, 64<<10)
	if head, _ := b.Peek(2); bytes.Equal(head, []byte{0x1f, 0x8b}) {
		z, err := gzip.NewReader(b)
		if err != nil {
			return nil, fmt.Errorf("gzip: %w", err)
		}
		b = bufio.NewReaderSize(z, 64<<10)
	}
	if head, _ := b.Peek(4); string(head) == parquetMagic {
		return nil, errors.New("gzipped Parquet; unpack it first")
	}
	if head, _ := b.Peek(3); string(head) == "\xef\xbb\xbf" {
		b.Discard(3)
	}
	lines := &lineRows{r: b}
	for {
		c, err := b.ReadByte()
		if err == io.EOF {
			return lines, nil
		}
		if err != nil {
			return nil, err
		}
		switch c {
		case '\n':
			lines.n++
		case ' ', '\t', '\r':
		case '[':
			b.UnreadByte()
			return &arrayRows{d: json.NewDecoder(b)}, nil
		default:
			b.UnreadByte()
			return lines, nil
		}
	}
}

// lineRows reads one record a line; blank lines are no records.
type lineRows struct {
	r   *bufio.Reader
	n   int
	buf []byte
}

func (l *lineRows) place() (string, int) { return "line", l.n }

func (l *lineRows) next() ([]byte, error) {
	for {
		l.buf = l.buf[:0]
		var err error
		for more := true; more; {
			var part []byte
			part, err = l.r.ReadSlice('\n')
			l.buf = append(l.buf, part...)
			more = err == bufio.ErrBufferFull
			if len(l.buf) > maxRecordBytes {
				return nil, fmt.Errorf("line %d is longer than %d bytes", l.n+1, maxRecordBytes)
			}
		}
		if err != nil && err != io.EOF {
			return nil, fmt.Errorf("after line %d: %w", l.n, err)
		}
		if line := bytes.TrimSpace(l.buf); len(line) > 0 {
			l.n++
			return line, nil
		}
		if err == io.EOF {
			return nil, io.EOF
		}
		l.n++
	}
}

// arrayRows reads the elements of one JSON array.
type arrayRows struct {
	d    *json.Decoder
	n    int
	open bool
	raw  json.RawMessage
}

func (a *arrayRows) place() (string, int) { return "record", a.n }

func (a *arrayRows) next() ([]byte, error) {
	if !a.open {
		if _, err := a.d.Token(); err != nil {
			return nil, err
		}
		a.open = true
	}
	if a.d.More() {
		a.raw = a.raw[:0]
		if err := a.d.Decode(&a.raw); err != nil {
			return nil, fmt.Errorf("record %d: invalid JSON: %w", a.n+1, noEOF(err))
		}
		a.n++
		return a.raw, nil
	}
	if _, err := a.d.Token(); err != nil {
		return nil, fmt.Errorf("after record %d: invalid JSON: %w", a.n, noEOF(err))
	}
	if _, err := a.d.Token(); err != io.EOF {
		return nil, fmt.Errorf("after record %d: more follows the array", a.n)
	}
	return nil, io.EOF
}

// noEOF keeps the end of a cut file from being taken for its regular end.
func noEOF(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}
