package audit

import (
	"fmt"

	"github.com/memopd/memopd-bench/results"
)

// SpeedRow is a line of bench audit speed --json. Times are medians of an update in
// seconds; ratio is the rows' over the packed one's, ideal the same of their FLOPs.
type SpeedRow struct {
	Prefix     int     `json:"prefix"`
	Calls      int     `json:"calls"`
	CallTokens int     `json:"call_tokens"`
	Rows       float64 `json:"rows_s"`
	Concat     float64 `json:"concat_s"`
	Dense      float64 `json:"dense_s"`
	Packed     float64 `json:"packed_s"`
	Ratio      float64 `json:"ratio"`
	Ideal      float64 `json:"ideal"`
}

// Row is the result in a line, in processor seconds.
func (r *SpeedResult) Row() SpeedRow {
	s := func(way string) float64 { return r.Way(way).CPU }
	return SpeedRow{
		Prefix: r.Shape.Prefix, Calls: r.Shape.Calls, CallTokens: r.Shape.CallTokens,
		Rows: s(SpeedRows), Concat: s(SpeedConcat), Dense: s(SpeedDense), Packed: s(SpeedPacked),
		Ratio: r.Ratio(SpeedPacked), Ideal: r.Ideal(SpeedPacked),
	}
}

// SpeedTable shows results, one a line.
func SpeedTable(title string, all []*SpeedResult) *results.Table {
	t := &results.Table{
		Title: title,
		Columns: []results.Column{column("shape", false), column("prefix", true), column("calls", true), column("call tokens", true),
			column("trajectories", true), column("tokens rows/packed", true)},
		Notes: []string{
			"rows: one row a call, padded to the longest; concat: the same rows end to end without padding; dense: packed, attention under a mask of the whole square; packed: packed, attention in blocks.",
			"s: processor seconds of forward, PPO loss on the sampled tokens and backward, the median of rounds in which the ways take turns (in brackets: seconds by the clock).",
			"ratio: rows over packed, the median over rounds; ideal: by the FLOPs of the matrix products; dense: rows over dense (its ideal).",
			"MiB: peak of resident memory that one update adds to weights and gradients, each way in a process of its own; memory ratio: rows over packed.",
			"published: " + results.PublishedSource + ", table T8: at best 1.63x.",
		},
	}
	for _, way := range SpeedWays {
		t.Columns = append(t.Columns, column(way+" s", true))
	}
	for _, head := range []string{"ratio", "ideal", "of ideal", "dense (ideal)", "MiB rows/concat/dense/packed", "memory ratio"} {
		t.Columns = append(t.Columns, column(head, true))
	}
	for _, r := range all {
		t.Rows = append(t.Rows, r.cells())
	}
	return t
}

func (r *SpeedResult) cells() []results.Cell {
	text := func(format string, values ...any) results.Cell {
		return results.Cell{Text: fmt.Sprintf(format, values...)}
	}
	rows, packed := r.Way(SpeedRows), r.Way(SpeedPacked)
	cells := []results.Cell{text("%s", r.Shape.Shape), text("%d", r.Shape.Prefix), text("%d", r.Shape.Calls), text("%d", r.Shape.CallTokens),
		text("%d", r.Shape.Trajectories), text("%d/%d", rows.Tokens, packed.Tokens)}
	for _, w := range r.Ways {
		cells = append(cells, text("%.3g (%.3g)", w.CPU, w.Clock))
	}
	ratio, ideal := r.Ratio(SpeedPacked), r.Ideal(SpeedPacked)
	cells = append(cells, text("%.2fx", ratio), text("%.2fx", ideal), text("%.0f %%", 100*ratio/ideal),
		text("%.2fx (%.2fx)", r.Ratio(SpeedDense), r.Ideal(SpeedDense)))
	if packed.Memory == 0 {
		return append(cells, text("-"), text("-"))
	}
	mib := func(way string) float64 { return float64(r.Way(way).Memory) / (1 << 20) }
	return append(cells, text("%.0f/%.0f/%.0f/%.0f", mib(SpeedRows), mib(SpeedConcat), mib(SpeedDense), mib(SpeedPacked)),
		text("%.2fx", mib(SpeedRows)/mib(SpeedPacked)))
}
