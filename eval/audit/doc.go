// Package audit measures whether training rows show a model the states in which its
// tokens were sampled.
//
// RCE (rollout context equivalence; MemOPD, arXiv 2608.07068) scores every sampled
// token in the rows of a layout and in an independent forward pass of its own call
// in float32, which is the truth. A layout passes when
//
//   - its actions are the sampled tokens, each once, and nothing else;
//   - the 99th percentile of |log-prob - true log-prob| is within the tolerance;
//   - no token is a top-1 flip: the most probable id is another one, unless the two
//     ids' log-probs lie within the tolerance of each other in both passes (a tie);
//   - no token is a false clip: its ratio exp(log-prob - true log-prob), which is 1
//     in the state that it was sampled in, lies outside 1 ± ε.
//
// Log-probs are those of softmax(logits / temperature) at the temperature that the
// trajectory was sampled with (1 for greedy decoding), in nats. A percentile is the
// smallest value that at least so many of all are not above.
package audit
