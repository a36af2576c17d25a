#!/usr/bin/env python3
"""Makes the GGUF files that model/gguf is tested with, and what they hold by the gguf package of llama.cpp.

    gguf_vectors.py DIR      (model/gguf/testdata was made by it)

Writes into DIR:

    blocks.gguf        a tensor of each quantised type, of hand-made and random blocks (all bits are tried: scales that are negative,
                       zero, tiny and large, quants at both ends), a few F32, F16 and BF16 values, and metadata of every kind
    blocks.f32         the values of its tensors, in the file's order, by gguf.quants.dequantize: float32, little-endian

Needs gguf and numpy: pip install gguf.
"""

import argparse
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


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("dir", type=pathlib.Path)
    args = parser.parse_args()
    path = args.dir / "blocks.gguf"
    write(path, np.random.default_rng(1))
    with np.errstate(all="ignore"):
        values = [gguf.quants.dequantize(t.data, t.tensor_type).astype("<f4").reshape(-1) for t in gguf.GGUFReader(str(path)).tensors]
    (args.dir / "blocks.f32").write_bytes(np.concatenate(values).tobytes())
    print(path.stat().st_size, (args.dir / "blocks.f32").stat().st_size, "bytes")


if __name__ == "__main__":
    main()
