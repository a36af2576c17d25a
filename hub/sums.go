package hub

import (
	"crypto/sha1" //nolint:gosec // git's name of a blob
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"hash"
	"strings"
)

// sums are the running hashes of a content.
type sums struct {
	size   int64
	sha    hash.Hash
	git    hash.Hash // nil where no git blob id is to be checked
	prefix string    // what git hashes before the content
}

func newSums(f File) *sums {
	s := &sums{sha: sha256.New()}
	if f.GitSHA1 != "" {
		s.git, s.prefix = sha1.New(), fmt.Sprintf("blob %d\x00", f.Size)
	}
	s.reset()
	return s
}

func (s *sums) reset() {
	s.size = 0
	s.sha.Reset()
	if s.git != nil {
		s.git.Reset()
		_, _ = s.git.Write([]byte(s.prefix))
	}
}

func (s *sums) Write(data []byte) (int, error) {
	s.size += int64(len(data))
	if s.git != nil {
		_, _ = s.git.Write(data) // never an error, says hash.Hash
	}
	return s.sha.Write(data)
}

func (s *sums) sha256() string { return hex.EncodeToString(s.sha.Sum(nil)) }

// check compares with what is known of the file.
func (s *sums) check(f File) error {
	if f.Size > 0 && s.size != f.Size {
		return fmt.Errorf("%w: %d bytes, not %d", ErrMismatch, s.size, f.Size)
	}
	if got := s.sha256(); f.SHA256 != "" && !strings.EqualFold(got, f.SHA256) {
		return fmt.Errorf("%w: sha256 %s, not %s", ErrMismatch, got, f.SHA256)
	}
	if s.git == nil {
		return nil
	}
	if got := hex.EncodeToString(s.git.Sum(nil)); !strings.EqualFold(got, f.GitSHA1) {
		return fmt.Errorf("%w: git blob %s, not %s", ErrMismatch, got, f.GitSHA1)
	}
	return nil
}
