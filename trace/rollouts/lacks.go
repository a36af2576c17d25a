package rollouts

// What a source may lack, as it stands in Trajectory.Lacks; docs/LEDGER.md says
// what each means.
const (
	LackIDs         = "token ids" // of refused records alone
	LackLogProbs    = "log-probs"
	LackMeaning     = "log-prob meaning"
	LackTemperature = "temperature"
	LackTopP        = "top_p"
	LackTopK        = "top_k"
	LackStops       = "stop reasons"
	LackOrigins     = "context origins"
	LackContexts    = "contexts"
	LackSampledIDs  = "sampled ids"
	LackBoundaries  = "call boundaries"
	LackPadding     = "padding"
	LackGeneration  = "generation"
	LackCalls       = "calls"
	LackCommon      = "common beginning"
	LackBeginnings  = "beginnings"
)
