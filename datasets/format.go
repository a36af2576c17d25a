package datasets

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// Format names the layout of a file's records. Whether they stand in a JSON
// array, one a line, gzipped or in Parquet is found out from the content and is
// no part of it.
type Format string

// The formats.
const (
	HotpotQA   Format = "hotpotqa"    // HotpotQA's official layout
	HotpotQAHF Format = "hotpotqa-hf" // Hugging Face's layout of HotpotQA
	NQOpen     Format = "nq-open"     // NQ-open: question, answer[]
	NQOracle   Format = "nq-oracle"   // nq-open-oracle: question, answers[], ctxs[]
	FlashRAG   Format = "flashrag"    // FlashRAG: id, question, golden_answers[]
	SearchR1   Format = "searchr1"    // Search-R1's rows, one question each
	MEM1       Format = "mem1"        // MEM1's rows, several questions each
	Tasks      Format = "tasks"       // MEM1's columns and this project's, as [TaskWriter] writes them
)

// layout is what the reader knows of a format.
type layout struct {
	format Format
	source string // the data set it holds, "" where the records or the caller say
	decode func(raw []byte, source string) (entry, error)
	multi  bool // a record is a task
}

var layouts = []layout{
	{HotpotQA, "hotpotqa", decodeHotpot, false},
	{HotpotQAHF, "hotpotqa", decodeHotpotHF, false},
	{NQOpen, "nq", decodeNQOpen, false},
	{NQOracle, "nq", decodeNQOracle, false},
	{FlashRAG, "flashrag", decodeFlashRAG, false},
	{SearchR1, "", decodeSearchR1, false},
	{MEM1, "", decodeMEM1, true},
	{Tasks, "", decodeTask, true},
}

// Formats lists the names of all formats.
func Formats() []Format {
	out := make([]Format, len(layouts))
	for i, l := range layouts {
		out[i] = l.format
	}
	return out
}

func knownFormats() string {
	var names []string
	for _, f := range Formats() {
		names = append(names, string(f))
	}
	return "known are " + strings.Join(names, ", ")
}

// ParseFormat returns the format of a name, or an error that lists the names.
func ParseFormat(name string) (Format, error) {
	l, err := layoutOf(Format(name))
	return l.format, err
}

func layoutOf(f Format) (layout, error) {
	for _, l := range layouts {
		if l.format == f {
			return l, nil
		}
	}
	return layout{}, fmt.Errorf("unknown format %q; %s", f, knownFormats())
}

// detect finds the format of a record by the fields it has.
func detect(raw []byte) (Format, error) {
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(raw, &fields); err != nil {
		return "", fmt.Errorf("the first record is no JSON object: %w", err)
	}
	has := func(names ...string) bool {
		return !slices.ContainsFunc(names, func(n string) bool { return fields[n] == nil })
	}
	starts := func(name string, c byte) bool { return bytes.HasPrefix(bytes.TrimSpace(fields[name]), []byte{c}) }
	switch {
	case has("task_id", "question_ids"):
		return Tasks, nil
	case has("reward_model", "question"):
		return SearchR1, nil
	case has("reward_model", "prompt"):
		return MEM1, nil
	case has("question", "golden_answers"):
		return FlashRAG, nil
	case has("question", "answers", "ctxs"):
		return NQOracle, nil
	case has("question") && starts("answer", '['):
		return NQOpen, nil
	case has("question") && starts("context", '{'):
		return HotpotQAHF, nil
	case has("question") && (has("_id") || starts("answer", '"')):
		return HotpotQA, nil
	}
	names := make([]string, 0, len(fields))
	for n := range fields {
		names = append(names, n)
	}
	slices.Sort(names)
	return "", fmt.Errorf("no format has the fields %s; %s", strings.Join(names, ", "), knownFormats())
}
