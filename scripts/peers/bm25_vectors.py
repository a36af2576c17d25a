"""Writes the rankings of bm25s (method lucene) and rank-bm25 that retriever's tests compare with.

    python scripts/peers/bm25_vectors.py CORPUS.jsonl.gz QUESTIONS.jsonl.gz OUT.json.gz

CORPUS has Search-R1's records {id, contents}; QUESTIONS has one record with a field question a
line, of which every ninth is asked. Texts are lowered and parted at white space. Only places of
questions, IDs of documents and scores are written. Needs bm25s 0.3.16 and rank-bm25 0.2.2.
"""

import gzip
import json
import sys

import bm25s
import numpy as np
from rank_bm25 import BM25Okapi

TOP, EVERY = 12, 9


def records(path):
    with gzip.open(path, "rt", encoding="utf-8") as f:
        return [json.loads(line) for line in f]


def best(scores, ids):
    """The highest scores with their IDs; equal scores by ID."""
    order = sorted(np.flatnonzero(scores), key=lambda i: (-scores[i], ids[i]))[:TOP]
    return [[ids[i], float(scores[i])] for i in order]


def main():
    corpus, questions = records(sys.argv[1]), records(sys.argv[2])
    ids = [r["id"] for r in corpus]
    texts = [contents(r).lower().split() for r in corpus]
    asked = list(range(0, len(questions), EVERY))
    queries = {i: questions[i]["question"].lower().split() for i in asked}

    lucene = bm25s.BM25(method="lucene", k1=0.9, b=0.4, dtype="float64")
    lucene.index(texts, show_progress=False)
    okapi = BM25Okapi(texts, k1=1.5, b=0.75, epsilon=0.25)
    known = okapi.idf
    out = {
        "lucene": {"k1": 0.9, "b": 0.4, "rankings": {i: best(lucene.get_scores(q), ids) for i, q in queries.items()}},
        "okapi": {
            "k1": 1.5,
            "b": 0.75,
            "epsilon": 0.25,
            "rankings": {i: best(okapi.get_scores([w for w in q if w in known]), ids) for i, q in queries.items()},
        },
    }
    with gzip.GzipFile(sys.argv[3], "wb", mtime=0) as f:
        f.write(json.dumps(out, separators=(",", ":")).encode())


def contents(record):
    """The title without its quotes, and the text, as the index joins them."""
    title, _, text = record["contents"].partition("\n")
    if len(title) > 1 and title[0] == title[-1] == '"':
        title = title[1:-1]
    return title + "\n" + text


if __name__ == "__main__":
    main()
