package bm25

import (
	"fmt"
	"math"
)

// Formula names a form of BM25. N is the number of documents, df of those that
// have the term, tf its frequency in the document, and
// K = k1 · (1 − b + b · length / average length).
type Formula string

// The formulas.
const (
	// Lucene is that of Lucene since version 8, Pyserini, and bm25s's "lucene":
	// ln(1 + (N − df + ½)/(df + ½)) · tf / (tf + K). Lengths are exact; Lucene
	// itself rounds them to one byte.
	Lucene Formula = "lucene"
	// Robertson is that of Robertson and Walker, with rank-bm25's floor (BM25Okapi):
	// ln((N − df + ½)/(df + ½)) · tf · (k1 + 1) / (tf + K), where a negative logarithm is
	// replaced by Epsilon times the mean logarithm of all terms.
	Robertson Formula = "robertson"
)

// Formulas lists them.
var Formulas = []Formula{Lucene, Robertson}

// Parameters are a formula and its constants.
type Parameters struct {
	Formula Formula
	K1, B   float64
	Epsilon float64 // Robertson alone
}

// Check says what is wrong with the parameters.
func (p Parameters) Check() error {
	known := false
	for _, f := range Formulas {
		known = known || p.Formula == f
	}
	switch {
	case !known:
		return fmt.Errorf("unknown BM25 formula %q (known: %v)", p.Formula, Formulas)
	case !(p.K1 >= 0) || math.IsInf(p.K1, 0):
		return fmt.Errorf("BM25 with k1 %g: a number from 0 on is needed", p.K1)
	case !(p.B >= 0 && p.B <= 1):
		return fmt.Errorf("BM25 with b %g: a number from 0 to 1 is needed", p.B)
	case !(p.Epsilon >= 0) || math.IsInf(p.Epsilon, 0):
		return fmt.Errorf("BM25 with epsilon %g: a number from 0 on is needed", p.Epsilon)
	}
	return nil
}

// idf is the term's part of the formula, before Robertson's floor.
func (p Parameters) idf(documents, df uint64) float64 {
	odds := (float64(documents-df) + 0.5) / (float64(df) + 0.5)
	if p.Formula == Robertson {
		return math.Log(odds)
	}
	return math.Log(1 + odds)
}

// value is the document's part of the formula.
func (p Parameters) value(tf, length, average float64) float64 {
	v := tf / (tf + p.K1*(1-p.B+p.B*length/average))
	if p.Formula == Robertson {
		v *= p.K1 + 1
	}
	return v
}
