package bm25

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"slices"

	"github.com/blevesearch/vellum"
)

// Statistics are those of a whole collection, which all its shards are scored by.
type Statistics struct {
	Documents uint64            `json:"documents"` // those without a term are counted too
	Fields    []FieldStatistics `json:"fields"`
}

// FieldStatistics are those of one field.
type FieldStatistics struct {
	Name        string  `json:"name"`
	TotalLength uint64  `json:"total_length"` // terms of all documents, with repetitions
	Terms       uint64  `json:"terms"`        // different ones
	MeanIDF     float64 `json:"mean_idf"`     // over the terms, before Robertson's floor
}

// average is the mean length of a field, 1 where nothing has a length.
func (s *Statistics) average(field int) float64 {
	if s.Fields[field].TotalLength == 0 {
		return 1
	}
	return float64(s.Fields[field].TotalLength) / float64(s.Documents)
}

func (s *Statistics) averages() []float64 {
	all := make([]float64, len(s.Fields))
	for f := range all {
		all[f] = s.average(f)
	}
	return all
}

// Finish reckons the statistics of shards that were written, all with the same
// fields, and writes the bounds of each, which depend on them.
func Finish(dirs []string, p Parameters) (_ *Statistics, err error) {
	if err := p.Check(); err != nil {
		return nil, err
	}
	shards, err := openShards(dirs, false)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, closeShards(shards)) }()
	s := &Statistics{}
	for i, x := range shards {
		s.Documents += x.counts.Documents
		same := func(a, b Field) bool { return a.Name == b.Name }
		if !slices.EqualFunc(x.counts.Fields, shards[0].counts.Fields, same) {
			return nil, fmt.Errorf("shard %s: its fields are not those of %s", x.dir, shards[0].dir)
		}
		for f, field := range x.counts.Fields {
			if i == 0 {
				s.Fields = append(s.Fields, FieldStatistics{Name: field.Name})
			}
			s.Fields[f].TotalLength += field.TotalLength
		}
	}
	for f := range s.Fields {
		if err := s.meanIDF(f, shards, p); err != nil {
			return nil, err
		}
	}
	for _, x := range shards {
		x.tabulate(p, s.averages())
		if err := x.writeBounds(); err != nil {
			return nil, fmt.Errorf("shard %s: %w", x.dir, err)
		}
	}
	return s, nil
}

// meanIDF goes through the terms of all shards side by side.
func (s *Statistics) meanIDF(field int, shards []*shard, p Parameters) error {
	iterators := make([]*vellum.FSTIterator, len(shards)) // nil: at its end
	for i, x := range shards {
		it, err := x.fsts[field].Iterator(nil, nil)
		if iterators[i], err = alive(it, err); err != nil {
			return fmt.Errorf("shard %s: %s: %w", x.dir, fstName(field), err)
		}
	}
	sum, terms := 0.0, uint64(0)
	var term []byte
	for {
		least := -1
		for i, it := range iterators {
			if it == nil {
				continue
			}
			if key, _ := it.Current(); least < 0 || bytes.Compare(key, term) < 0 {
				least, term = i, append(term[:0], key...)
			}
		}
		if least < 0 {
			break
		}
		df := uint64(0)
		for i, it := range iterators {
			if it == nil {
				continue
			}
			key, ordinal := it.Current()
			if !bytes.Equal(key, term) {
				continue
			}
			df += uint64(shards[i].terms[ordinal].DF)
			var err error
			if iterators[i], err = alive(it, it.Next()); err != nil {
				return fmt.Errorf("shard %s: %s: %w", shards[i].dir, fstName(field), err)
			}
		}
		sum += p.idf(s.Documents, df)
		terms++
	}
	if s.Fields[field].Terms = terms; terms > 0 {
		s.Fields[field].MeanIDF = sum / float64(terms)
	}
	return nil
}

// alive is the iterator, nil at its end.
func alive(it *vellum.FSTIterator, err error) (*vellum.FSTIterator, error) {
	if errors.Is(err, vellum.ErrIteratorDone) {
		return nil, nil
	}
	return it, err
}

// writeBounds writes the largest value of each chunk, rounded up.
func (s *shard) writeBounds() error {
	out, err := create(s.dir, boundsName)
	if err != nil {
		return err
	}
	term := uint64(0)
	for f := range s.counts.Fields {
		values := s.values[f]
		for end := term + s.counts.Fields[f].Terms; term < end; term++ {
			for c := s.terms[term].Chunk; c < s.terms[term+1].Chunk; c++ {
				most := 0.0
				for i := s.chunks[c].Posting; i < s.chunks[c+1].Posting; i++ {
					most = max(most, values[s.code(i)])
				}
				bound := float32(most)
				if float64(bound) < most {
					bound = math.Nextafter32(bound, float32(math.Inf(1)))
				}
				out.uint32(math.Float32bits(bound))
			}
		}
	}
	return out.close()
}

func (s *shard) code(posting uint64) uint32 {
	if s.wide != nil {
		return s.wide[posting]
	}
	return uint32(s.narrow[posting])
}

func openShards(dirs []string, bounds bool) ([]*shard, error) {
	if !littleEndian() {
		return nil, errors.New("BM25's files are little-endian, and this machine is not")
	}
	if len(dirs) == 0 {
		return nil, errors.New("no shards")
	}
	shards := make([]*shard, 0, len(dirs))
	for _, dir := range dirs {
		s, err := openShard(filepath.Clean(dir), bounds)
		if err != nil {
			return nil, errors.Join(err, closeShards(shards))
		}
		shards = append(shards, s)
	}
	return shards, nil
}

func closeShards(shards []*shard) error {
	var errs []error
	for _, s := range shards {
		errs = append(errs, s.close())
	}
	return errors.Join(errs...)
}
