package model

import (
	"fmt"
	"math"
	"regexp"
	"slices"

	"github.com/memopd/memopd-bench/torch"
)

// checkTensors holds the weights to exactly the tensors that the config asks for.
func checkTensors(c *Config, slots []slot, w source) error {
	wanted := map[string]bool{}
	for _, s := range slots {
		for _, p := range s.parts {
			wanted[p.name] = true
			got, ok := w.shape(p.name)
			if !ok && p.name == headName {
				return fmt.Errorf("tensor %q is missing, and tie_word_embeddings is not true in the config; "+
					"set it to true if the head is meant to be %q", p.name, embeddingsName)
			}
			if !ok {
				return fmt.Errorf("tensor %q is missing", p.name)
			}
			if want := append([]int64{p.rows}, s.shape[1:]...); !slices.Equal(got, want) {
				return fmt.Errorf("tensor %q has the shape %v, want %v", p.name, got, want)
			}
		}
	}
	for _, name := range w.names() {
		if wanted[name] {
			continue
		}
		var err error
		switch {
		case name == headName && c.TieWordEmbeddings:
			err = checkHead(w)
		case inverseName.MatchString(name):
			err = torch.Try(func() error { return checkInverse(c, name, w) })
		default:
			err = fmt.Errorf("tensor %q is unexpected", name)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// checkHead allows a tied checkpoint to hold its head too, if it is the embedding.
func checkHead(w source) error {
	same, err := w.same(headName, embeddingsName)
	if err == nil && !same {
		err = fmt.Errorf("tensor %q differs from %q, though tie_word_embeddings is true in the config", headName, embeddingsName)
	}
	return err
}

// inverseName is the inverse frequencies of rotary positions, which early
// checkpoints (Llama 2) hold for each layer.
var inverseName = regexp.MustCompile(`^model\.layers\.\d+\.self_attn\.rotary_emb\.inv_freq$`)

// checkInverse allows them where they are what the config gives, up to rounding in 16 bits.
func checkInverse(c *Config, name string, w source) error {
	want := newRopeTable(c).inverse
	if shape, _ := w.shape(name); !slices.Equal(shape, []int64{int64(len(want))}) {
		return fmt.Errorf("tensor %q has the shape %v, want [%d]", name, shape, len(want))
	}
	s := torch.NewScope()
	defer s.Close()
	r := reading{source: w, stages: map[torch.DType]*torch.Tensor{}}
	defer r.free()
	got := torch.Empty(torch.Float32, int64(len(want)))
	if err := r.copy(name, got); err != nil {
		return err
	}
	for i, v := range got.Float32s() {
		if !(math.Abs(float64(v-want[i])) <= float64(want[i])/100+1e-7) {
			return fmt.Errorf("tensor %q: inverse frequency %d is %v, the config makes it %v", name, i, v, want[i])
		}
	}
	return nil
}
