#!/usr/bin/env python3
"""What share of the int8 peak the screen of the CPU reaches in batches, for each instruction set: 1000 queries, k = 10, dot, beside
a plain loop of the same instruction over registers, by turns; prints the table of bench/results/cpu-screen-peak.csv.

    bench/search/screen_cpu.py BUILD [--sets amx,avx512,avx2] [--shapes 1000000x128,200000x768] [--kinds normal,clustered] [--rounds 5]
                        [--cores 0,2]

BUILD is configured with -DWARPWAVE_BENCH=ON. Two threads, each pinned to its core. In virtual machines two cores in a row may be
threads of one: --cores says which to use, and the peak shows whether they are. Leading codes exclude some rows before the rest is
multiplied, so the share of clustered rows may pass what the instruction can do.
"""
import argparse
import os
import statistics
import sys
import time

import numpy as np

import contestants
import datasets

METRIC = "dot"


def measure(build, rows, queries, rounds, threads):
    """In a process of its own: the library and the floor choose their instruction set once."""
    player = contestants.Screened(build)
    player.add(METRIC, rows)
    ids, scores = np.empty((len(queries), contestants.K), np.int64), np.empty((len(queries), contestants.K), np.float32)
    seconds, rates = [], []
    for turn in range(rounds + 1):
        rates.append(player.floor.bench_int8_rate(threads))
        begin = time.perf_counter()
        player.search(queries, ids, scores)
        if turn > 0:  # the first finds its memory
            seconds.append(time.perf_counter() - begin)
    pairs = rows.shape[0] * len(queries)
    found, peak = statistics.median(seconds), 2e-9 * statistics.median(rates)
    speed = 2e-9 * pairs * rows.shape[1] / found
    return (f"{player.floor.bench_int8_name().decode()} | {found * 1e3:.1f} ms | {speed:,.0f} | {peak:,.0f} | {speed / peak:.0%} | "
            f"{player.stats.rows_kept / pairs:.3%} | {player.stats.fallback_queries}")


def in_child(call):
    """What `call` returns, a line of text, from a process of its own that shares what is here already."""
    sys.stdout.flush()
    reading, writing = os.pipe()
    if os.fork() == 0:
        os.write(writing, call().encode())
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as file:
        line = file.read()
    os.wait()
    return line


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build")
    parser.add_argument("--sets", default="amx,avx512,avx2")
    parser.add_argument("--shapes", default="1000000x128,200000x768")
    parser.add_argument("--kinds", default="normal,clustered")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--cores")
    options = parser.parse_args()
    if options.cores:
        os.sched_setaffinity(0, {int(core) for core in options.cores.split(",")})
    threads = min(2, len(os.sched_getaffinity(0)))
    os.environ["WARPWAVE_THREADS"] = str(threads)
    print("| rows | kind | instructions | 1000 queries | GOP/s | peak, GOP/s | share | kept | queries that fell back |")
    print("|---|---|---|---|---|---|---|---|---|")
    for shape in options.shapes.split(","):
        count, dim = (int(part) for part in shape.split("x"))
        for kind in options.kinds.split(","):
            rows, queries = datasets.make_rows(kind, count, dim), datasets.make_queries(kind, contestants.QUERIES, dim)
            for name in options.sets.split(","):
                os.environ["WARPWAVE_ISA"] = name
                line = in_child(lambda: measure(options.build, rows, queries, options.rounds, threads))
                print(f"| {count:,} x {dim} | {kind} | {line} |", flush=True)


if __name__ == "__main__":
    main()
