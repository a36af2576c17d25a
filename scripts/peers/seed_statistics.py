"""Reference statistics for package results, by scipy and pandas.

    python3 scripts/peers/seed_statistics.py results/testdata/evidence > results/testdata/statistics.json

vectors: lists of drawn numbers with scipy's t interval and paired t-test of each.
evidence: of an outcome's folder, read by pandas from the task rows alone, each
variant's mean over seeds with its t interval, and its difference from ppo with
the paired t-test. Then tables/*.csv are read back by pandas: the number of rows
and columns of each, and of the columns that hold nothing but numbers.
"""

import glob
import json
import math
import os
import sys

import numpy
import pandas
from scipy import stats

METRICS = ["em", "f1", "em_mem1", "f1_mem1", "peak_context", "dependency", "inference_seconds"]


def interval(values):
    """Mean, low, high of the 95 % t interval."""
    low, high = stats.t.interval(0.95, len(values) - 1, loc=numpy.mean(values), scale=stats.sem(values))
    return [float(numpy.mean(values)), float(low), float(high)]


def paired(base, new):
    test = stats.ttest_rel(new, base)
    span = test.confidence_interval(0.95)
    return {"difference": [float(numpy.mean(numpy.subtract(new, base))), float(span.low), float(span.high)],
            "t": float(test.statistic), "p": float(test.pvalue)}


def vectors():
    rng = numpy.random.default_rng(1)
    cases = []
    for n in 2, 3, 5, 5, 10, 40:
        base = rng.normal(0.4, 0.05, n)
        new = base + rng.normal(0.03, 0.04, n)
        cases.append({"base": base.tolist(), "new": new.tolist(), "interval": interval(base), **paired(base, new)})
    far = cases[3]["base"]
    new = [x + 10 + 0.01 * i for i, x in enumerate(far)]
    return cases + [{"base": far, "new": new, "interval": interval(far), **paired(far, new)}]


def evidence(folder):
    rows = pandas.read_json(os.path.join(folder, "tasks.jsonl.gz"), lines=True)
    means = rows.groupby(["horizon", "variant", "seed"])[METRICS].mean()
    out = []
    for (horizon, variant), seeds in means.groupby(level=[0, 1]):
        if len(seeds) < 2:
            continue
        base = means.loc[(horizon, "ppo")]
        seeds = seeds.droplevel([0, 1])
        common = seeds.index.intersection(base.index)
        for metric in METRICS:
            case = {"horizon": horizon, "variant": variant, "metric": metric, "interval": interval(seeds[metric])}
            if variant != "ppo":
                case |= paired(base.loc[common, metric], seeds.loc[common, metric])
                case["percent"] = 100 * (seeds.loc[common, metric].mean() / base.loc[common, metric].mean() - 1)
            out.append(case)
    return out


def tables(folder):
    out = {}
    for path in sorted(glob.glob(os.path.join(folder, "tables", "*.csv"))):
        table = pandas.read_csv(path)
        numbers = [c for c in table.columns if pandas.api.types.is_numeric_dtype(table[c].dtype) and table[c].dtype != bool]
        out[os.path.basename(path)] = {"rows": len(table), "columns": len(table.columns), "numbers": len(numbers)}
    return out


if __name__ == "__main__":
    result = {"vectors": vectors(), "evidence": evidence(sys.argv[1]), "tables": tables(sys.argv[1])}
    assert not any(math.isnan(x) for c in result["vectors"] + result["evidence"] for x in c["interval"])
    json.dump(result, sys.stdout, indent=1)
    print()
