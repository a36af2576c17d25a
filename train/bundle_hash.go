package train

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"hash"
	"io"
	"os"

	"github.com/memopd/memopd-bench/align"
	"github.com/memopd/memopd-bench/torch"
)

// The roles of a run's weights.
const (
	roleActor     = "actor"
	roleCritic    = "critic"
	roleReference = "reference"
	roleTeacher   = "teacher"
)

// WeightHashes stand for a set of weights.
type WeightHashes struct {
	SHA256  string       `json:"sha256"` // of the tensors' names and hashes
	Tensors []TensorHash `json:"tensors"`
}

// TensorHash is the SHA-256 of a tensor's type, shape and bytes, its first 16 digits.
type TensorHash struct {
	Name   string `json:"name"`
	SHA256 string `json:"sha256"`
}

// hashWeights hashes parameters where they are.
func hashWeights(params []torch.Named) WeightHashes {
	var w WeightHashes
	all := sha256.New()
	for _, p := range params {
		sum := hashTensor(p.Tensor)
		w.Tensors = append(w.Tensors, TensorHash{p.Name, sum[:16]})
		fmt.Fprintf(all, "%s %s\n", p.Name, sum)
	}
	w.SHA256 = hex.EncodeToString(all.Sum(nil))
	return w
}

func hashTensor(t *torch.Tensor) string {
	s := torch.NewScope()
	defer s.Close()
	h := sha256.New()
	fmt.Fprintf(h, "%v\n", t)
	h.Write(t.Bytes())
	return hex.EncodeToString(h.Sum(nil))
}

// weightHashes are those of all roles of a run. Reference and teacher never change and
// are hashed once.
func (r *ppoRun) weightHashes() map[string]WeightHashes {
	if r.frozenHashes == nil {
		r.frozenHashes = map[string]WeightHashes{roleReference: hashWeights(r.p.Initial.Parameters())}
		if r.p.Teacher != nil {
			r.frozenHashes[roleTeacher] = hashWeights(r.p.Teacher.Parameters())
		}
	}
	hashes := map[string]WeightHashes{roleActor: hashWeights(r.policy.Parameters()), roleCritic: hashWeights(r.critic.parameters())}
	for role, h := range r.frozenHashes {
		hashes[role] = h
	}
	return hashes
}

// gradientRecords hash the gradients as they are.
func gradientRecords(gradients []torch.Named) []GradientRecord {
	var all []GradientRecord
	for _, g := range gradients {
		s := torch.NewScope()
		all = append(all, GradientRecord{
			Name: g.Name, Norm: number(g.Tensor.Norm().Item()), SHA256: hashTensor(g.Tensor),
		})
		s.Close()
	}
	return all
}

// hashContext hashes what a sequence shows: ids, positions and who sees whom.
func hashContext(p *align.Packed) ContextHash {
	h := sha256.New()
	write := func(numbers ...int32) {
		putInts(h, int32(len(numbers)))
		putInts(h, numbers...)
	}
	write(p.IDs...)
	write(p.Positions...)
	write(int32(p.PrefixLength))
	for i := range p.Blocks {
		b := &p.Blocks[i]
		write(int32(b.Start), int32(b.End))
		for _, r := range seen(p, b) {
			write(int32(r.Start), int32(r.End))
		}
	}
	return ContextHash{Tokens: len(p.IDs), SHA256: hex.EncodeToString(h.Sum(nil))}
}

func putInts(h hash.Hash, numbers ...int32) {
	data, err := binary.Append(nil, binary.LittleEndian, numbers)
	if err != nil {
		panic(err) // int32 has a fixed size
	}
	h.Write(data)
}

// seen are the ranges that a block sees, the prefix's spelled out.
func seen(p *align.Packed, b *align.Block) []align.Range {
	if b.Sees == nil && p.PrefixLength > 0 {
		return []align.Range{{Start: 0, End: p.PrefixLength}}
	}
	return b.Sees
}

func hashFile(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return "", err
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}
