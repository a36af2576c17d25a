package model

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/memopd/memopd-bench/torch"
)

// rawTensor is a tensor as bytes, for files that no library would write.
type rawTensor struct {
	name, dtype string
	shape       []int64
	data        []byte
}

// rawSafetensors lays out a file whose data starts after pad more bytes than a multiple of eight.
func rawSafetensors(pad int, tensors []rawTensor) []byte {
	header, at := map[string]any{}, 0
	for _, t := range tensors {
		header[t.name] = map[string]any{"dtype": t.dtype, "shape": t.shape, "data_offsets": []int{at, at + len(t.data)}}
		at += len(t.data)
	}
	text, err := json.Marshal(header)
	if err != nil {
		panic(err)
	}
	for len(text)%8 != pad {
		text = append(text, ' ')
	}
	out := append(binary.LittleEndian.AppendUint64(nil, uint64(len(text))), text...)
	for _, t := range tensors {
		out = append(out, t.data...)
	}
	return out
}

// rawTensors are the tensors of a decoder, float32.
func rawTensors(d *Decoder) []rawTensor {
	s := torch.NewScope()
	defer s.Close()
	var out []rawTensor
	for _, n := range d.tensors() {
		out = append(out, rawTensor{n.Name, "F32", n.Tensor.Shape(), n.Tensor.Bytes()})
	}
	return out
}

// folder is a checkpoint of d in parts of so many tensors each; 0: one file.
func folder(t *testing.T, d *Decoder, part int) fstest.MapFS {
	t.Helper()
	config, err := d.Config.marshal(torch.Float32)
	if err != nil {
		t.Fatal(err)
	}
	fsys := fstest.MapFS{configFilename: {Data: config}}
	all := rawTensors(d)
	if part == 0 {
		fsys[weightsFilename] = &fstest.MapFile{Data: rawSafetensors(0, all)}
		return fsys
	}
	index := map[string]string{}
	for i, tensors := range slices.Collect(slices.Chunk(all, part)) {
		name := fmt.Sprintf("model-%05d.safetensors", i+1)
		fsys[name] = &fstest.MapFile{Data: rawSafetensors(0, tensors)}
		for _, tensor := range tensors {
			index[tensor.name] = name
		}
	}
	setIndex(fsys, index)
	return fsys
}

func setIndex(fsys fstest.MapFS, index map[string]string) {
	data, err := json.Marshal(map[string]any{"metadata": map[string]int{"total_size": 1}, "weight_map": index})
	if err != nil {
		panic(err)
	}
	fsys[indexFilename] = &fstest.MapFile{Data: data}
}

// refused wants an error with each of the texts in it.
func refused(t *testing.T, name string, fsys fstest.MapFS, p Placement, want ...string) {
	t.Helper()
	d, err := LoadFS(fsys, p)
	if err == nil {
		d.Free()
	}
	for _, text := range want {
		if err == nil || !strings.Contains(err.Error(), text) {
			t.Errorf("%s: error %v, want %q in it", name, err, text)
		}
	}
}

// TestShardedIndex damages a checkpoint in parts (UOR-Foundation/uor-r4 #634, mattn/tensai #25).
func TestShardedIndex(t *testing.T) {
	d := newModel(t, tiny(Qwen2), 21, 1)
	good := folder(t, d, 5)
	again, err := LoadFS(good, Placement{})
	if err != nil {
		t.Fatal(err)
	}
	sameWeights(t, d, again)
	again.Free()

	var index struct {
		Map map[string]string `json:"weight_map"`
	}
	if err := json.Unmarshal(good[indexFilename].Data, &index); err != nil {
		t.Fatal(err)
	}
	const embed, first, second = embeddingsName, "model-00001.safetensors", "model-00002.safetensors"
	for name, c := range map[string]struct {
		change func(fsys fstest.MapFS, index map[string]string)
		want   []string
	}{
		"missing part":     {func(f fstest.MapFS, _ map[string]string) { delete(f, second) }, []string{second}},
		"unlisted tensor":  {func(_ fstest.MapFS, m map[string]string) { delete(m, embed) }, []string{first, embed, "not listed"}},
		"misplaced tensor": {func(_ fstest.MapFS, m map[string]string) { m[embed] = second }, []string{first, embed, second}},
		"tensor in no part": {func(_ fstest.MapFS, m map[string]string) { m["model.extra"] = second },
			[]string{`"model.extra" is not in ` + second}},
		"tensor in two parts": {func(f fstest.MapFS, _ map[string]string) { f[second] = f[first] }, []string{"another part"}},
		"path upwards":        {func(_ fstest.MapFS, m map[string]string) { m[embed] = "../" + first }, []string{`"../model-00001`, "not the name"}},
		"absolute path":       {func(_ fstest.MapFS, m map[string]string) { m[embed] = "/etc/passwd" }, []string{`"/etc/passwd"`}},
		"backslash":           {func(_ fstest.MapFS, m map[string]string) { m[embed] = `..\` + first }, []string{"not the name"}},
		"no safetensors":      {func(_ fstest.MapFS, m map[string]string) { m[embed] = "pytorch_model.bin" }, []string{"pytorch_model.bin"}},
		"empty":               {func(_ fstest.MapFS, m map[string]string) { clear(m) }, []string{"weight_map is empty"}},
		"neither": {func(f fstest.MapFS, m map[string]string) { m[""] = "" },
			[]string{"neither model.safetensors nor", "safetensors and GGUF files alone"}},
	} {
		fsys, m := maps.Clone(good), maps.Clone(index.Map)
		c.change(fsys, m)
		setIndex(fsys, m)
		if name == "neither" {
			delete(fsys, indexFilename)
		}
		refused(t, name, fsys, Placement{}, c.want...)
	}
	bad := maps.Clone(good)
	bad[indexFilename] = &fstest.MapFile{Data: []byte("[]")}
	refused(t, "another JSON", bad, Placement{}, indexFilename)
	twice := strings.Replace(string(good[indexFilename].Data), `"weight_map":{`, `"weight_map":{"`+embed+`":"`+second+`",`, 1)
	bad[indexFilename] = &fstest.MapFile{Data: []byte(twice)}
	refused(t, "tensor listed twice", bad, Placement{}, indexFilename, `"`+embed+`" is listed twice`)
}

// TestOneFileGoesBeforeParts: as in transformers, and Save leaves no parts behind that it did not write.
func TestOneFileGoesBeforeParts(t *testing.T) {
	a, b := newModel(t, tiny(Llama), 1, 1), newModel(t, tiny(Llama), 2, 1)
	dir := t.TempDir()
	if err := os.CopyFS(dir, folder(t, a, 7)); err != nil {
		t.Fatal(err)
	}
	if err := b.Save(dir); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(dir, indexFilename)); err == nil {
		t.Errorf("%s is still there", indexFilename)
	}
	for _, stale := range []bool{false, true} {
		if stale {
			if err := os.WriteFile(filepath.Join(dir, indexFilename), folder(t, a, 7)[indexFilename].Data, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		again, err := Load(dir, Placement{})
		if err != nil {
			t.Fatal(err)
		}
		sameWeights(t, b, again)
		again.Free()
	}
}

// TestUnalignedData: data may start at any byte.
func TestUnalignedData(t *testing.T) {
	d := newModel(t, tiny(Llama), 3, 1)
	for pad := 1; pad < 8; pad += 2 {
		fsys := folder(t, d, 0)
		fsys[weightsFilename] = &fstest.MapFile{Data: rawSafetensors(pad, rawTensors(d))}
		again, err := LoadFS(fsys, Placement{})
		if err != nil {
			t.Fatal(err)
		}
		sameWeights(t, d, again)
		again.Free()
	}
}

// TestPieces reads tensors in pieces of a few rows, as large ones are, from both formats and into another type.
func TestPieces(t *testing.T) {
	d := newModel(t, tiny(Llama), 9, 1)
	whole := pieceBytes
	t.Cleanup(func() { pieceBytes = whole })
	for _, path := range []string{"testdata/transformers/llama_grouped_biases", "testdata/gguf/llama_grouped_biases.gguf",
		"testdata/transformers/llama_tied", "testdata/transformers/qwen2_untied_parts"} {
		for _, weights := range []torch.DType{torch.Float32, torch.BFloat16} {
			var both [2]*Decoder
			for i, size := range []int64{whole, 200} {
				pieceBytes = size
				d, err := Load(path, Placement{Weights: weights})
				if err != nil {
					t.Fatal(err)
				}
				defer d.Free()
				both[i] = d
			}
			sameWeights(t, both[0], both[1])
		}
	}
	all := rawTensors(d)
	head := rawTensor{headName, "F32", []int64{50, 32}, slices.Clone(all[0].data)}
	head.data[5000]++ // in a later piece
	fsys := folder(t, d, 0)
	fsys[weightsFilename] = &fstest.MapFile{Data: rawSafetensors(0, append(all, head))}
	refused(t, "another head", fsys, Placement{}, "differs")
}

// TestTiedHead: small Qwen2.5 files have no lm_head (text-generation-inference
// #2373); one that is not tied needs it (Qwen3-VL-Embedding #89).
func TestTiedHead(t *testing.T) {
	untied := newModel(t, tiny(Qwen2), 4, 1)
	fsys := folder(t, untied, 0)
	headless := slices.DeleteFunc(rawTensors(untied), func(r rawTensor) bool { return r.name == headName })
	fsys[weightsFilename] = &fstest.MapFile{Data: rawSafetensors(0, headless)}
	refused(t, "untied without a head", fsys, Placement{}, `"lm_head.weight" is missing`, "tie_word_embeddings is not true")

	fsys[configFilename] = &fstest.MapFile{Data: []byte(strings.Replace(string(fsys[configFilename].Data),
		`"tie_word_embeddings": false`, `"tie_word_embeddings": true`, 1))}
	tied, err := LoadFS(fsys, Placement{})
	if err != nil {
		t.Fatal(err)
	}
	defer tied.Free()
	if tied.head != tied.embed {
		t.Error("the head is not the embedding")
	}
	fsys[weightsFilename] = folder(t, untied, 0)[weightsFilename]
	refused(t, "tied with another head", fsys, Placement{}, `"lm_head.weight" differs from "model.embed_tokens.weight"`, "tie_word_embeddings is true")
	equal := append(headless, rawTensor{headName, "BF16", []int64{50, 32}, make([]byte, 50*32*2)})
	fsys[weightsFilename] = &fstest.MapFile{Data: rawSafetensors(0, equal)}
	refused(t, "tied with a head of another type", fsys, Placement{}, "differs")
}

// TestBiases: qwen2 has biases at q, k and v (ANEForge #253, candle-vllm #167) and not at o (sglang-jax #578).
func TestBiases(t *testing.T) {
	d := newModel(t, tiny(Qwen2), 5, 1)
	all := rawTensors(d)
	for _, name := range []string{"q", "k", "v"} {
		name = "model.layers.1.self_attn." + name + "_proj.bias"
		fsys := folder(t, d, 0)
		fewer := slices.DeleteFunc(slices.Clone(all), func(r rawTensor) bool { return r.name == name })
		fsys[weightsFilename] = &fstest.MapFile{Data: rawSafetensors(0, fewer)}
		refused(t, "without "+name, fsys, Placement{}, `"`+name+`" is missing`)
	}
	fsys := folder(t, d, 0)
	const extra = "model.layers.1.self_attn.o_proj.bias"
	fsys[weightsFilename] = &fstest.MapFile{Data: rawSafetensors(0, append(all, rawTensor{extra, "F32", []int64{32}, make([]byte, 128)}))}
	refused(t, "with "+extra, fsys, Placement{}, `"`+extra+`" is unexpected`)
}

// TestInverseFrequencies: Llama 2's files hold them, which adds nothing, unless they differ.
func TestInverseFrequencies(t *testing.T) {
	d := newModel(t, tiny(Llama), 10, 1)
	const name = "model.layers.2.self_attn.rotary_emb.inv_freq"
	inverse := []float32{1, 0.1, 0.01, 0.001} // 10000^(-i/4)
	fsys := folder(t, d, 0)
	for _, c := range []struct {
		raw  rawTensor
		want string
	}{
		{rawTensor{name, "F32", []int64{4}, float32Bytes(inverse)}, ""},
		{rawTensor{name, "F32", []int64{4}, float32Bytes([]float32{1, 0.1, 0.02, 0.001})}, "inverse frequency 2 is 0.02, the config makes it 0.01"},
		{rawTensor{name, "F32", []int64{2}, float32Bytes(inverse[:2])}, "shape [2], want [4]"},
	} {
		fsys[weightsFilename] = &fstest.MapFile{Data: rawSafetensors(0, append(rawTensors(d), c.raw))}
		if c.want != "" {
			refused(t, c.want, fsys, Placement{}, name, c.want)
			continue
		}
		again, err := LoadFS(fsys, Placement{})
		if err != nil {
			t.Fatal(err)
		}
		sameWeights(t, d, again)
		again.Free()
	}
}

// TestStoredTypes reads known bytes of each type (safetensors #448: little-endian) into each type.
func TestStoredTypes(t *testing.T) {
	d := newModel(t, tiny(Llama), 6, 1)
	values := []float32{1, -2.5, 0.15625, 3.140625} // exact in bfloat16 and float16
	bytes := map[string][]byte{
		"F32":  {0, 0, 0x80, 0x3f, 0, 0, 0x20, 0xc0, 0, 0, 0x20, 0x3e, 0, 0, 0x49, 0x40},
		"BF16": {0x80, 0x3f, 0x20, 0xc0, 0x20, 0x3e, 0x49, 0x40},
		"F16":  {0, 0x3c, 0, 0xc1, 0, 0x31, 0x48, 0x42},
		"F64":  {0, 0, 0, 0, 0, 0, 0xf0, 0x3f, 0, 0, 0, 0, 0, 0, 4, 0xc0, 0, 0, 0, 0, 0, 0, 0xc4, 0x3f, 0, 0, 0, 0, 0, 0x20, 9, 0x40},
	}
	for stored, raw := range bytes {
		all := rawTensors(d)
		for i := range all {
			if all[i].name == embeddingsName {
				all[i].dtype, all[i].data = stored, slices.Repeat(raw, 50*32/4)
			}
		}
		fsys := folder(t, d, 0)
		fsys[weightsFilename] = &fstest.MapFile{Data: rawSafetensors(0, all)}
		for _, weights := range floats {
			again, err := LoadFS(fsys, Placement{Weights: weights})
			if err != nil {
				t.Fatal(err)
			}
			if got := again.embed.Float32s()[1596:]; !slices.Equal(got, values) || again.embed.DType() != weights {
				t.Errorf("%s as %v: %v in %v", stored, weights, got, again.embed.DType())
			}
			again.Free()
		}
	}
	all := rawTensors(d)
	all[0].dtype = "I32"
	fsys := folder(t, d, 0)
	fsys[weightsFilename] = &fstest.MapFile{Data: rawSafetensors(0, all)}
	refused(t, "integers", fsys, Placement{}, all[0].name, "int32")
}

// TestRotationPrecision: angles are float32 whatever the layers compute in
// (transformers #29285, InfiniCore #1506).
func TestRotationPrecision(t *testing.T) {
	d := newModel(t, tiny(Llama), 7, 1)
	c := d.CloneTo(Placement{Weights: torch.BFloat16})
	defer c.Free()
	s := torch.NewScope()
	defer s.Close()
	const place = 8191
	r := c.rotation([]int32{place})
	cos := r.cos.Float32s()
	for i := range 4 {
		want := math.Cos(place * math.Pow(10000, -float64(i)/4))
		if math.Abs(float64(cos[i])-want) > 5e-3 { // bfloat16 rounds 1 by 4e-3
			t.Errorf("cosine %d at %d is %v, want %v", i, place, cos[i], want)
		}
	}
}

// TestHostileConfig: sizes that no file can back are errors before memory is asked for.
func TestHostileConfig(t *testing.T) {
	d := newModel(t, tiny(Llama), 8, 1)
	for old, c := range map[string][2]string{
		`"vocab_size": 50`:         {`"vocab_size": 1000000000`, "shape [50 32], want [1000000000 32]"},
		`"hidden_size": 32`:        {`"hidden_size": 1000000000`, "want [50 1000000000]"},
		`"num_hidden_layers": 3`:   {`"num_hidden_layers": 1000000000`, "num_hidden_layers is 1000000000"},
		`"head_dim": 8`:            {`"head_dim": 1000000000`, "head_dim is 1000000000"},
		`"num_attention_heads": 4`: {`"num_attention_heads": 4000000`, "num_attention_heads is 4000000"},
	} {
		fsys := folder(t, d, 0)
		text := string(fsys[configFilename].Data)
		if !strings.Contains(text, old) {
			t.Fatalf("%s is not in %s", old, text)
		}
		fsys[configFilename] = &fstest.MapFile{Data: []byte(strings.Replace(text, old, c[0], 1))}
		refused(t, c[0], fsys, Placement{}, c[1])
	}
}
