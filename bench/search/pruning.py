"""What could be saved by not finishing rows: how many multiply-adds of the screen remain when a row is left out as soon as the
leading part of its codes excludes it. usage: python3 bench/search/pruning.py

The rest of a row is bounded by Cauchy-Schwarz, |tail of the query| |tail of the row|. Tried with the elements as they come and
after a rotation by the principal directions of a sample, which gathers the length of the rows in front. Thresholds are the
final ones, so a search would save less. Hardware skips blocks, not pairs: with one query 16 rows at a time, in a batch 16
rows by 16 queries, and a block is finished if one of its pairs needs it. docs/design/exactness.md has the bound.
"""
import numpy as np

import datasets

ROWS, QUERIES, K, RUN = 64_000, 64, 10, 16
SETS = [("normal", 128), ("normal", 768), ("clustered", 128), ("clustered", 768), ("digits", 64), ("heavy-tailed", 128)]
PARTS = [1 / 8, 1 / 4, 1 / 2, 3 / 4]


def coded(vectors):
    """What int8 codes stand for, and how far that is from the vectors."""
    scales = np.maximum(np.abs(vectors).max(axis=1, keepdims=True) / 127, 1e-30)
    values = np.rint(vectors / scales) * scales
    return values, np.linalg.norm(vectors - values, axis=1)


def bound(queries, rows):
    """At least the dot products, from codes: the screen's bound without its roundings."""
    q, q_error = coded(queries)
    x, x_error = coded(rows)
    return q @ x.T + np.outer(np.linalg.norm(q, axis=1), x_error) + np.outer(q_error, np.linalg.norm(rows, axis=1))


def rotation(rows):
    sample = rows[::max(1, len(rows) // 4096)].astype(np.float64)
    return np.linalg.eigh(sample.T @ sample)[1][:, ::-1].astype(np.float32)


def remaining(queries, rows, thresholds, lead):
    """The share of multiply-adds that remains for one query and for a batch, if rows are tested after `lead` elements."""
    tails = np.outer(np.linalg.norm(queries[:, lead:], axis=1), np.linalg.norm(rows[:, lead:], axis=1))
    unfinished = bound(queries[:, :lead], rows[:, :lead]) + tails >= thresholds[:, None]
    runs = unfinished.reshape(QUERIES, -1, RUN).any(axis=2)
    blocks = runs.reshape(QUERIES // RUN, RUN, -1).any(axis=1)
    part = lead / rows.shape[1]
    return part + (1 - part) * runs.mean(), part + (1 - part) * blocks.mean()


def main():
    print("| rows | | kept by all codes | " + " | ".join(f"after {part:g}" for part in PARTS) + " |")
    print("|---|---|---|" + "---|" * len(PARTS))
    for kind, dim in SETS:
        rows, queries = datasets.make_rows(kind, ROWS, dim), datasets.make_queries(kind, QUERIES, dim)
        thresholds = np.partition(queries @ rows.T, -K, axis=1)[:, -K]
        for name, turn in (("as they come", np.eye(dim, dtype=np.float32)), ("rotated", rotation(rows))):
            q, x = queries @ turn, rows @ turn
            kept = (bound(q, x) >= thresholds[:, None]).mean()
            cells = ["{:.2f} / {:.2f}".format(*remaining(q, x, thresholds, int(part * dim))) for part in PARTS]
            print(f"| {kind}, {dim} | {name} | {kept:.3%} | " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    main()
