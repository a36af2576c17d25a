package model

import (
	"github.com/memopd/memopd-bench/torch"
)

// cacheStep is the step in which the cache grows, in tokens.
const cacheStep = 64

// cache holds keys and values of the rows in generation, one tensor each a
// layer: (rowsMax, length, K*E) in the compute type on the decoder's device, a
// token at the place of its position.
type cache struct {
	decoder        *Decoder
	rowsMax, width int64
	length         int64
	keys, values   []*torch.Tensor
}

func newCache(d *Decoder, rowsMax int) *cache {
	c := &d.Config
	return &cache{
		decoder: d, rowsMax: int64(rowsMax), width: int64(c.NumKeyValueHeads * c.HeadDim),
		keys: make([]*torch.Tensor, c.NumHiddenLayers), values: make([]*torch.Tensor, c.NumHiddenLayers),
	}
}

// reserve makes room for tokens places a row and keeps what is there.
func (c *cache) reserve(tokens int) {
	if int64(tokens) <= c.length {
		return
	}
	length := (int64(tokens) + cacheStep - 1) / cacheStep * cacheStep
	s := torch.NewScope()
	defer s.Close()
	for _, list := range [][]*torch.Tensor{c.keys, c.values} {
		for i, old := range list {
			// Zeros, since what is masked must still be finite.
			list[i] = c.decoder.zeros(c.decoder.compute(), c.rowsMax, length, c.width).Own()
			if old != nil {
				list[i].Narrow(1, 0, c.length).Copy_(old)
				old.Free()
			}
		}
	}
	c.length = length
}

// index is where write puts tokens: token i in row rows[i] at places[i].
func (c *cache) index(rows, places []int) *torch.Tensor {
	index := make([]int64, len(rows))
	for i, r := range rows {
		index[i] = int64(r)*c.length + int64(places[i])
	}
	return c.decoder.ints(index)
}

// write stores k and v (N, K, E) of a layer at an index made by index.
func (c *cache) write(layer int, index, k, v *torch.Tensor) {
	c.keys[layer].View(-1, c.width).IndexCopy_(0, index, k.Reshape(-1, c.width))
	c.values[layer].View(-1, c.width).IndexCopy_(0, index, v.Reshape(-1, c.width))
}

// read is the keys and values of the first tokens places of the first rows of a
// layer, (rows, tokens, K, E) each.
func (c *cache) read(layer int, rows, tokens int64) (k, v *torch.Tensor) {
	heads := int64(c.decoder.Config.NumKeyValueHeads)
	part := func(t *torch.Tensor) *torch.Tensor {
		return t.Narrow(0, 0, rows).Narrow(1, 0, tokens).View(rows, tokens, heads, c.width/heads)
	}
	return part(c.keys[layer]), part(c.values[layer])
}

// move copies the first tokens places of row from over row to.
func (c *cache) move(from, to, tokens int) {
	s := torch.NewScope()
	defer s.Close()
	for _, list := range [][]*torch.Tensor{c.keys, c.values} {
		for _, t := range list {
			source := t.Select(0, int64(from)).Narrow(0, 0, int64(tokens))
			t.Select(0, int64(to)).Narrow(0, 0, int64(tokens)).Copy_(source)
		}
	}
}

// free releases the tensors.
func (c *cache) free() {
	for i := range c.keys {
		c.keys[i].Free()
		c.values[i].Free()
	}
}
