package main

import (
	"context"

	"github.com/memopd/memopd-bench/datasets"
	"github.com/memopd/memopd-bench/eval"
	"github.com/memopd/memopd-bench/model"
	"github.com/memopd/memopd-bench/trace"
	"github.com/memopd/memopd-bench/train"
)

// greedy is how evaluation decodes unless told otherwise.
var greedy = trace.Sampler{Greedy: true, Temperature: 1, TopP: 1}

// evaluate scores a decoder on the first tasks of a split at a horizon.
func (e *environment) evaluate(ctx context.Context, d *model.Decoder, split datasets.Split, n, tasks int) ([]eval.TaskRecord, error) {
	list, err := e.Composed(split, n, tasks)
	if err != nil {
		return nil, err
	}
	policy, err := model.NewSampler(d, greedy, e.rows)
	if err != nil {
		return nil, err
	}
	options := e.agent
	options.Sampler, options.ContextTokens = greedy, d.Config.MaxPositionEmbeddings
	result, err := eval.Run(ctx, eval.Options{Policy: policy, Searcher: searcher{e.index}, Tasks: list, Agent: options})
	if err != nil {
		return nil, err
	}
	return result.Records, nil
}

// devScores are the F1 scores of a decoder on the dev split, as a record.
func (e *environment) devScores(ctx context.Context, _ int, d *model.Decoder) (train.Record, error) {
	var r train.Record
	for _, h := range e.dev {
		records, err := e.evaluate(ctx, d, datasets.Dev, h.questions, h.tasks)
		if err != nil {
			return nil, err
		}
		r.Set(devMetric(h.questions), meanF1(records))
	}
	return r, nil
}

// devMetric names the dev score at a horizon.
func devMetric(questions int) string { return "eval/" + datasets.HorizonName(questions) + "_f1" }

func meanF1(records []eval.TaskRecord) float64 {
	sum := 0.0
	for _, r := range records {
		sum += r.F1
	}
	return sum / float64(max(1, len(records)))
}
