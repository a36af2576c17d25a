// Package remote holds policies whose model runs behind a server.
//
// [Policy] samples the trained model itself with vLLM or SGLang, token ids in and
// token ids out: what the server ran is what is recorded, and no text is ever
// encoded again. [Chat] asks a teacher behind an OpenAI-compatible chat server,
// whose text becomes training data; nothing of it counts as sampled.
//
// # Which servers
//
// vLLM: POST /v1/completions with prompt as a list of ids and return_token_ids,
// which vLLM has since 0.10.2. The answer's choices[0].token_ids hold the
// end-of-sequence id and every id of a stop text; prompt_token_ids must be the
// ids that were sent.
//
// SGLang: POST /generate with input_ids. The sampled ids are those of
// meta_info.output_token_logprobs, rows of [log-prob, id, text]: output_ids of some
// versions begin with ids of the prompt (sglang#10896, sglang#17240). The prompt is
// compared with prompt_token_ids where the server knows
// return_prompt_token_ids; of older ones the first request asks for the log-probs
// of the prompt, whose rows name its ids, and each later one is compared by length.
//
// A server that shows no ids, or other ids of the prompt than it was sent (it
// decoded and encoded them again, sglang#26555), is refused: errors that wrap
// [ErrRefused] end the run. All sampling settings are sent, the neutral ones
// too, for a server fills what is missing from the model's generation_config.json,
// such as a repetition penalty.
//
// # Log-probs
//
// A recorded log-prob is that of the distribution which the id was drawn from
// (trace.Call). Servers differ:
//
//	vLLM    of the raw logits, before temperature and truncation, unless it runs
//	        with --logprobs-mode processed_logprobs (then Options.ProcessedLogProbs)
//	SGLang  at the temperature, before top-k and top-p (unless it runs with
//	        SGLANG_RETURN_ORIGINAL_LOGPROB, which is not to be set)
//
// Both agree with the record when decoding is greedy and at temperature 1 without
// truncation. Where they do not, the record has no log-probs rather than wrong
// ones, and [Policy.LogProbs] says why.
//
// # Seeds
//
// vLLM draws by the request's seed. SGLang reads it (its low 31 bits, as
// sampling_seed) only when it runs with --enable-deterministic-inference.
// Neither promises the same bits in another batch.
//
// # Failures
//
// Timeouts, broken connections, the statuses 408, 425, 429 and 5xx, and answers that
// are cut, not JSON or without a choice are tried again, after a pause that doubles
// and is drawn between half and all of itself, or after Retry-After. What fails for
// good ends its own trajectory as model_error. The run ends when several
// requests in a row have failed, and at once with 401, 403, 404 and 405.
package remote
