#!/usr/bin/env python3
"""Builds one collection with retriever, Lucene, bm25s and bleve's own scoring, and times their searches.

    retrieval_speed.py [--documents N,N] [--rounds R] [--seconds S] [--peers ours,lucene,bm25s,bleve] --lucene JARS --out FILE

The collection is made by retrieval/corpus.py; all engines get the same terms, parted at white space, and BM25 with
k1 0.9 and b 0.4 (bleve has its own). What is built in a --work folder stays there and is not built again. For each: documents a second, peak memory and bytes of the build; top-3 queries
a second of clock and of CPU, at 1 and 2 threads, medians of R rounds in turns, after warming up; the share of queries whose
top 3 are, in order, retriever's. bleve, whose searches of a million documents take long, is timed
in one round. JARS are lucene-core and lucene-analysis-common 9.12.3 (Maven Central), with a colon
between. Needs Go, a JDK 17 and, in the Python that runs this, bm25s 0.3.16 and numba. Writes FILE as JSON and prints a table.
"""

import argparse
import json
import os
import pathlib
import platform
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
K = "3"


class Engine:
    """An engine as commands that print one JSON object, searched in at most so many rounds."""

    def __init__(self, name, build, search, index):
        self.name, self.build, self.search, self.index = name, build, search, index
        self.rounds = 1 if name == "bleve" else sys.maxsize


def measured(command):
    """The object that a command prints, with its peak memory and CPU time."""
    before = time.time()
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    out = process.stdout.read()
    _, status, usage = os.wait4(process.pid, 0)
    if status:
        sys.exit(f"{' '.join(command)}: status {status}")
    return json.loads(out) | {
        "peak_mib": round(usage.ru_maxrss / 1024),
        "process_cpu_seconds": round(usage.ru_utime + usage.ru_stime, 1),
        "process_seconds": round(time.time() - before, 1),
    }


def size(path):
    return sum(f.stat().st_size for f in path.rglob("*") if f.is_file())


def engines(folder, jars, names):
    ours = folder / "retrieval"
    subprocess.run(["go", "build", "-o", ours, "./scripts/peers/retrieval"], cwd=HERE.parent.parent, check=True)
    corpus, queries = str(folder / "corpus.jsonl"), str(folder / "queries.txt")
    all_ = []
    for name in names:
        index = folder / name
        if name == "lucene":
            subprocess.run(["javac", "-cp", jars, "-d", folder, HERE / "retrieval" / "Lucene.java"], check=True)
            run = ["java", "-Xmx2g", "-cp", f"{jars}:{folder}", "Lucene"]
            build, search = [*run, "build", corpus, str(index)], [*run, "search", str(index), queries, K]
        elif name == "bm25s":
            run = [sys.executable, str(HERE / "retrieval" / "bm25s_speed.py")]
            build, search = [*run, "build", corpus, str(index)], [*run, "search", str(index), queries, K]
        else:
            formula = "bleve" if name == "bleve" else "lucene"
            build, search = [str(ours), "build", formula, corpus, str(index)], [str(ours), "search", str(index), queries, K]
        all_.append(Engine(name, build, search, index))
    return all_


def built(e, documents):
    """The row of an engine's build, made once."""
    record = e.index.with_suffix(".build.json")
    if not record.exists():
        shutil.rmtree(e.index, ignore_errors=True)
        row = {"engine": e.name, "documents": documents, "build": measured(e.build), "bytes": size(e.index)}
        record.write_text(json.dumps(row))
    row = json.loads(record.read_text())
    print(row, file=sys.stderr, flush=True)
    return row


def compare(documents, folder, o):
    """One collection: a row for each engine."""
    folder.mkdir(parents=True, exist_ok=True)
    subprocess.run([sys.executable, HERE / "retrieval" / "corpus.py", str(documents), folder], check=True)
    list_ = engines(folder, o.lucene, o.peers.split(","))
    rows, found = {e.name: built(e, documents) for e in list_}, {}
    times = {(e.name, t): [] for e in list_ for t in (1, 2)}
    for round_ in range(o.rounds):
        for e in (e for e in list_ if round_ < e.rounds):
            for threads in (1, 2):
                got = measured([*e.search, str(o.seconds), str(threads), str(folder / "rankings")])
                print(documents, round_, e.name, threads, got, file=sys.stderr, flush=True)
                times[e.name, threads].append(got)
                found[e.name] = (folder / "rankings").read_text().splitlines()
    for e in list_:
        row = rows[e.name]
        for threads in (1, 2):
            of = times[e.name, threads]
            row[f"queries_per_second_{threads}"] = round(statistics.median(t["queries"] / t["seconds"] for t in of))
            row[f"queries_per_cpu_second_{threads}"] = round(statistics.median(t["queries"] / t["cpu_seconds"] for t in of))
        row["search_peak_mib"] = max(t["peak_mib"] for t in times[e.name, 1])
        same = [a == b for a, b in zip(found[e.name], found[list_[0].name])]
        row["same_top_3"] = round(sum(same) / len(same), 4)
    return list(rows.values())


def table(rows):
    print("| engine | documents | build documents/s | build peak MiB | bytes a document | queries/s 1 thread | 2 threads | queries/CPU-s | same top 3 |")
    print("|---|---|---|---|---|---|---|---|---|")
    for r in rows:
        build = r["documents"] / r["build"]["seconds"]
        print(
            f"| {r['engine']} | {r['documents']} | {build:.0f} | {r['build']['peak_mib']} | {r['bytes'] / r['documents']:.0f} | "
            f"{r['queries_per_second_1']} | {r['queries_per_second_2']} | {r['queries_per_cpu_second_1']} | {100 * r['same_top_3']:.1f} % |"
        )


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--documents", default="10000,100000,1000000")
    p.add_argument("--rounds", type=int, default=3)
    p.add_argument("--seconds", type=float, default=5)
    p.add_argument("--peers", default="ours,lucene,bm25s,bleve")
    p.add_argument("--lucene", default="", help="jars of Lucene, with a colon between")
    p.add_argument("--work", default=None, help="folder where collections and indexes stay; default: a temporary one")
    p.add_argument("--out", required=True)
    o = p.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        work = pathlib.Path(o.work or temporary)
        rows = [row for n in o.documents.split(",") for row in compare(int(n), work / n, o)]
    commit = subprocess.run(["git", "rev-parse", "--short", "HEAD"], cwd=HERE, capture_output=True, text=True).stdout.strip()
    about = {"command": " ".join(["retrieval_speed.py", *sys.argv[1:]]), "commit": commit, "machine": f"{os.cpu_count()} cores, {cpu()}"}
    pathlib.Path(o.out).write_text(json.dumps(about | {"rows": rows}, indent=1) + "\n")
    table(rows)


def cpu():
    with open("/proc/cpuinfo") as f:
        for line in f:
            if line.startswith("model name"):
                return line.split(":")[1].strip()
    return platform.machine()


if __name__ == "__main__":
    main()
