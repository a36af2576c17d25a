package miniwiki

import (
	"fmt"
	"math/rand/v2"
	"strings"

	"github.com/memopd/memopd-bench/datasets"
)

// Kind is what an entity is.
type Kind uint8

// The kinds of entities. Countries and rivers have no relations of their own.
const (
	Person Kind = iota
	Town
	Company
	Country
	River
	kinds
)

// String returns the kind's name.
func (k Kind) String() string {
	return [...]string{"person", "town", "company", "country", "river"}[k]
}

// How many entities of each kind a world has; together the whole pool of names.
var population = [kinds]int{Person: 64, Town: 22, Company: 18, Country: 6, River: 10}

const (
	poolSize         = 64 + 22 + 18 + 6 + 10
	relationsPerKind = 3
)

// relation leads from an entity of one kind to one of another.
type relation struct {
	name     string
	from, to Kind
}

// relations in the order of their ids: three for each kind that has any.
var relations = [...]relation{
	{"birth", Person, Town}, {"employer", Person, Company}, {"spouse", Person, Person},
	{"country", Town, Country}, {"mayor", Town, Person}, {"river", Town, River},
	{"base", Company, Town}, {"founder", Company, Person}, {"rival", Company, Company},
}

// relationID returns the id of a relation's name, or -1.
func relationID(name string) int {
	for i, r := range relations {
		if r.name == name {
			return i
		}
	}
	return -1
}

// firstRelation returns the id of a kind's first relation; its others follow.
func firstRelation(k Kind) int { return int(k) * relationsPerKind }

func hasRelations(k Kind) bool { return k <= Company }

// World is one assignment of names to kinds and of facts to names. It is never
// changed after it was made, so goroutines may share it.
type World struct {
	id     string
	kind   [poolSize]Kind
	byKind [kinds][]int
	asked  []int // entities with relations, those that questions can start from
	facts  [poolSize][relationsPerKind]int
	order  [poolSize][relationsPerKind]int // the order of relations in the document
	index  map[string]int                  // name to its place in the pool, shared by all worlds
}

// newWorld draws world number i of the wiki with the given seed.
func newWorld(seed uint64, i int) *World {
	rng := rand.New(rand.NewPCG(mix(seed, streamWorld), uint64(i)))
	w := &World{id: fmt.Sprintf("w%d", i), index: poolIndex}
	names := rng.Perm(poolSize)
	for k, n := range population {
		w.byKind[k], names = names[:n:n], names[n:]
		for _, e := range w.byKind[k] {
			w.kind[e] = Kind(k)
		}
		if hasRelations(Kind(k)) {
			w.asked = append(w.asked, w.byKind[k]...)
		}
	}
	for _, e := range w.asked {
		for j := range relationsPerKind {
			w.facts[e][j] = w.draw(rng, e, relations[firstRelation(w.kind[e])+j].to)
		}
		copy(w.order[e][:], rng.Perm(relationsPerKind))
	}
	return w
}

// draw picks an entity of kind k other than e: nobody is their own spouse, and
// a document never names its own title.
func (w *World) draw(rng *rand.Rand, e int, k Kind) int {
	for {
		if x := pick(rng, w.byKind[k]); x != e {
			return x
		}
	}
}

// ID returns the world's name, such as "w17".
func (w *World) ID() string { return w.id }

// Entities returns the names of all entities of a kind.
func (w *World) Entities(k Kind) []string {
	out := make([]string, len(w.byKind[k]))
	for i, e := range w.byKind[k] {
		out[i] = pool[e]
	}
	return out
}

// Fact returns what a relation of an entity leads to, false when the entity is
// unknown or has no such relation.
func (w *World) Fact(entity, relation string) (string, bool) {
	e, ok := w.index[entity]
	r := relationID(relation)
	if !ok || r < 0 || relations[r].from != w.kind[e] {
		return "", false
	}
	return pool[w.follow(e, r)], true
}

// follow returns the entity that relation r, one of e's kind, leads to.
func (w *World) follow(e, r int) int { return w.facts[e][r%relationsPerKind] }

// Document returns the document of an entity, false when there is none of that
// name. The text lists the relations in an order of the entity's own, such as
// `spouse fagi ; employer kome ; birth gola ;`, or is `.` where there are none.
func (w *World) Document(entity string) (datasets.Document, bool) {
	e, ok := w.index[entity]
	if !ok {
		return datasets.Document{}, false
	}
	return w.document(e), true
}

func (w *World) document(e int) datasets.Document {
	text := "."
	if k := w.kind[e]; hasRelations(k) {
		var b strings.Builder
		for i, j := range w.order[e] {
			if i > 0 {
				b.WriteByte(' ')
			}
			b.WriteString(relations[firstRelation(k)+j].name + " " + pool[w.facts[e][j]] + " ;")
		}
		text = b.String()
	}
	return datasets.Document{ID: w.id + "/" + pool[e], World: w.id, Title: pool[e], Text: text}
}

// Documents returns one document an entity, in the order of the pool.
func (w *World) Documents() []datasets.Document {
	docs := make([]datasets.Document, poolSize)
	for e := range docs {
		docs[e] = w.document(e)
	}
	return docs
}
