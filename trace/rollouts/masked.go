package rollouts

import "slices"

// split makes turns of a row of ids that were sampled where the mask is 1, and put
// there by the environment or by force where it is 0: those condition what follows
// and are no action of the policy. What stands behind the last sampled id is left out.
func split(prompt, response []int32, mask []int, logProbs []float32) []turn {
	var turns []turn
	for at := 0; at < len(response); {
		end := at
		for end < len(response) && (mask[end] != 0) == (mask[at] != 0) {
			end++
		}
		switch {
		case mask[at] != 0:
			t := turn{context: slices.Concat(prompt, response[:at]), output: response[at:end]}
			if logProbs != nil {
				t.logProbs = logProbs[at:end]
			}
			turns = append(turns, t)
		case len(turns) > 0 && end < len(response):
			turns[len(turns)-1].observation = response[at:end]
		}
		at = end
	}
	return turns
}
