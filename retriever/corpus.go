package retriever

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
)

// CorpusOptions says how files are read.
type CorpusOptions struct {
	Format  Format // FormatAuto: judged for each file by its first record
	SkipBad bool   // pass over bad records and count them, instead of ending with an error
}

// RecordError is a bad record, or a file that cannot be read on. It names the
// place.
type RecordError struct {
	Path string
	Line int // where the record begins, from 1
	Err  error
}

// Error gives path:line: what is wrong.
func (e *RecordError) Error() string { return fmt.Sprintf("%s:%d: %v", e.Path, e.Line, e.Err) }

// Unwrap returns the cause.
func (e *RecordError) Unwrap() error { return e.Err }

// Input describes one file that was read to its end.
type Input struct {
	Name      string `json:"name"` // without its folder
	Format    Format `json:"format"`
	Bytes     int64  `json:"bytes"` // on disk
	SHA256    string `json:"sha256"`
	Documents int    `json:"documents"`
	Skipped   int    `json:"skipped"` // bad records passed over
}

// Corpus reads documents from one file after the other. It is used by one
// goroutine.
type Corpus struct {
	options   CorpusOptions
	files     []stateFile
	paths     []string // still to be read
	total     int64
	done      int64 // bytes of the files that were read to their end
	file      *corpusFile
	inputs    []Input
	skipped   int
	firstSkip error
}

// OpenCorpus checks that the files are there and returns their documents as a
// stream, in order. Close it after use.
func OpenCorpus(paths []string, options CorpusOptions) (*Corpus, error) {
	if len(paths) == 0 {
		return nil, errors.New("corpus: no files named")
	}
	c := &Corpus{options: options, paths: paths}
	for _, p := range paths {
		info, err := os.Stat(p)
		if err != nil {
			return nil, fmt.Errorf("corpus: %w", err)
		}
		c.total += info.Size()
		c.files = append(c.files, stateFile{p, info.Size(), info.ModTime().UnixNano()})
	}
	return c, nil
}

// Next returns the next document; io.EOF ends the corpus. A bad record is a
// [*RecordError], after which Next may be called again unless the file itself
// cannot be read on.
func (c *Corpus) Next() (Document, error) {
	for {
		if c.file == nil {
			if len(c.paths) == 0 {
				return Document{}, io.EOF
			}
			f, err := openCorpusFile(c.paths[0], c.options.Format)
			if err != nil {
				return Document{}, fmt.Errorf("corpus: %w", err)
			}
			c.file, c.paths = f, c.paths[1:]
		}
		d, err := c.file.next()
		var bad *RecordError
		switch {
		case err == nil:
			return d, nil
		case errors.Is(err, io.EOF):
			if err := c.finishFile(); err != nil {
				return Document{}, err
			}
		case errors.As(err, &bad) && c.options.SkipBad && !c.file.broken:
			c.Skip(err)
		default:
			return Document{}, err
		}
	}
}

// Skip counts the last document, or record, as bad, for the given reason.
func (c *Corpus) Skip(reason error) {
	c.skipped++
	if c.firstSkip == nil {
		c.firstSkip = reason
	}
	if c.file != nil {
		c.file.input.Skipped++
	}
}

// Skipped returns how many bad records were passed over, and why the first was.
func (c *Corpus) Skipped() (int, error) { return c.skipped, c.firstSkip }

// Progress returns the bytes read, and their total, on disk.
func (c *Corpus) Progress() (read, total int64) {
	read = c.done
	if c.file != nil {
		read += c.file.lines.read
	}
	return read, c.total
}

// Inputs describes the files that were read to their end.
func (c *Corpus) Inputs() []Input { return c.inputs }

// Close closes the open file.
func (c *Corpus) Close() error {
	if c.file == nil {
		return nil
	}
	f := c.file
	c.file, c.paths = nil, nil
	return f.lines.close()
}

// place names the last record, for errors.
func (c *Corpus) place(err error) error {
	if c.file == nil {
		return err
	}
	return &RecordError{c.file.path, c.file.start, err}
}

func (c *Corpus) finishFile() error {
	f := c.file
	c.file = nil
	if err := f.lines.close(); err != nil {
		return fmt.Errorf("corpus: %s: %w", f.path, err)
	}
	f.input.SHA256, f.input.Bytes = f.lines.sum(), f.lines.read
	f.input.Documents -= f.input.Skipped
	c.done += f.lines.read
	c.inputs = append(c.inputs, f.input)
	return nil
}

// corpusFile reads one file.
type corpusFile struct {
	path   string
	lines  *lineReader
	layout *dprLayout // of FormatDPR
	input  Input
	start  int  // line where the last record begins
	broken bool // cannot be read on
}

func openCorpusFile(path string, format Format) (*corpusFile, error) {
	lines, err := openLines(path)
	if err != nil {
		return nil, err
	}
	f := &corpusFile{path: path, lines: lines}
	f.input = Input{Name: strings.ToValidUTF8(filepath.Base(path), "?"), Format: format}
	if err := f.begin(); err != nil {
		return nil, errors.Join(err, lines.close())
	}
	return f, nil
}

// begin finds out the format and passes over DPR's header line.
func (f *corpusFile) begin() error {
	line, err := f.line()
	if errors.Is(err, io.EOF) {
		return nil // an empty file has no documents
	}
	if err != nil {
		return err
	}
	if f.input.Format == FormatAuto {
		if f.input.Format, err = detectFormat(line); err != nil {
			return &RecordError{f.path, f.start, err}
		}
	}
	if f.input.Format == FormatDPR {
		if cells, err := splitTSV(line); err == nil {
			if f.layout = dprColumns(cells); f.layout != nil {
				return nil
			}
		}
		f.layout = &dprLayout{id: 0, text: 1, title: 2} // no header
	}
	f.lines.push(line)
	return nil
}

// line returns the next line that is not blank and notes where it stands.
func (f *corpusFile) line() ([]byte, error) {
	for {
		line, err := f.lines.next()
		f.start = f.lines.line
		switch {
		case errors.Is(err, io.EOF):
			return nil, io.EOF
		case errors.Is(err, errLongRecord):
			return nil, &RecordError{f.path, f.start, err}
		case err != nil:
			f.broken = true
			return nil, &RecordError{f.path, f.start + 1, err}
		case len(line) > 0:
			return line, nil
		}
	}
}

func (f *corpusFile) next() (Document, error) {
	line, err := f.line()
	if err != nil {
		if !errors.Is(err, io.EOF) && !f.broken {
			f.input.Documents++
		}
		return Document{}, err
	}
	f.input.Documents++
	var d Document
	if f.input.Format == FormatDPR {
		d, err = f.dprRecord(line)
	} else {
		d, err = parseJSON(f.input.Format, line, f.start)
	}
	if err != nil {
		return Document{}, &RecordError{f.path, f.start, err}
	}
	return d, nil
}

// dprRecord reads a record, whose quoted fields may hold line ends. If a quote is
// never closed, only the first line is bad: the others are given back.
func (f *corpusFile) dprRecord(line []byte) (Document, error) {
	cells, err := splitTSV(line)
	var added [][]byte
	for errors.Is(err, errOpenQuote) && len(line) < maxQuotedBytes {
		more, readErr := f.lines.next()
		if readErr != nil {
			break
		}
		added = append(added, more)
		line = append(append(line, '\n'), more...)
		if bytes.IndexByte(more, '"') >= 0 {
			cells, err = splitTSV(line)
		}
	}
	if err != nil {
		for i := len(added) - 1; i >= 0; i-- {
			f.lines.push(added[i])
		}
		return Document{}, err
	}
	return f.layout.document(cells)
}
