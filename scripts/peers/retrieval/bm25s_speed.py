"""Indexes a collection with bm25s and times its numba backend.

    python bm25s_speed.py build CORPUS INDEX
    python bm25s_speed.py search INDEX QUERIES K SECONDS THREADS RANKINGS

Prints one JSON object. Terms are parted at white space; method lucene, k1 0.9, b 0.4.
"""

import json
import sys
import time

import bm25s
import numpy as np


def build(corpus, index):
    start = time.perf_counter()
    vocabulary, ids, n = {}, [], 0
    with open(corpus) as f:
        for line in f:
            words = json.loads(line)["text"].split()
            ids.append(np.fromiter((vocabulary.setdefault(w, len(vocabulary)) for w in words), dtype=np.int32, count=len(words)))
            n += 1
    model = bm25s.BM25(method="lucene", k1=0.9, b=0.4)
    model.index(bm25s.tokenization.Tokenized(ids=ids, vocab=vocabulary), show_progress=False)
    model.save(index)
    print(json.dumps({"documents": n, "seconds": round(time.perf_counter() - start, 2)}))


def search(index, queries, k, seconds, threads, rankings):
    model = bm25s.BM25.load(index, mmap=False)
    model.backend = "numba"
    model.activate_numba_scorer()
    with open(queries) as f:
        terms = [[w for w in line.split() if w in model.vocab_dict] for line in f]
    options = dict(k=k, show_progress=False, backend_selection="numba", n_threads=threads, sorted=True)
    warm = model.retrieve(terms, **options)
    with open(rankings, "w") as f:
        f.writelines(" ".join(map(str, row)) + " \n" for row in warm.documents)
    n, start, cpu = 0, time.perf_counter(), time.process_time()
    while time.perf_counter() - start < seconds:
        model.retrieve(terms, **options)
        n += len(terms)
    used = {"seconds": round(time.perf_counter() - start, 3), "cpu_seconds": round(time.process_time() - cpu, 3)}
    print(json.dumps({"queries": n, **used}))


if sys.argv[1] == "build":
    build(*sys.argv[2:4])
else:
    index, queries, k, seconds, threads, rankings = sys.argv[2:8]
    search(index, queries, int(k), float(seconds), int(threads), rankings)
