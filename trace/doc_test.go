package trace

import (
	"bytes"
	"encoding/json"
	"os"
	"reflect"
	"regexp"
	"strings"
	"testing"
)

const doc = "../docs/LEDGER.md"

// The documentation names every field, and every value of the enumerations.
func TestDocumentNamesAll(t *testing.T) {
	text, err := os.ReadFile(doc)
	if err != nil {
		t.Fatal(err)
	}
	names := []string{schemaKey}
	for _, typ := range []reflect.Type{
		reflect.TypeFor[Trajectory](), reflect.TypeFor[Call](), reflect.TypeFor[Span](), reflect.TypeFor[Sampler](),
	} {
		for i := range typ.NumField() {
			name, _, _ := strings.Cut(typ.Field(i).Tag.Get("json"), ",")
			names = append(names, name)
		}
	}
	for _, o := range []Origin{OriginPrefix, OriginRetained, OriginObservation, OriginUnknown} {
		names = append(names, string(o))
	}
	for _, s := range stopReasons {
		names = append(names, string(s))
	}
	for _, o := range []Outcome{OutcomeSearch, OutcomeAnswer, OutcomeUnusable, OutcomeUnknown} {
		names = append(names, string(o))
	}
	for _, m := range meanings[1:] {
		names = append(names, string(m))
	}
	for _, e := range ends {
		names = append(names, string(e))
	}
	for _, name := range names {
		if name == "" || !bytes.Contains(text, []byte("`"+name+"`")) {
			t.Errorf("%s does not name `%s`", doc, name)
		}
	}
}

func TestDocumentExample(t *testing.T) {
	text, err := os.ReadFile(doc)
	if err != nil {
		t.Fatal(err)
	}
	block := regexp.MustCompile("(?s)```json\n(.*?)```").FindSubmatch(text)
	if block == nil {
		t.Fatal("no example")
	}
	var line bytes.Buffer
	if err := json.Compact(&line, block[1]); err != nil {
		t.Fatal(err)
	}
	got, err := parseLine(line.Bytes(), true)
	if err != nil {
		t.Fatal(err)
	}
	back, err := json.Marshal(got)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(back, line.Bytes()) {
		t.Errorf("written back otherwise:\n%s\n%s", back, line.Bytes())
	}
}
