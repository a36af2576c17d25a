// Package eval runs agents on tasks and scores what they did: exact match and F1
// under two named scorers, peak context, dependency and inference time. The
// metrics themselves are the pure functions of eval/metrics.
package eval
