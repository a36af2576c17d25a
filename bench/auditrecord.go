package main

import (
	"os"
	"path/filepath"
	"time"

	"github.com/memopd/memopd-bench/eval/audit"
	"github.com/memopd/memopd-bench/model"
	"github.com/memopd/memopd-bench/results"
	"github.com/memopd/memopd-bench/trace"
)

// keep writes fresh rollouts as a ledger, to hash it, and where --save-ledger says.
func (s auditSource) keep(in *auditInput) error {
	path := s.SaveLedger
	if path == "" {
		dir, err := os.MkdirTemp("", "bench-audit-")
		if err != nil {
			return err
		}
		defer os.RemoveAll(dir)
		path = filepath.Join(dir, "ledger.jsonl")
	}
	if err := trace.WriteAll(path, in.trajectories); err != nil {
		return err
	}
	sum, err := results.HashFile(path)
	from := s.SaveLedger
	if from == "" {
		from = "fresh rollouts of " + in.from
	}
	in.ledgers = []audit.Ledger{{From: from, SHA256: sum}}
	return err
}

// auditRecord is the file of an audit that certifies nothing.
type auditRecord struct {
	Schema    int               `json:"schema"`
	Result    any               `json:"result"`
	Model     string            `json:"model"`             // sha256 of the weights
	Teacher   string            `json:"teacher,omitempty"` // likewise
	ModelFrom string            `json:"model_from"`
	Ledgers   []audit.Ledger    `json:"ledgers"`
	Manifest  *results.Manifest `json:"manifest"`
}

// record writes an audit's result with its inputs' hashes; teacher may be nil.
func (in *auditInput) record(path string, m *results.Manifest, teacher *model.Decoder, result any) (err error) {
	r := auditRecord{Schema: 1, Result: result, ModelFrom: in.from, Ledgers: in.ledgers, Manifest: m}
	if r.Model, err = audit.HashModel(in.model); err != nil {
		return err
	}
	if teacher != nil {
		if r.Teacher, err = audit.HashModel(teacher); err != nil {
			return err
		}
	}
	m.Ended = time.Now().UTC()
	return results.WriteJSON(path, r)
}

// tokenizerHash is the sha256 of the tokenizer's tokenizer.json; "" without one.
func (in *auditInput) tokenizerHash() (string, error) {
	if in.tokenizer == nil {
		return "", nil
	}
	dir, err := os.MkdirTemp("", "bench-audit-")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(dir)
	if err := in.tokenizer.Save(dir); err != nil {
		return "", err
	}
	return results.HashFile(filepath.Join(dir, "tokenizer.json"))
}
