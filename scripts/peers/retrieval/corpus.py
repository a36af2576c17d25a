"""Writes a generated collection with natural statistics of terms, and queries for it.

    python corpus.py DOCUMENTS FOLDER

FOLDER gets corpus.jsonl ({"id", "title", "text"}) and queries.txt, one a line. Words are numbers
of a Zipf-Mandelbrot law, p(r) ~ 1 / (r + 2.7) ** 1.07, over 4 million types, so that the
vocabulary grows with the collection as in text. A passage has 60 to 120 words, of which a third
come from its own topic of 12 words, so that words repeat within passages as in text. A query takes 2
to 4 words of a passage's topic and 2 to 4 of the law's, which are mostly the most frequent words.
"""

import json
import sys

import numpy as np

TYPES, QUERIES, SEED = 4_000_000, 1_000, 20


def main():
    documents, folder = int(sys.argv[1]), sys.argv[2]
    rng = np.random.default_rng(SEED)
    law = np.cumsum(1 / (np.arange(TYPES) + 2.7) ** 1.07)
    law /= law[-1]

    def draw(n):
        return np.searchsorted(law, rng.random(n))

    every = max(documents // QUERIES, 1)
    queries = []
    with open(f"{folder}/corpus.jsonl", "w") as out:
        for d in range(documents):
            length = int(rng.integers(60, 121))
            topic = draw(12)
            own = rng.random(length) < 1 / 3
            words = np.where(own, topic[rng.integers(0, 12, length)], draw(length))
            text = " ".join(map(str, words))
            out.write(json.dumps({"id": str(d), "title": "", "text": text}) + "\n")
            if d % every == 0 and len(queries) < QUERIES:
                own, other = int(rng.integers(2, 5)), int(rng.integers(2, 5))
                queries.append(" ".join(map(str, np.concatenate([topic[rng.choice(12, own, replace=False)], draw(other)]))))
    with open(f"{folder}/queries.txt", "w") as out:
        out.write("\n".join(queries) + "\n")


if __name__ == "__main__":
    main()
