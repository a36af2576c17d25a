package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/memopd/memopd-bench/datasets"
	"github.com/memopd/memopd-bench/model"
	"github.com/memopd/memopd-bench/remote"
	"github.com/memopd/memopd-bench/trace"
)

// connecting holds the settings of how a model's server is spoken to.
type connecting struct {
	Server     string        `flag:"server" help:"URL of a server that runs the model, such as http://localhost:8000"`
	ServerKind string        `flag:"server-kind" help:"what the server is: vllm, sglang; for a teacher also openai, which is any with /v1/chat/completions, such as llama.cpp's"`
	APIKeyEnv  string        `flag:"api-key-env" help:"environment variable with the server's key; empty: none"`
	Requests   int           `flag:"requests" help:"requests to the server at once"`
	Timeout    time.Duration `flag:"request-timeout" help:"longest wait for one answer"`
	TriesMax   int           `flag:"request-attempts" help:"attempts of one request on timeouts, broken connections, 429 and 5xx, with pauses that double"`
	FailedMax  int           `flag:"failures-max" help:"requests that fail for good, one after another, before the run ends"`
}

func defaultConnecting() connecting {
	c := remote.DefaultConnection()
	return connecting{
		ServerKind: string(remote.VLLM), Requests: c.RequestsMax, Timeout: time.Duration(c.TimeoutSeconds) * time.Second,
		TriesMax: c.AttemptsMax, FailedMax: c.FailuresMax,
	}
}

// connection is how package remote takes the settings.
func (c connecting) connection(modelName string) (remote.Connection, error) {
	out := remote.DefaultConnection()
	out.Model, out.RequestsMax, out.TimeoutSeconds = modelName, c.Requests, c.Timeout.Seconds()
	out.AttemptsMax, out.FailuresMax = c.TriesMax, c.FailedMax
	if c.APIKeyEnv == "" {
		return out, nil
	}
	if out.APIKey = os.Getenv(c.APIKeyEnv); out.APIKey == "" {
		return out, fmt.Errorf("--api-key-env: the variable %s is not set", c.APIKeyEnv)
	}
	return out, nil
}

// policy samples with the model behind the server. d is how that model is spoken
// to; name is its name on the server, "" for the first that it lists.
func (c connecting) policy(name string, processed bool, eos []int32, d *dialect, sampling trace.Sampler) (*remote.Policy, error) {
	connection, err := c.connection(name)
	if err != nil {
		return nil, err
	}
	p, err := remote.New(remote.Kind(c.ServerKind), c.Server, remote.Options{
		Connection: connection, Sampler: sampling, EOS: eos, StopTexts: d.agent.Protocol.StopTags(), ProcessedLogProbs: processed,
	})
	if err != nil {
		return nil, err
	}
	if kept, why := p.LogProbs(); !kept {
		note("no log-probs are recorded: %s", why)
	}
	return p, nil
}

// serving holds the settings of sampling through a server.
type serving struct {
	connecting
	ServerModel string `flag:"server-model" help:"name of the model on the server; empty: the first that it lists"`
	Processed   bool   `flag:"server-processed-logprobs" help:"the vLLM server runs with --logprobs-mode processed_logprobs"`
}

// serverSubject is the model that a server runs.
func (o evalOptions) serverSubject(ctx context.Context) (subject, error) {
	if o.Scripted != "" || len(o.Model) != 1 {
		return subject{}, errors.New("--server needs one --model, whose tokenizer it speaks, and no --scripted")
	}
	path, err := locateModel(o.Model[0])
	if err != nil {
		return subject{}, err
	}
	eos, err := eosIDs(path)
	if err != nil {
		return subject{}, err
	}
	open := func(_ []datasets.Task, sampling trace.Sampler) (*opened, error) {
		d, err := modelDialect(o.speaking, path)
		if err != nil {
			return nil, err
		}
		p, err := o.policy(o.ServerModel, o.Processed, eos, d, sampling)
		if err != nil {
			return nil, err
		}
		server, err := p.Connect(ctx)
		if err != nil {
			return nil, err
		}
		options := d.agent
		options.ContextTokens, options.Model = server.ContextTokens, o.ServerKind+" "+server.Model
		return &opened{policy: p, agent: options, close: func() {}}, nil
	}
	return subject{variant: modelName(path) + "-" + o.ServerKind, from: o.Server, open: open}, nil
}

// eosIDs are the end-of-sequence ids of the model at a path.
func eosIDs(path string) ([]int32, error) {
	d, err := model.Describe(path)
	if err != nil {
		return nil, err
	}
	if len(d.EOS) == 0 {
		return nil, fmt.Errorf("%s names no end-of-sequence ids, which a server's outputs are held to", path)
	}
	return d.EOS, nil
}
