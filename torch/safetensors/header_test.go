package safetensors

import (
	"bytes"
	"encoding/binary"
	"reflect"
	"strings"
	"testing"
)

// file makes a file of a header text and n bytes of data.
func file(header string, n int) []byte {
	b := binary.LittleEndian.AppendUint64(nil, uint64(len(header)))
	return append(append(b, header...), make([]byte, n)...)
}

func read(b []byte) (*Header, error) { return Read(bytes.NewReader(b), int64(len(b))) }

func TestReadOrdersByData(t *testing.T) {
	h, err := read(file(`{"b":{"dtype":"F32","shape":[2],"data_offsets":[2,10]},"__metadata__":{"format":"pt"},"a":{"dtype":"BF16","shape":[1,1],"data_offsets":[0,2]},"z":{"dtype":"I64","shape":[0,3],"data_offsets":[10,10]}}  `, 10))
	if err != nil {
		t.Fatal(err)
	}
	want := []Entry{{"a", "BF16", []int64{1, 1}, 0, 2}, {"b", "F32", []int64{2}, 2, 10}, {"z", "I64", []int64{0, 3}, 10, 10}}
	if !reflect.DeepEqual(h.Entries, want) || h.Metadata["format"] != "pt" {
		t.Errorf("got %+v", h)
	}
}

func TestReadRefuses(t *testing.T) {
	one := `{"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}`
	cases := map[string]struct {
		file []byte
		want string
	}{
		"empty":        {nil, "header length"},
		"cut length":   {[]byte{1, 2, 3}, "header length"},
		"long header":  {binary.LittleEndian.AppendUint64(nil, 1<<40), "header of"},
		"huge header":  {binary.LittleEndian.AppendUint64(nil, 1<<63), "header of"},
		"cut header":   {file(one, 0)[:20], "header of"},
		"no object":    {file(`[1]`, 0), "no JSON object"},
		"broken JSON":  {file(`{"a":`, 0), "a"},
		"tail":         {file(one+"x", 4), "goes on"},
		"twice":        {file(`{"a":{"dtype":"F32","shape":[0],"data_offsets":[0,0]},"a":{"dtype":"F32","shape":[0],"data_offsets":[0,0]}}`, 0), "twice"},
		"dtype":        {file(`{"a":{"dtype":"F7","shape":[1],"data_offsets":[0,4]}}`, 4), "unknown dtype"},
		"no shape":     {file(`{"a":{"dtype":"F32","data_offsets":[0,4]}}`, 4), "needed"},
		"three ends":   {file(`{"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4,8]}}`, 4), "needed"},
		"negative":     {file(`{"a":{"dtype":"F32","shape":[-1],"data_offsets":[0,4]}}`, 4), "negative"},
		"overflow":     {file(`{"a":{"dtype":"F32","shape":[9223372036854775807,4],"data_offsets":[0,4]}}`, 4), "too large"},
		"size":         {file(`{"a":{"dtype":"F32","shape":[2],"data_offsets":[0,4]}}`, 4), "8 bytes"},
		"backward":     {file(`{"a":{"dtype":"F32","shape":[1],"data_offsets":[0,-4]}}`, 4), "data_offsets"},
		"gap":          {file(`{"a":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}}`, 8), "starts at"},
		"overlap":      {file(`{"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},"b":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}`, 8), "starts at"},
		"short data":   {file(one, 3), "the file has 3"},
		"long data":    {file(one, 5), "the file has 5"},
		"bad metadata": {file(`{"__metadata__":{"a":1}}`, 0), "__metadata__"},
	}
	for name, c := range cases {
		if _, err := read(c.file); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v, want %q in it", name, err, c.want)
		}
	}
	if _, err := read(file(one, 4)); err != nil {
		t.Errorf("the good file: %v", err)
	}
}

func TestEncodeRefuses(t *testing.T) {
	for name, entries := range map[string][]Entry{
		"twice":    {{Name: "a", DType: "F32"}, {Name: "a", DType: "F32"}},
		"reserved": {{Name: "__metadata__", DType: "F32"}},
		"dtype":    {{Name: "a", DType: "float"}},
	} {
		if _, err := Encode(entries, nil); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

// FuzzRead: no input panics, and what is read is written and read back the same.
func FuzzRead(f *testing.F) {
	f.Add(file(`{"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},"__metadata__":{"k":"v"}}`, 4))
	f.Add(file(`{"z":{"dtype":"I64","shape":[0,3],"data_offsets":[0,0]},"b":{"dtype":"BOOL","shape":[],"data_offsets":[0,1]}}   `, 1))
	f.Add(file(`{}`, 0))
	f.Add(file(`{"a":{"dtype":"F32","shape":[4611686018427387904,2],"data_offsets":[0,0]}}`, 0))
	f.Fuzz(func(t *testing.T, b []byte) {
		h, err := read(b)
		if err != nil {
			return
		}
		for _, e := range h.Entries {
			if e.Begin < 0 || e.End < e.Begin || h.Data+e.End > int64(len(b)) {
				t.Fatalf("entry %+v outside a file of %d bytes", e, len(b))
			}
		}
		entries := append([]Entry{}, h.Entries...)
		encoded, err := Encode(entries, h.Metadata)
		if err != nil {
			t.Fatalf("encode what was read: %v", err)
		}
		again, err := read(append(encoded, b[h.Data:]...))
		if err != nil {
			t.Fatalf("read what was encoded: %v", err)
		}
		if again.Data%8 != 0 {
			t.Errorf("data starts at %d", again.Data)
		}
		if len(again.Entries) != len(h.Entries) || (len(h.Entries) > 0 && !reflect.DeepEqual(again.Entries, h.Entries)) {
			t.Errorf("entries %+v became %+v", h.Entries, again.Entries)
		}
		if len(again.Metadata) != len(h.Metadata) {
			t.Errorf("metadata %v became %v", h.Metadata, again.Metadata)
		}
	})
}
