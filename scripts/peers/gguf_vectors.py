#!/usr/bin/env python3
"""Makes the GGUF files that model/gguf and model are tested with, by the gguf package of llama.cpp.

    gguf_vectors.py blocks DIR           (model/gguf/testdata was made by it)
    gguf_vectors.py convert FOLDER FILE  (model/testdata/gguf was made by it of folders in model/testdata/transformers)

`blocks` writes into DIR:

    blocks.gguf        a tensor of each quantised type, of hand-made and random blocks (all bits are tried: scales that are negative,
                       zero, tiny and large, quants at both ends), a few F32, F16 and BF16 values, and metadata of every kind
    blocks.f32         the values of its tensors, in the file's order, by gguf.quants.dequantize: float32, little-endian

`convert` writes a Hugging Face folder as llama.cpp's convert_hf_to_gguf.py does: its names, its keys, the rows of llama's query and key
projections reordered, float32 tensors.

Needs gguf and numpy; `convert` also safetensors: pip install gguf safetensors.
"""

import argparse
import json
import pathlib

import gguf
import numpy as np

TYPES = gguf.GGMLQuantizationType
QUANTISED = ["Q4_0", "Q4_1", "Q5_0", "Q5_1", "Q8_0", "Q4_K", "Q5_K", "Q6_K"]
# Where a block's half-precision scales stand, in bytes.
SCALES = {"Q4_0": [0], "Q4_1": [0, 2], "Q5_0": [0], "Q5_1": [0, 2], "Q8_0": [0], "Q4_K": [0, 2], "Q5_K": [0, 2], "Q6_K": [208]}
HALVES = np.array([0.0123, -0.75, 0.0, 6e-8, -6.1e-5, 1000.0], dtype=np.float16)  # the fourth and fifth: subnormal, nearly so
ODD_HALVES = np.array([0, -0.0, 1, -2, 65504, -65504, 6e-8, 6.1e-5, 0.3333, np.inf, -np.inf], dtype=np.float16)


def blocks(name, rng):
    """(rows, bytes): random blocks, then all bits 0 and all bits 1 in the quants."""
    kind = TYPES[name]
    elements, size = gguf.GGML_QUANT_SIZES[kind]
    per_row = 256 // elements
    raw = rng.integers(0, 256, (4 * per_row, size), dtype=np.uint8)
    raw[-2], raw[-1] = 0, 255
    for i, block in enumerate(raw):
        for at in SCALES[name]:
            block[at : at + 2] = HALVES[(i + at // 2) % len(HALVES) : (i + at // 2) % len(HALVES) + 1].view(np.uint8)
    return raw.reshape(4, -1)


def write(path, rng):
    w = gguf.GGUFWriter(str(path), "nonsense")
    w.add_uint8("kind.uint8", 200)
    w.add_int8("kind.int8", -100)
    w.add_uint16("kind.uint16", 60000)
    w.add_int16("kind.int16", -30000)
    w.add_uint32("kind.uint32", 4000000000)
    w.add_int32("kind.int32", -2000000000)
    w.add_uint64("kind.uint64", 2**63)
    w.add_int64("kind.int64", -(2**62))
    w.add_float32("kind.float32", 1e-5)
    w.add_float64("kind.float64", 1e-5)
    w.add_bool("kind.bool", True)
    w.add_string("kind.string", "grün\n")
    w.add_array("kind.strings", ["a", "", "Ġthe"])
    w.add_array("kind.ints", [1, -2, 3])
    w.add_array("kind.floats", [0.5, -1.5])
    w.add_array("kind.bools", [True, False])
    for name in QUANTISED:
        w.add_tensor(name.lower(), blocks(name, rng), raw_dtype=TYPES[name])
    w.add_tensor("f32", np.array([[1.5, -0.0, 3e38], [1e-40, -2, np.inf]], dtype=np.float32))
    w.add_tensor("f16", ODD_HALVES)
    bf16 = np.array([0x3F80, 0x8000, 0x0001, 0x7F80, 0xC2F7], dtype=np.uint16)
    w.add_tensor("bf16", bf16.view(np.uint8), raw_dtype=TYPES.BF16)
    w.write_header_to_file()
    w.write_kv_data_to_file()
    w.write_tensors_to_file()
    w.close()


def make_blocks(folder):
    path = folder / "blocks.gguf"
    write(path, np.random.default_rng(1))
    with np.errstate(all="ignore"):
        values = [gguf.quants.dequantize(t.data, t.tensor_type).astype("<f4").reshape(-1) for t in gguf.GGUFReader(str(path)).tensors]
    (folder / "blocks.f32").write_bytes(np.concatenate(values).tobytes())
    print(path.stat().st_size, (folder / "blocks.f32").stat().st_size, "bytes")


def permute(weights, heads):
    """LlamaModel.permute of convert_hf_to_gguf.py."""
    return weights.reshape(heads, 2, weights.shape[0] // heads // 2, *weights.shape[1:]).swapaxes(1, 2).reshape(weights.shape)


def rope_divisors(config, rope):
    """LlamaModel.generate_extra_tensors of convert_hf_to_gguf.py."""
    size = config["head_dim"]
    frequencies = 1.0 / rope["rope_theta"] ** (np.arange(0, size, 2, dtype=np.float32) / size)
    original, low, high = rope["original_max_position_embeddings"], rope["low_freq_factor"], rope["high_freq_factor"]
    out = []
    for wavelength in 2 * np.pi / frequencies:
        smooth = (original / wavelength - low) / (high - low)
        short, long = wavelength < original / high, wavelength > original / low
        out.append(1.0 if short else rope["factor"] if long else 1 / ((1 - smooth) / rope["factor"] + smooth))
    return np.array(out, dtype=np.float32)


def convert(folder, path):
    from safetensors.numpy import load_file

    config = json.loads((folder / "config.json").read_text())
    arch, heads, groups = config["model_type"], config["num_attention_heads"], config["num_key_value_heads"]
    w = gguf.GGUFWriter(str(path), arch)
    w.add_block_count(config["num_hidden_layers"])
    w.add_context_length(config["max_position_embeddings"])
    w.add_embedding_length(config["hidden_size"])
    w.add_feed_forward_length(config["intermediate_size"])
    w.add_head_count(heads)
    w.add_head_count_kv(groups)
    rope = config["rope_parameters"]
    w.add_rope_freq_base(rope["rope_theta"])
    w.add_layer_norm_rms_eps(config["rms_norm_eps"])
    w.add_file_type(gguf.LlamaFileType.ALL_F32)
    if config.get("head_dim"):
        w.add_key_length(config["head_dim"])
        w.add_value_length(config["head_dim"])
    if arch == "llama":
        w.add_vocab_size(config["vocab_size"])
        w.add_rope_dimension_count(config["head_dim"])
    w.add_bos_token_id(config["bos_token_id"])
    w.add_eos_token_id(config["eos_token_id"][0])
    w.add_eot_token_id(config["eos_token_id"][1])
    w.add_pad_token_id(config["pad_token_id"])
    if rope["rope_type"] == "llama3":
        w.add_tensor("rope_freqs.weight", rope_divisors(config, rope))
    names = gguf.get_tensor_name_map(next(k for k, v in gguf.MODEL_ARCH_NAMES.items() if v == arch), config["num_hidden_layers"])
    for part in sorted(folder.glob("*.safetensors")):
        for name, tensor in load_file(part).items():
            if arch == "llama" and (".q_proj." in name or ".k_proj." in name):
                tensor = permute(tensor, heads if ".q_proj." in name else groups)
            w.add_tensor(names.get_name(name, try_suffixes=(".weight", ".bias")), np.ascontiguousarray(tensor, dtype=np.float32))
    w.write_header_to_file()
    w.write_kv_data_to_file()
    w.write_tensors_to_file()
    w.close()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("blocks").add_argument("dir", type=pathlib.Path)
    command = commands.add_parser("convert")
    command.add_argument("folder", type=pathlib.Path)
    command.add_argument("file", type=pathlib.Path)
    args = parser.parse_args()
    if args.command == "blocks":
        make_blocks(args.dir)
    else:
        convert(args.folder, args.file)


if __name__ == "__main__":
    main()
