package main

import "github.com/spf13/cobra"

func newAudit() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "audit",
		Short: "Certify that training rows show the states in which tokens were sampled",
		Long: `Audits recorded trajectories: whether a layout of training rows gives every sampled
token the state that it was sampled in, what a teacher says in other states, what
wrong action masks do to the gradient.`,
		Example: `  bench audit rce --controls
  bench audit rce --ledger runs/small/eval/q2/sft/seed-0/ledger.jsonl --certificate rce.json`,
	}
	cmd.AddCommand(newAuditRCE(), newAuditTeacher(), newAuditMasks(), newAuditLedger(), newAuditUpdates(), newAuditSpeed())
	return cmd
}
