package rollouts

import (
	"io"
	"math"
	"slices"
	"strings"
	"testing"
)

func TestValues(t *testing.T) {
	for text, want := range map[string][]string{
		"{\"a\":1}\n{\"b\":[2,{\"c\":\"}\\\"{\"}]}\n": {`1 {"a":1}`, `2 {"b":[2,{"c":"}\"{"}]}`},
		"\n\n[\n{\"a\":1},\n{\"b\":2}\n]\n":           {`4 {"a":1}`, `5 {"b":2}`},
		"{\n\"a\":\n1}{}":                             {"1 {\n\"a\":\n1}", "3 {}"},
		`{"p":[NaN,-Infinity,Infinity,-1]}`:           {`1 {"p":[null,null,null,-1]}`},
		`{"p":"NaN"}`:                                 {`1 {"p":"NaN"}`},
	} {
		v := newValues(strings.NewReader(text))
		var got []string
		for {
			value, line, err := v.next()
			if err == io.EOF {
				break
			}
			if err != nil {
				t.Fatalf("%q: %v", text, err)
			}
			got = append(got, string(rune('0'+line))+" "+string(value))
		}
		if !slices.Equal(got, want) {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
	for _, text := range []string{`[{"a":1}`, `{"a":1`, `{"a":"x`, `x`, `{"a":Nah}`, `{}]`} {
		v := newValues(strings.NewReader(text))
		var err error
		for err == nil {
			_, _, err = v.next()
		}
		if err == io.EOF {
			t.Errorf("%q: no error", text)
		}
	}
}

// Python writes NaN where a log-prob has none; it stays one, for the audit to find.
func TestNaNLogProbsStay(t *testing.T) {
	path := write(t, `{"prompt_ids":[1],"completion_ids":[2,3],"completion_logprobs":[NaN,-0.5]}`)
	for tr, err := range primeRL.Read(path) {
		if err != nil {
			t.Fatal(err)
		}
		p := tr.Calls[0].LogProbs
		if len(p) != 2 || !math.IsNaN(float64(p[0])) || p[1] != -.5 {
			t.Errorf("log-probs %v", p)
		}
		if tr.Validate() == nil {
			t.Error("a NaN validates")
		}
	}
}

func FuzzRead(f *testing.F) {
	for _, seed := range []string{`{"choices":[{"prompt_token_ids":[1],"token_ids":[2]}]}`, `{"q":[1],"t0":[2],"i0":[3]}`,
		`{"message_log":[{"role":"assistant","token_ids":[1]}]}`, `{"seen_token_ids":[9,1,9,2],"output_prompt_token_ids":[9,1,9]}`,
		`{"prompts":[1],"responses":[2],"response_mask":[1]}`, `{"transitions":[{"ob":[1],"ac":{"tokens":[2]}}]}`,
		`{"trajectory":[{"tokens":{"prompt_ids":[1],"completion_ids":[2]}}]}`, `{"response":{"output":[{"prompt_token_ids":[1],"generation_token_ids":[2]}]}}`} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		v := newValues(strings.NewReader(text))
		record, _, err := v.next()
		if err != nil {
			return
		}
		for _, format := range Formats() {
			format.read(record, func(r *run, err error) {
				if err != nil || r.check() != nil {
					return
				}
				r.name("x", 0, format.Name)
				for _, tr := range r.trajectories() {
					for i := range tr.Calls { // log-probs may be wrong; the rest must hold
						tr.Calls[i].LogProbs = nil
					}
					tr.Reward = 0
					tr.Sampler.Temperature, tr.Sampler.TopP = 0, 0
					if err := tr.Validate(); err != nil {
						t.Errorf("%s: %v", format.Name, err)
					}
				}
			})
		}
	})
}
