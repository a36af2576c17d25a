package align

import (
	"fmt"
	"strings"
)

// Part is a part of an action's memory state that can be wrong.
type Part string

// The parts of a state, and what an audit says where the states are equal.
const (
	PartIDs        Part = "ids"                 // another token stands where one was read
	PartPositions  Part = "positions"           // a token stands at another position
	PartVisibility Part = "visibility"          // tokens are seen that were not, or hidden that were seen
	PartPrediction Part = "prediction position" // the state is there, but logits are taken from another place
	PartTruncation Part = "truncation"          // tokens that were read are not stored at all
	PartMask       Part = "mask"                // an action that was not sampled, or a sampled one that is none
	PartDType      Part = "dtype"               // equal states, reckoned in another type
	PartNumerics   Part = "numerics"            // equal states in the same type: rounding, or the model's own fault
)

// Difference says how an action's state in a row differs from the true one. The
// zero value says that it does not.
type Difference struct {
	Parts  []Part
	Place  int    // of the row: the first token that is wrong, or does not see what it should
	Detail string // in words
}

// Has tells whether a part differs.
func (d Difference) Has(part Part) bool {
	for _, p := range d.Parts {
		if p == part {
			return true
		}
	}
	return false
}

// Diff compares the state of action a of a row with that of action b of the true
// one, whose actions are causal in one block (a row of Calls).
func Diff(row *States, a Action, truth *States, b Action) Difference {
	if row.Equal(a, truth, b) {
		return Difference{}
	}
	if a.ID != b.ID {
		return Difference{[]Part{PartIDs}, a.Index, fmt.Sprintf("the action is id %d, sampled was %d", a.ID, b.ID)}
	}
	if _, ok := row.At(a.Index); !ok {
		return Difference{[]Part{PartMask}, a.Index, fmt.Sprintf("the action is at place %d of %d tokens", a.Index, len(row.at))}
	}
	want, _ := truth.At(b.Predict)
	have, inside := row.At(a.Predict)
	if !inside {
		return Difference{[]Part{PartPrediction}, a.Predict, fmt.Sprintf("predicted at place %d of %d tokens", a.Predict, len(row.at))}
	}
	if have == want { // it is the action's own place that differs
		return Difference{[]Part{PartPositions}, a.Index, fmt.Sprintf("the token itself stands at position %d, sampled at %d",
			row.row.Positions[a.Index], truth.row.Positions[b.Index])}
	}
	right := row.row.predictor(a.Index)
	if state, ok := row.At(right); ok && state == want {
		return Difference{[]Part{PartPrediction}, a.Predict, fmt.Sprintf("predicted at place %d, the state that it was sampled in ends at place %d", a.Predict, right)}
	}
	return diffPlaces(row, a.Predict, truth, b.Predict)
}

// token is what attention sees of a token.
type token struct{ id, position int32 }

// visible lists the places that the token at q sees, its own last.
func (p *Packed) visible(q int) []int {
	var places []int
	for _, r := range p.before(q) {
		for k := r.Start; k < min(r.End, q); k++ {
			places = append(places, k)
		}
	}
	return append(places, q)
}

func (p *Packed) token(q int) token { return token{p.IDs[q], p.Positions[q]} }

// diffPlaces compares what place q of a row sees with what place k of the truth
// does, the states of both being unequal.
func diffPlaces(row *States, q int, truth *States, k int) Difference {
	seen, read := row.row.visible(q), truth.row.visible(k)
	where := make(map[token]int, len(read)) // places of the truth that no token seen matches yet
	for _, place := range read {
		where[truth.row.token(place)] = place
	}
	matched := map[int]int{} // of the row's places, to the truth's
	var extra []int
	for _, place := range seen {
		t := row.row.token(place)
		if at, ok := where[t]; ok {
			matched[place] = at
			delete(where, t)
		} else {
			extra = append(extra, place)
		}
	}
	var missing []int
	for _, place := range read {
		if _, ok := where[truth.row.token(place)]; ok {
			missing = append(missing, place)
		}
	}
	if len(extra) > 0 || len(missing) > 0 {
		return (&setDifference{row: row.row, truth: truth.row, q: q, seen: seen}).sort(extra, missing)
	}
	// The same tokens at the same positions: one of them saw something else.
	for _, place := range seen[:len(seen)-1] {
		if at := matched[place]; row.at[place] != truth.at[at] {
			d := diffPlaces(row, place, truth, at)
			d.Detail = fmt.Sprintf("the token at place %d, seen from place %d, %s", place, q, d.Detail)
			return d
		}
	}
	return Difference{[]Part{PartPrediction}, q, "its predictor stands elsewhere among the same tokens"}
}

// setDifference sorts what one place sees too much and too little into parts.
type setDifference struct {
	row, truth *Packed
	q          int
	seen       []int

	parts  []Part
	sees   []string
	misses []string
	place  int
}

func (d *setDifference) sort(extra, missing []int) Difference {
	d.place = d.q
	if len(extra) > 0 {
		d.place = extra[0]
	}
	moved, extra, missing := d.moved(extra, missing)
	swapped, extra, missing := d.swapped(extra, missing)
	hidden, lost := d.stored(missing)
	d.add(PartIDs, &d.sees, "%d tokens of other ids", swapped)
	d.add(PartPositions, &d.sees, "%d tokens at other positions", moved)
	d.add(PartVisibility, &d.sees, "%d tokens that the call did not read", len(extra))
	d.add(PartVisibility, &d.misses, "%d tokens that it read", hidden)
	d.add(PartTruncation, &d.misses, "%d tokens that it read and the row does not hold", lost)
	return Difference{d.parts, d.place, d.text()}
}

// add notes n tokens that are wrong in a part, if there are any.
func (d *setDifference) add(part Part, texts *[]string, format string, n int) {
	if n == 0 {
		return
	}
	if !(Difference{Parts: d.parts}).Has(part) {
		d.parts = append(d.parts, part)
	}
	*texts = append(*texts, fmt.Sprintf(format, n))
}

func (d *setDifference) text() string {
	var parts []string
	if len(d.sees) > 0 {
		parts = append(parts, "sees "+strings.Join(d.sees, ", "))
	}
	if len(d.misses) > 0 {
		parts = append(parts, "does not see "+strings.Join(d.misses, ", "))
	}
	return strings.Join(parts, "; ")
}

// moved takes out the tokens that are seen at another position than read.
func (d *setDifference) moved(extra, missing []int) (n int, leftExtra, leftMissing []int) {
	byID := map[int32][]int{}
	for _, place := range missing {
		byID[d.truth.IDs[place]] = append(byID[d.truth.IDs[place]], place)
	}
	taken := map[int]bool{}
	for i := len(extra) - 1; i >= 0; i-- { // the newest copy first
		id := d.row.IDs[extra[i]]
		if list := byID[id]; len(list) > 0 {
			taken[list[len(list)-1]] = true
			byID[id] = list[:len(list)-1]
			n++
		} else {
			leftExtra = append(leftExtra, extra[i])
		}
	}
	for _, place := range missing {
		if !taken[place] {
			leftMissing = append(leftMissing, place)
		}
	}
	return n, leftExtra, leftMissing
}

// swapped takes out pairs of unlike tokens at one position.
func (d *setDifference) swapped(extra, missing []int) (n int, leftExtra, leftMissing []int) {
	at := map[int32]int{}
	for _, place := range missing {
		at[d.truth.Positions[place]]++
	}
	gone := map[int32]int{}
	for _, place := range extra {
		if p := d.row.Positions[place]; at[p] > 0 {
			at[p]--
			gone[p]++
			n++
		} else {
			leftExtra = append(leftExtra, place)
		}
	}
	for _, place := range missing {
		if p := d.truth.Positions[place]; gone[p] > 0 {
			gone[p]--
		} else {
			leftMissing = append(leftMissing, place)
		}
	}
	return n, leftExtra, leftMissing
}

// stored splits missing tokens into those that the row holds unseen before the
// place and those that it does not hold.
func (d *setDifference) stored(missing []int) (hidden, lost int) {
	held := map[int32]int{}
	for _, id := range d.row.IDs[:d.q] {
		held[id]++
	}
	for _, place := range d.seen {
		if place < d.q {
			held[d.row.IDs[place]]--
		}
	}
	for _, place := range missing {
		if id := d.truth.IDs[place]; held[id] > 0 {
			held[id]--
			hidden++
		} else {
			lost++
		}
	}
	return hidden, lost
}
