package safetensors

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
)

// Encode is the length and JSON of a header, padded with spaces so that the data starts at a multiple of eight. Entries are laid
// out in the order given; their Begin and End are set.
func Encode(entries []Entry, metadata map[string]string) ([]byte, error) {
	var b bytes.Buffer
	b.Write(make([]byte, 8))
	b.WriteByte('{')
	if len(metadata) > 0 {
		if err := member(&b, "__metadata__", metadata); err != nil {
			return nil, err
		}
	}
	seen, at := map[string]bool{"__metadata__": true}, int64(0)
	for i := range entries {
		e := &entries[i]
		if seen[e.Name] {
			return nil, fmt.Errorf("safetensors: name %q is taken", e.Name)
		}
		seen[e.Name] = true
		n, err := e.Bytes()
		if err != nil {
			return nil, fmt.Errorf("safetensors: %w", err)
		}
		e.Begin, e.End = at, at+n
		at = e.End
		value := struct {
			DType   string   `json:"dtype"`
			Shape   []int64  `json:"shape"`
			Offsets [2]int64 `json:"data_offsets"`
		}{e.DType, append([]int64{}, e.Shape...), [2]int64{e.Begin, e.End}}
		if err := member(&b, e.Name, value); err != nil {
			return nil, err
		}
	}
	b.WriteByte('}')
	for b.Len()%8 != 0 {
		b.WriteByte(' ')
	}
	if b.Len()-8 > MaxHeader {
		return nil, fmt.Errorf("safetensors: header of %d bytes", b.Len()-8)
	}
	binary.LittleEndian.PutUint64(b.Bytes(), uint64(b.Len()-8))
	return b.Bytes(), nil
}

// member appends "name": value.
func member(b *bytes.Buffer, name string, value any) error {
	if b.Len() > 9 {
		b.WriteByte(',')
	}
	key, err := json.Marshal(name)
	if err != nil {
		return fmt.Errorf("safetensors: name %q: %w", name, err)
	}
	v, err := json.Marshal(value)
	if err != nil {
		return fmt.Errorf("safetensors: %q: %w", name, err)
	}
	b.Write(key)
	b.WriteByte(':')
	b.Write(v)
	return nil
}
