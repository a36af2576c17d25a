#!/usr/bin/env python3
"""What `bench recall` prints, of bm25s with its own analysis: its tokenizer, English stop words, Snowball's stemmer.

    retrieval_quality.py --corpus CORPUS.jsonl.gz NAME=QUESTIONS ...

CORPUS has Search-R1's records; QUESTIONS are nq-open-oracle (gzipped lines), HotpotQA's official records or Hugging Face's, one
a line. Needs bm25s 0.3.16 and PyStemmer. k1 0.9, b 0.4, method lucene.
"""

import argparse
import gzip
import json

import bm25s
import Stemmer

KS = (1, 3, 10)


def lines(path):
    with (gzip.open if path.endswith(".gz") else open)(path, "rt", encoding="utf-8") as f:
        return [json.loads(line) for line in f]


def squeeze(text):
    return "".join(text.split())


def gold(q):
    """The titles and squeezed texts of a question's gold passages."""
    if "ctxs" in q:
        passages = [(c["title"], c["text"]) for c in q["ctxs"]]
        titles = [c["title"] for c in q["ctxs"] if c["isgold"]]
    elif isinstance(q["context"], dict):
        passages = [(t, "".join(s)) for t, s in zip(q["context"]["title"], q["context"]["sentences"])]
        titles = q["supporting_facts"]["title"]
    else:
        passages = [(t, "".join(s)) for t, s in q["context"]]
        titles = [t for t, _ in q["supporting_facts"]]
    return {(t, next((squeeze(text) for title, text in passages if title == t), None)) for t in titles}


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--corpus", required=True)
    p.add_argument("sources", nargs="+")
    o = p.parse_args()
    documents = []
    for r in lines(o.corpus):
        title, _, text = r["contents"].partition("\n")
        documents.append((title[1:-1] if title[:1] == title[-1:] == '"' else title, text))
    stem = Stemmer.Stemmer("english")
    analyse = lambda texts: bm25s.tokenize(texts, stopwords="en", stemmer=stem, show_progress=False)
    model = bm25s.BM25(method="lucene", k1=0.9, b=0.4)
    model.index(analyse([f"{t}\n{x}" for t, x in documents]), show_progress=False)
    squeezed = [(t, squeeze(x)) for t, x in documents]
    for source in o.sources:
        name, path = source.split("=", 1)
        questions = [(q["question"], g) for q in lines(path) if (g := gold(q))]
        found, _ = model.retrieve(analyse([q for q, _ in questions]), k=KS[-1], show_progress=False)
        recall, mrr = dict.fromkeys(KS, 0.0), 0.0
        for (_, want), hits in zip(questions, found):
            ranks, seen = [], set()
            for rank, hit in enumerate(hits):
                title, text = squeezed[hit]
                of = next((g for g in want if g[0] == title and g[1] in (None, text) and g not in seen), None)
                if of:
                    seen.add(of)
                    ranks.append(rank)
            mrr += 1 / (ranks[0] + 1) / len(questions) if ranks else 0
            for k in KS:
                recall[k] += sum(r < k for r in ranks) / len(want) / len(questions)
        print(f"{name:<12} {len(questions):6d} questions", *(f" recall@{k} {recall[k]:.3f}" for k in KS), f" MRR {mrr:.3f}")


if __name__ == "__main__":
    main()
