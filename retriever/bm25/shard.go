package bm25

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/blevesearch/vellum"
)

// shard is an open shard.
type shard struct {
	counts Counts
	dir    string
	maps   []mapped

	ids     []byte
	offsets []uint64
	fsts    []*vellum.FST
	terms   []termRecord  // with one more, where the last ends
	chunks  []chunkRecord // with one more, where the last ends
	lows    []uint16
	narrow  []uint16 // codes, in two bytes
	wide    []uint32 // or four
	pairs   [][]pair // by field

	bounds []float32   // by chunk; nil before WriteBounds
	values [][]float64 // by field and code
	fast   [][]float32
}

func openShard(dir string, bounds bool) (_ *shard, err error) {
	s := &shard{dir: dir}
	defer func() {
		if err != nil {
			err = errors.Join(fmt.Errorf("shard %s: %w", dir, err), s.close())
		}
	}()
	raw, err := os.ReadFile(filepath.Join(dir, shardName))
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal(raw, &s.counts); err != nil {
		return nil, fmt.Errorf("%s: %w", shardName, err)
	}
	if err := s.mapAll(bounds); err != nil {
		return nil, err
	}
	return s, s.check(bounds)
}

func (s *shard) mapAll(bounds bool) error {
	text, err := s.mapFile(idsName)
	s.ids = text
	errs := []error{err,
		mapView(s, offsetsName, &s.offsets), mapView(s, termsName, &s.terms),
		mapView(s, chunksName, &s.chunks), mapView(s, lowsName, &s.lows)}
	if s.counts.WideCodes {
		errs = append(errs, mapView(s, codesName, &s.wide))
	} else {
		errs = append(errs, mapView(s, codesName, &s.narrow))
	}
	if bounds {
		errs = append(errs, mapView(s, boundsName, &s.bounds))
	}
	s.pairs = make([][]pair, len(s.counts.Fields))
	for f := range s.counts.Fields {
		errs = append(errs, mapView(s, pairsName(f), &s.pairs[f]))
		data, err := s.mapFile(fstName(f))
		if err != nil {
			return errors.Join(append(errs, err)...)
		}
		fst, err := vellum.Load(data)
		if err != nil {
			err = fmt.Errorf("%s: %w", fstName(f), err)
		}
		errs, s.fsts = append(errs, err), append(s.fsts, fst)
	}
	return errors.Join(errs...)
}

func (s *shard) mapFile(name string) (mapped, error) {
	m, err := mapFile(filepath.Join(s.dir, name))
	if m != nil {
		s.maps = append(s.maps, m)
	}
	return m, err
}

func mapView[T any](s *shard, name string, to *[]T) error {
	m, err := s.mapFile(name)
	if err != nil {
		return err
	}
	*to, err = view[T](m, name)
	return err
}

// check compares the sizes of the files with the counts.
func (s *shard) check(bounds bool) error {
	c := &s.counts
	terms := uint64(0)
	for f := range c.Fields {
		terms += c.Fields[f].Terms
	}
	codes := len(s.narrow) + len(s.wide)
	for _, x := range []struct {
		name string
		have int
		want uint64
	}{
		{offsetsName, len(s.offsets), c.Documents + 1}, {termsName, len(s.terms), terms + 1}, {chunksName, len(s.chunks), c.Chunks + 1},
		{lowsName, len(s.lows), c.Postings}, {codesName, codes, c.Postings},
	} {
		if uint64(x.have) != x.want {
			return fmt.Errorf("%s has %d entries, %s says %d", x.name, x.have, shardName, x.want)
		}
	}
	if bounds && uint64(len(s.bounds)) != c.Chunks {
		return fmt.Errorf("%s has %d entries, %s says %d", boundsName, len(s.bounds), shardName, c.Chunks)
	}
	for f := range c.Fields {
		if len(s.pairs[f]) != c.Fields[f].Pairs {
			return fmt.Errorf("%s has %d entries, %s says %d", pairsName(f), len(s.pairs[f]), shardName, c.Fields[f].Pairs)
		}
	}
	return nil
}

// tabulate reckons the formula for each code.
func (s *shard) tabulate(p Parameters, average []float64) {
	s.values, s.fast = make([][]float64, len(s.pairs)), make([][]float32, len(s.pairs))
	for f, pairs := range s.pairs {
		s.values[f], s.fast[f] = make([]float64, len(pairs)), make([]float32, len(pairs))
		for code, at := range pairs {
			v := p.value(float64(at.Frequency), float64(at.Length), average[f])
			s.values[f][code], s.fast[f][code] = v, float32(v)
		}
	}
}

// find returns a term's number; false if the shard lacks it.
func (s *shard) find(field int, term string) (uint64, bool, error) {
	ordinal, ok, err := s.fsts[field].Get([]byte(term))
	if err == nil && ok && ordinal+1 >= uint64(len(s.terms)) {
		err = fmt.Errorf("shard %s: %s: term %d of %d", s.dir, fstName(field), ordinal, len(s.terms)-1)
	}
	return ordinal, ok, err
}

func (s *shard) id(document uint32) string {
	return string(s.ids[s.offsets[document]:s.offsets[document+1]])
}

func (s *shard) close() error {
	var errs []error
	for _, m := range s.maps {
		errs = append(errs, m.unmap())
	}
	s.maps = nil
	return errors.Join(errs...)
}
