package retriever

import (
	"archive/tar"
	"bufio"
	"errors"
	"fmt"
	"io"
)

// Search-R1's wiki-18.jsonl.gz is, whatever its name says, a gzipped tar archive
// of one file.

// isTar tells a tar archive by its first header.
func isTar(b *bufio.Reader) bool {
	const magicAt = 257
	head, _ := b.Peek(magicAt + 5)
	return len(head) == magicAt+5 && string(head[magicAt:]) == "ustar"
}

// onlyFile reads the one regular file of a tar archive, and the archive to its
// end. A second one is an error.
type onlyFile struct {
	under io.Reader
	tar   *tar.Reader
	name  string // "" before the file was found
}

func newOnlyFile(r io.Reader) (*onlyFile, error) {
	o := &onlyFile{under: r, tar: tar.NewReader(r)}
	err := o.find()
	if errors.Is(err, io.EOF) {
		err = errors.New("tar archive without a file")
	}
	return o, err
}

// find goes on to the next regular file; io.EOF if there is none.
func (o *onlyFile) find() error {
	for {
		header, err := o.tar.Next()
		switch {
		case err != nil:
			return err
		case header.Typeflag != tar.TypeReg:
			continue
		case o.name != "":
			return fmt.Errorf("tar archive with more than one file: %s, %s", o.name, header.Name)
		}
		o.name = header.Name
		return nil
	}
}

func (o *onlyFile) Read(p []byte) (int, error) {
	n, err := o.tar.Read(p)
	if !errors.Is(err, io.EOF) {
		return n, err
	}
	if n > 0 {
		return n, nil // what follows comes with the next call
	}
	if err := o.find(); err == nil || !errors.Is(err, io.EOF) {
		return 0, err
	}
	if _, err := io.Copy(io.Discard, o.under); err != nil { // padding, which the file's hash covers
		return 0, err
	}
	return 0, io.EOF
}
