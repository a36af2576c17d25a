package train

import (
	"fmt"
	"math"

	"github.com/memopd/memopd-bench/model"
	"github.com/memopd/memopd-bench/torch"
)

// critic estimates the return at each action's prediction position. Its weights
// are its own: no gradient of its loss reaches the actor.
type critic struct {
	decoder *model.Decoder // nil when it reads the actor's hidden states
	weights []torch.Named  // of the value head
}

// newCritic makes the critic that the configuration names. Both kinds value
// every state with 0 before their first update.
func newCritic(c PPOConfig, initial *model.Decoder) (*critic, error) {
	width := initial.Config.HiddenSize
	switch c.Critic {
	case CriticDecoder:
		return newCriticWeights(c, initial.CloneTo(c.Trained()), []torch.Named{
			{Name: "value_head.weight", Tensor: torch.Zeros(torch.Float32, 1, int64(width))},
			{Name: "value_head.bias", Tensor: torch.Zeros(torch.Float32, 1)},
		}), nil
	case CriticHead:
		hidden := c.CriticHiddenUnits
		return newCriticWeights(c, nil, []torch.Named{
			{Name: "value_head.0.weight", Tensor: uniform(c.Seed, 0, hidden, width)},
			{Name: "value_head.0.bias", Tensor: torch.Zeros(torch.Float32, int64(hidden))},
			{Name: "value_head.2.weight", Tensor: torch.Zeros(torch.Float32, 1, int64(hidden))},
			{Name: "value_head.2.bias", Tensor: torch.Zeros(torch.Float32, 1)},
		}), nil
	}
	return nil, fmt.Errorf("critic %q is not known", c.Critic)
}

// newCriticWeights takes the weights over as parameters.
func newCriticWeights(c PPOConfig, d *model.Decoder, weights []torch.Named) *critic {
	for i, w := range weights {
		weights[i].Tensor = c.on(w.Tensor).Own().RequiresGrad_(true)
	}
	return &critic{decoder: d, weights: weights}
}

// uniform draws a weight (out, in) from [-1/sqrt(in), 1/sqrt(in)), PyTorch's
// default for a linear layer.
func uniform(seed, layer uint64, out, in int) *torch.Tensor {
	rng := newRand(seed, streamCriticInit, layer)
	bound := 1 / math.Sqrt(float64(in))
	data := make([]float32, out*in)
	for i := range data {
		data[i] = float32((2*rng.Float64() - 1) * bound)
	}
	return torch.FromFloat32(data, int64(out), int64(in))
}

// values estimates the returns (A) of actions from the hidden states (A, D) at their
// prediction positions: the critic's own where it is a decoder, else the actor's.
func (k *critic) values(hidden *torch.Tensor) *torch.Tensor {
	w := func(i int) *torch.Tensor { return k.weights[i].Tensor }
	if k.decoder == nil {
		hidden = hidden.Linear(w(0), w(1)).GELU()
	}
	last := len(k.weights) - 2
	return hidden.Linear(w(last), w(last+1)).Squeeze(-1)
}

// parameters are all weights, named as they are stored.
func (k *critic) parameters() []torch.Named {
	var all []torch.Named
	if k.decoder != nil {
		all = k.decoder.Parameters()
	}
	return append(all, k.weights...)
}

func (k *critic) free() {
	if k.decoder != nil {
		k.decoder.Free()
	}
	for _, w := range k.weights {
		w.Tensor.Free()
	}
}
