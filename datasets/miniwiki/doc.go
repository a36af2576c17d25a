// Package miniwiki generates a small encyclopedia that an agent can only answer
// from by reading: worlds over one pool of single-token names, each with its own
// facts, one document an entity, one-hop questions (the kind of Natural
// Questions) and two-hop bridge questions (the kind of HotpotQA), and the
// responses of an oracle that reads what it needs.
//
// Everything follows from [Config] alone: the same seed gives the same worlds,
// documents, tasks and oracle responses on every machine. The pool of names and
// the vocabulary depend on nothing, not even on the seed, because checkpoints
// are trained on their ids.
//
// The word forms are those of the agent's protocol "mini": a question is an
// entity and the relations in reading order, `noge employer founder` being the
// founder of the employer of noge.
package miniwiki
