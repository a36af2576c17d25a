#!/usr/bin/env python3
"""Makes the vectors of model/tokenizer's byte-level BPE, by Hugging Face's tokenizers (0.23).

    tokenizer_vectors.py small DIR             (trains DIR/small_*.json and writes DIR/small.json.gz)
    tokenizer_vectors.py published ASSETS DIR  (writes DIR/published.json.gz)
    tokenizer_vectors.py speed FILE TEXT       (tokens and MB/s of one thread, in the process's CPU time)
    tokenizer_vectors.py encode FILE < strings (ids of a JSON list of strings; the Go tests call it)

DIR is model/tokenizer/testdata, ASSETS what scripts/assets.sh fetches. A file of vectors holds the strings once, and for each tokenizer:

    text      ids of each string, by its place, special tokens not found in it (encode_special_tokens)
    special   ids where they are found, if others
    decoded   what text decodes to, if not the string; decoded_special likewise of special
    decode    [ids, text]: ids as no text gives them, cut inside characters or at random
    blocks    CRC-32 of the ids of every character in several contexts, by blocks of 1024 characters (block_texts): each as little-endian
              uint32, its end as 2**32-1. Of DIR/small_classes.json with the pre_tokenizer and the normalizer given beside it

A tokenizer with "base" has what it does not list from another. The smollm2 reference is built of the GGUF file's tokens and merges, read
by llama.cpp's gguf, with the digits split off as the upstream tokenizer.json is published to do; that file itself was not to be had, so
it was not compared with.

Needs tokenizers; `published` also gguf.
"""

import argparse
import gzip
import json
import pathlib
import random
import struct
import sys
import time
import zlib

from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers

from tokenizer_strings import CORPUS, strings

SPLIT = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|%s| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+")
PLANES = [0, 1, 2, 3, 14]
BLOCK = 1024


def split_at(digits):
    return pre_tokenizers.Sequence([
        pre_tokenizers.Split(Regex(SPLIT % digits), behavior="isolated"),
        pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
    ])


def digits_alone():
    return pre_tokenizers.Sequence([
        pre_tokenizers.Digits(individual_digits=True),
        pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True),
    ])


def block_texts(block):
    """The texts of a block's characters: among letters, digits and spaces, and between marks that NFC orders and joins. Of the planes
    of ideographs each eighth character."""
    for code in range(block * BLOCK, (block + 1) * BLOCK):
        if not 0xD800 <= code < 0xE000 and (not 0x20000 <= code < 0x40000 or code % 8 == 0):
            c = chr(code)
            yield f"a{c}b {c} 1{c}1!{c}!\n{c}\n {c}'s e{c}\u0301 {c}\u0323\u3099{c}"


def block_crc(tok, block):
    crc = 0
    for enc in tok.encode_batch(list(block_texts(block)), add_special_tokens=False):
        crc = zlib.crc32(struct.pack(f"<{len(enc.ids) + 1}I", *enc.ids, 2**32 - 1), crc)
    return crc


def vectors(tok, texts, rows, rng):
    """What one tokenizer does: the docstring at the top has the fields."""
    out = {"text": {}, "special": {}, "decoded": {}, "decoded_special": {}, "decode": []}
    for i in rows:
        tok.encode_special_tokens = True
        ids = tok.encode(texts[i], add_special_tokens=False).ids
        tok.encode_special_tokens = False
        special = tok.encode(texts[i], add_special_tokens=False).ids
        out["text"][i] = ids
        if (back := tok.decode(ids, skip_special_tokens=False)) != texts[i]:
            out["decoded"][i] = back
        if special != ids:
            out["special"][i] = special
            if (back := tok.decode(special, skip_special_tokens=False)) != texts[i]:
                out["decoded_special"][i] = back
    size = tok.get_vocab_size()
    for i in rng.sample(sorted(rows), 100):
        ids = out["text"][i][:40]
        a = rng.randrange(len(ids) + 1)
        cut = ids[a : rng.randrange(a, len(ids) + 1)]
        out["decode"].append([cut, tok.decode(cut, skip_special_tokens=False)])
    for _ in range(100):
        ids = [rng.randrange(size + 3) if rng.random() < 0.7 else rng.randrange(256) for _ in range(rng.randrange(1, 12))]
        out["decode"].append([ids, tok.decode(ids, skip_special_tokens=False)])
    return out


def against(out, base, name):
    """out without what base has too."""
    new = {"base": name}
    for field, of in out.items():
        if field == "decode":
            new[field] = of
        else:
            new[field] = {k: v for k, v in of.items() if base[field].get(k) != v}
            gone = [k for k in base[field] if k not in of]
            if gone:
                new.setdefault("without", {})[field] = gone
    return new


def write(path, texts, tokenizers):
    data = json.dumps({"strings": texts, "tokenizers": tokenizers}, ensure_ascii=True, separators=(",", ":"), sort_keys=False).encode()
    path.write_bytes(gzip.compress(data, 9, mtime=0))
    print(path, len(texts), "strings", path.stat().st_size, "bytes")


def smollm2(path):
    import gguf

    fields = gguf.GGUFReader(str(path)).fields
    tokens = fields["tokenizer.ggml.tokens"].contents()
    types = fields["tokenizer.ggml.token_type"].contents()
    merges = [tuple(m.split(" ")) for m in fields["tokenizer.ggml.merges"].contents()]
    tok = Tokenizer(models.BPE(vocab={t: i for i, t in enumerate(tokens)}, merges=merges))
    tok.pre_tokenizer, tok.decoder = digits_alone(), decoders.ByteLevel()
    tok.add_special_tokens([AddedToken(t, special=True, normalized=False) for t, kind in zip(tokens, types) if kind == 3])
    return tok


def published(assets, folder):
    rng, texts = random.Random(2), strings()
    names = ["qwen2.5", "qwen3", "llama3"]
    toks = {n: Tokenizer.from_file(str(assets / "tokenizers" / n / "tokenizer.json")) for n in names}
    toks["smollm2"] = smollm2(next((assets / "SmolLM2-135M-Instruct").glob("*.gguf")))
    out = {n: vectors(t, texts, range(len(texts)), rng) for n, t in toks.items()}
    out["qwen3"] = against(out["qwen3"], out["qwen2.5"], "qwen2.5")
    write(folder / "published.json.gz", texts, out)


def train(pre, normalizer=None, ignore_merges=False):
    tok = Tokenizer(models.BPE(ignore_merges=ignore_merges))
    tok.pre_tokenizer, tok.decoder = pre, decoders.ByteLevel()
    if normalizer:
        tok.normalizer = normalizer
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    tok.train_from_iterator(CORPUS, trainers.BpeTrainer(vocab_size=256 + 300, initial_alphabet=alphabet, show_progress=False))
    return tok


def small_tokenizers():
    """Small ones, like the published in their parts, and two of parts that those lack."""
    special = [AddedToken(t, special=True, normalized=False) for t in ("<|endoftext|>", "<|im_start|>", "<|im_end|>")]
    qwen = train(split_at(r"\p{N}"), normalizers.NFC())
    qwen.add_special_tokens(special)
    qwen.add_tokens([AddedToken(t, normalized=False) for t in ("<tool_call>", "</tool_call>", "<think>", "</think>")])
    qwen.post_processor = processors.ByteLevel(add_prefix_space=False, trim_offsets=False, use_regex=False)

    llama = train(split_at(r"\p{N}{1,3}"), ignore_merges=True)
    vocab, merges = (lambda m: (m["vocab"], m["merges"]))(json.loads(llama.to_str())["model"])
    # tokens that no merges lead to: taken whole, as a word, only because merges are ignored
    for token in ("Ġwhole", "qqzz", "123", "Ã¤Ã¶", "ĊĊĊ"):
        vocab.setdefault(token, len(vocab))
    whole = Tokenizer(models.BPE(vocab=vocab, merges=[tuple(m) for m in merges], ignore_merges=True))
    whole.pre_tokenizer, whole.decoder = llama.pre_tokenizer, llama.decoder
    whole.add_special_tokens([AddedToken(t, special=True, normalized=False) for t in ("<|begin_of_text|>", "<|eot_id|>", "<|start_header_id|>", "<|end_header_id|>")])
    bos = ("<|begin_of_text|>", whole.token_to_id("<|begin_of_text|>"))
    whole.post_processor = processors.Sequence([
        processors.ByteLevel(trim_offsets=False),
        processors.TemplateProcessing(single="<|begin_of_text|> $A", pair="<|begin_of_text|> $A <|begin_of_text|>:1 $B:1", special_tokens=[bos]),
    ])

    smollm = train(digits_alone())
    smollm.add_special_tokens(special)

    gpt2 = train(pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True))
    gpt2.add_special_tokens(special[:1])
    gpt2.post_processor = processors.ByteLevel(trim_offsets=False)

    added = train(split_at(r"\p{N}"), normalizers.NFC())
    added.add_special_tokens([
        AddedToken("<|endoftext|>", special=True, normalized=False),
        AddedToken("<|left|>", special=True, lstrip=True, normalized=False),
        AddedToken("<|both|>", special=True, lstrip=True, rstrip=True, normalized=False),
        AddedToken("<|x|>", special=True, normalized=True),
    ])
    added.add_tokens([
        AddedToken("|>", normalized=False),  # stands inside the special ones
        AddedToken("<right>", rstrip=True, normalized=False),
        AddedToken("<both>", lstrip=True, rstrip=True, normalized=True),
        AddedToken("caf\u00e9s", normalized=True),
        AddedToken("e\u0301e\u0301", normalized=True),  # found as its NFC
        AddedToken("a\u0308\u0308", normalized=False),  # found as it stands, before NFC
        AddedToken("<t", normalized=False),
        AddedToken("<to", normalized=False),
        AddedToken("<tool>", normalized=False),
        AddedToken("  ", normalized=False),
    ])

    single = train(split_at(r"\p{N}"))
    single.add_tokens([
        AddedToken("<w>", single_word=True, normalized=False),
        AddedToken("word", single_word=True, normalized=False),
        AddedToken("strip", single_word=True, lstrip=True, rstrip=True, normalized=False),
    ])
    return {"qwen": qwen, "llama3": whole, "smollm2": smollm, "gpt2": gpt2, "added": added, "single_word": single}


def classes(folder):
    """Vectors of which class pre-tokenizers see in each character, and of NFC, by a tokenizer that shows it: it joins the first and the
    last byte of a character to its neighbours of each kind, if they are of one word."""
    alphabet = bytes_alphabet()
    vocab, merges = {c: i for i, c in enumerate(alphabet)}, []
    for near in (alphabet[ord(c)] for c in "a1 !\n"):
        for pair in [(near, alphabet[b]) for b in range(0xC2, 0xF5)] + [(alphabet[b], near) for b in range(0x80, 0xC0)]:
            merges.append(pair)
            vocab["".join(pair)] = len(vocab)
    tok, out = Tokenizer(models.BPE(vocab=vocab, merges=merges)), {}
    tok.pre_tokenizer, tok.decoder = digits_alone(), decoders.ByteLevel()
    tok.save(str(folder / "small_classes.json"), pretty=False)
    for name, pre in {
        "qwen": split_at(r"\p{N}"), "llama3": split_at(r"\p{N}{1,3}"), "smollm2": digits_alone(), "gpt2": pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True),
    }.items():
        tok.pre_tokenizer = pre
        if name == "qwen":
            tok.normalizer = normalizers.NFC()
        else:
            tok.normalizer = None
        data = json.loads(tok.to_str())
        blocks = {b: block_crc(tok, b) for p in PLANES for b in range(p * 64, p * 64 + 64)}
        out["classes_" + name] = {"pre_tokenizer": data["pre_tokenizer"], "normalizer": data["normalizer"], "blocks": blocks}
    return out


def bytes_alphabet():
    """GPT-2's character of each byte."""
    plain = [b for b in range(256) if 0x21 <= b <= 0x7E or 0xA1 <= b <= 0xAC or 0xAE <= b]
    others = iter(range(256, 512))
    return [chr(b) if b in plain else chr(next(others)) for b in range(256)]


def small(folder):
    rng, texts = random.Random(3), strings()
    toks, out = small_tokenizers(), {}
    for name, tok in toks.items():
        data = json.loads(tok.to_str(pretty=False))
        if name in ("smollm2", "added"):  # as the files before tokenizers 0.20
            data["model"]["merges"] = [" ".join(m) for m in data["model"]["merges"]]
        (folder / f"small_{name}.json").write_text(json.dumps(data, ensure_ascii=False, separators=(",", ":")) + "\n")
        tok = Tokenizer.from_file(str(folder / f"small_{name}.json"))
        wanted = [i for i, s in enumerate(texts) if (len(s) < 300 and (i % 5 == 0 or any(t in s for t in ("<w>", "word", "strip", "<|", "|>", "e\u0301e\u0301", "caf", "<t")))) or len(s) > 4000]
        out[name] = vectors(tok, texts, wanted, rng)
    used = sorted({i for v in out.values() for i in v["text"]})
    place = {old: new for new, old in enumerate(used)}
    for v in out.values():
        for field in ("text", "special", "decoded", "decoded_special"):
            v[field] = {place[i]: of for i, of in v[field].items()}
    write(folder / "small.json.gz", [texts[i] for i in used], out | classes(folder))


def speed(file, text):
    tok, data = Tokenizer.from_file(str(file)), text.read_text()
    lines = data.splitlines(keepends=True)
    start = time.process_time()
    count = sum(len(tok.encode(line, add_special_tokens=False).ids) for line in lines)
    took = time.process_time() - start
    print(f"{count} tokens, {len(data.encode()) / took / 1e6:.2f} MB/s")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    sub = parser.add_subparsers(dest="what", required=True)
    sub.add_parser("small").add_argument("dir", type=pathlib.Path)
    p = sub.add_parser("published")
    p.add_argument("assets", type=pathlib.Path)
    p.add_argument("dir", type=pathlib.Path)
    p = sub.add_parser("speed")
    p.add_argument("file", type=pathlib.Path)
    p.add_argument("text", type=pathlib.Path)
    sub.add_parser("encode").add_argument("file", type=pathlib.Path)
    args = parser.parse_args()
    if args.what == "small":
        small(args.dir)
    elif args.what == "published":
        published(args.assets, args.dir)
    elif args.what == "speed":
        speed(args.file, args.text)
    else:
        tok = Tokenizer.from_file(str(args.file))
        json.dump([tok.encode(s, add_special_tokens=False).ids for s in json.load(sys.stdin)], sys.stdout)


if __name__ == "__main__":
    main()
