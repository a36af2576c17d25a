package main

import (
	"context"

	"github.com/memopd/memopd-bench/agent"
	"github.com/memopd/memopd-bench/datasets"
	"github.com/memopd/memopd-bench/eval"
	"github.com/memopd/memopd-bench/model"
	"github.com/memopd/memopd-bench/trace"
	"github.com/memopd/memopd-bench/train"
)

// rowsMax is the number of calls that are sampled at once.
const rowsMax = 64

// greedy is how evaluation decodes unless told otherwise.
var greedy = trace.Sampler{Greedy: true, Temperature: 1, TopP: 1}

// evaluate scores a decoder on the first tasks of a split at a horizon.
func (w *wikiWorkplace) evaluate(ctx context.Context, d *model.Decoder, split datasets.Split, n, tasks int) ([]eval.TaskRecord, error) {
	list, err := w.tasks(split, n, tasks)
	if err != nil {
		return nil, err
	}
	policy, err := model.NewSampler(d, greedy, rowsMax)
	if err != nil {
		return nil, err
	}
	result, err := eval.Run(ctx, eval.Options{
		Policy: policy, Searcher: searcher{w.index}, Tasks: list,
		Agent: agent.Options{
			Protocol: w.protocol, Tokenizer: w.tokenizer, Sampler: greedy,
			ContextTokens: d.Config.MaxPositionEmbeddings,
		},
	})
	if err != nil {
		return nil, err
	}
	return result.Records, nil
}

// devTasks is how many dev tasks a model is scored on while it trains, by
// horizon.
var devTasks = []struct{ questions, tasks int }{{1, 64}, {2, 64}, {8, 32}, {16, 16}}

// devScores are the F1 scores of a decoder on the dev split, as a record.
func (w *wikiWorkplace) devScores(ctx context.Context, _ int, d *model.Decoder) (train.Record, error) {
	var r train.Record
	for _, h := range devTasks {
		records, err := w.evaluate(ctx, d, datasets.Dev, h.questions, h.tasks)
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
