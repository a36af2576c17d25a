"""Make vectors.jsonl: what Python's own str and re give for the scorers' rules.

    python3 testdata/make_vectors.py > testdata/vectors.jsonl

Each line has an answer, a gold and the values of both scorers for that pair. The
answers are random mixtures of words, marks and white space that lower(), split(),
\\b and string.punctuation treat in unlike ways. Fixed seed, standard library only.
"""
import collections
import json
import random
import re
import string

PARTS = (
    "the a an The AN tHe theme na yes No noanswer paris Paris U.S. US 1,000 1000 x_y a_b é éa aé the\u0301 "
    "a\u0308 \u0130stanbul \u03a3\u0391\u03a3 \u039f\u0394\u039f\u03a3. STRASSE Stra\u00dfe \u01c4 \u00bd \u00b2a a\u00b2 \u4e2d\u6587 \u0e53 \u00aaa "
    "rock'n'roll \u201cthe\u201d the\u2013end A+ --- ) * `a` $5 1923 \u2019an"
).split()
GAPS = [" ", "  ", "\t", "\n", "\u00a0", "\u2003", "\u3000", "\x1c", "\x85", "\u200b", "", "-", "_", ", ", " the "]
PUNCTUATION = set(string.punctuation)


def squad_text(s):
    s = "".join(c for c in s.lower() if c not in PUNCTUATION)
    return " ".join(re.sub(r"\b(a|an|the)\b", " ", s).split())


def mem1_text(s):
    s = "".join(" " if c in PUNCTUATION else c for c in s.lower())
    return re.sub(r"\s+", " ", s).strip()


def f1(same, answer, gold):
    if same == 0:
        return 0.0
    precision, recall = same / len(answer), same / len(gold)
    return 2 * precision * recall / (precision + recall)


def squad_f1(a, g):
    if a != g and {a, g} & {"yes", "no", "noanswer"}:
        return 0.0
    a, g = a.split(), g.split()
    return f1(sum((collections.Counter(a) & collections.Counter(g)).values()), a, g)


def mem1_f1(a, g):
    a, g = set(a.split()), set(g.split())
    return f1(len(a & g), a, g)


def text(rng):
    return "".join(rng.choice(PARTS) + rng.choice(GAPS) for _ in range(rng.randint(0, 5)))


def main():
    rng = random.Random(5)
    for _ in range(400):
        gold = text(rng)
        answer = text(rng) if rng.random() < 0.3 else rng.choice(["", "the "]) + gold.swapcase() + rng.choice(["", text(rng)])
        s, t, m, n = squad_text(answer), squad_text(gold), mem1_text(answer), mem1_text(gold)
        print(json.dumps({
            "answer": answer, "gold": gold, "squad_text": s, "mem1_text": m,
            "squad": {"em": float(s == t), "f1": squad_f1(s, t)},
            "mem1": {"em": float(m == n), "f1": mem1_f1(m, n)},
        }))


if __name__ == "__main__":
    main()
