// Package rollouts reads what other programs recorded of their rollouts as
// trajectories of the ledger: one file a format, one record at a time.
//
// Ids are taken as they stand and never made from text: a record without ids is
// [Refused], with what it lacks. Everything else that a source does not hold is left
// empty and named in Trajectory.Lacks. Where contexts came from is told by equal ids
// alone (see [Formats] and docs/LEDGER.md, "Imports"). What is read need not
// Validate: a log-prob too many is for the audit to say, not for the reader.
package rollouts
