#!/usr/bin/env python3
"""The model of docs/design/scale.md: prints its tables. Constants are measured (bench/results, docs/guide/memory.md, bench/search/ranks.c) or,
where it says so, assumed."""
import math

CARD_BYTES = 0.9 * 139 * 2**30  # of an H200's 139 GiB, for rows; the rest is for searching
CARDS_A_NODE = 8
QUERY_FIXED_S = 27e-6  # one query: 0.069 ms over 1M x 128, 0.266 ms over 1M x 768, as a line over the bytes of the codes
CODE_BYTES_S = 3.25e12
MACS_S = {128: 2.76e14, 768: 2.58e14}  # 1000 queries over 10M x 128: 4.632 ms; 10,000 over 1M x 768: 29.747 ms
KEY_S = 4.7e-9  # pairwise merge, a key, one core of a Neoverse-V1
KEY_BYTES = 16
MESSAGE_S = 5e-6  # assumed: one message between nodes
NETWORK_BYTES_S = 25e9  # assumed: 200 Gb/s a node
AGREEMENTS = 3  # of a search, each log2(ranks) messages
FILE_BYTES_S = 5e9  # assumed: a node reads so much from the file system
DOLLARS_HOUR = 3.0  # assumed: a card
HOURS_MONTH = 730
K = 10


def bytes_a_row(dim, kind):
    return {"f32": 5 * dim, "f16": 3 * dim, "i8": dim}[kind] + 12.125


def merge_seconds(ranks, queries, k=K):
    levels = math.ceil(math.log2(ranks)) if ranks > 1 else 0
    keys = queries * k
    return levels * (keys * KEY_S + keys * KEY_BYTES / NETWORK_BYTES_S + MESSAGE_S + AGREEMENTS * MESSAGE_S)


def search_seconds(rows, dim, queries):
    one = QUERY_FIXED_S + rows * (dim + 8) / CODE_BYTES_S
    return one if queries == 1 else max(one, rows * queries * dim / MACS_S[dim])


def duration(seconds):
    for unit, name in ((86400, "d"), (3600, "h"), (60, "min"), (1, "s"), (1e-3, "ms")):
        if seconds >= unit:
            return f"{seconds / unit:.3g} {name}"
    return f"{seconds * 1e6:.3g} µs"


def main():
    print("| rows | dim | rows as | cards | nodes | one query | of that merging | 10,000 queries | of that merging | reading the file | dollars a month |")
    print("|--:|--:|---|--:|--:|--:|--:|--:|--:|--:|--:|")
    for exponent in (8, 9, 10, 11):
        for dim in (128, 768):
            for kind in ("f32", "f16", "i8"):
                rows = 10**exponent
                cards = math.ceil(rows * bytes_a_row(dim, kind) / CARD_BYTES)
                nodes = math.ceil(cards / CARDS_A_NODE)
                shard = math.ceil(rows / cards)
                cells = [f"10^{exponent}", dim, kind, f"{cards:,}", f"{nodes:,}"]
                for queries in (1, 10000):
                    merging = merge_seconds(cards, queries)
                    cells += [duration(search_seconds(shard, dim, queries) + merging), duration(merging)]
                element = {"f32": 4, "f16": 2, "i8": 1}[kind]
                cells += [duration(rows * dim * element / nodes / FILE_BYTES_S), f"{cards * DOLLARS_HOUR * HOURS_MONTH:,.0f}"]
                print("| " + " | ".join(map(str, cells)) + " |")
    print()
    print("| all rows against all, dim 128 | cards | time |")
    print("|--:|--:|--:|")
    for exponent in (8, 9, 10):
        rows = 10**exponent
        cards = math.ceil(rows * bytes_a_row(128, "f32") / CARD_BYTES)
        print(f"| 10^{exponent} | {cards:,} | {duration(rows / 10000 * (search_seconds(math.ceil(rows / cards), 128, 10000) + merge_seconds(cards, 10000)))} |")


if __name__ == "__main__":
    main()
