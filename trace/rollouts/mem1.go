package rollouts

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/memopd/memopd-bench/trace"
)

// mem1 is MEM1's records of a rollout: q, then t, r and i of each turn (thought,
// response, information). Its inference writes texts, which are refused; its
// training keeps ids under the same names.
var mem1 = Format{
	Name:        "mem1",
	Description: "MEM1 records of q, t0, r0, i0, t1, … as token ids (those of its inference are text, and refused)",
	detect: func(keys map[string]json.RawMessage) bool {
		return has(keys, "q") && (has(keys, "t0") || has(keys, "r0"))
	},
	read: one(readMEM1),
}

// readMEM1 builds each call's context by MEM1's rule: the question, the last thought
// and response, the newest information. The record holds none, and its ids were made
// of text again between sampling and record.
func readMEM1(record []byte) (*run, error) {
	var keys map[string]json.RawMessage
	if err := decode(record, &keys); err != nil {
		return nil, err
	}
	if !starts(keys, "q", '[') {
		return nil, lacking(LackIDs, "q", "the record holds texts; what the sampler saw cannot be told from them")
	}
	part := func(name string) (ids, error) {
		raw, ok := keys[name]
		if !ok {
			return nil, nil
		}
		var list ids
		if err := json.Unmarshal(raw, &list); err != nil {
			return nil, malformed(name, "%v", err)
		}
		return list, nil
	}
	question, err := part("q")
	if err != nil {
		return nil, err
	}
	r := &run{agent: "mem1", meaning: trace.MeaningUnknown, lacks: []string{LackContexts, LackSampledIDs, LackBoundaries, LackPadding}}
	rounds := -1
	if raw, ok := keys["num_rounds"]; ok {
		if err := json.Unmarshal(raw, &rounds); err != nil {
			return nil, malformed("num_rounds", "%v", err)
		}
	}
	context := slices.Clone([]int32(question))
	for k := 0; rounds < 0 || k < rounds; k++ {
		var parts [3]ids
		for i, name := range []string{"t", "r", "i"} {
			if parts[i], err = part(fmt.Sprintf("%s%d", name, k)); err != nil {
				return nil, err
			}
		}
		output := slices.Concat(parts[0], parts[1])
		if len(output) == 0 {
			break
		}
		r.turns = append(r.turns, turn{context: context, output: output, observation: parts[2]})
		context = slices.Concat(question, output, parts[2])
	}
	return r, nil
}
