"""Rows and queries for the benchmarks, each set made from a seed of its own: every process makes the same ones."""
import os

import numpy as np

CLUSTERS, SPREAD = 1000, 0.01  # centres, and how far a row is from its own beside their length
PIECE = 1 << 16  # rows made at a time, which bounds the memory for what is only on the way


def directions(random, count, dim):
    """Normal random numbers, each row divided by its length."""
    made = np.empty((count, dim), dtype=np.float32)
    for begin in range(0, count, PIECE):
        piece = random.standard_normal((min(PIECE, count - begin), dim), dtype=np.float32)
        made[begin:begin + PIECE] = piece / np.linalg.norm(piece, axis=1, keepdims=True)
    return made


def clustered(random, count, dim):
    """Rows around 1000 centres; the centres are the same for rows and queries."""
    centres = directions(np.random.default_rng(dim + 2), CLUSTERS, dim)
    made = directions(random, count, dim)
    made *= SPREAD
    for begin in range(0, count, PIECE):
        piece = made[begin:begin + PIECE]
        piece += centres[random.integers(0, CLUSTERS, len(piece))]
        piece /= np.linalg.norm(piece, axis=1, keepdims=True)
    return made


def heavy_tailed(random, count, dim):
    """Student's t with two degrees of freedom: a few elements are far larger than the rest and set the scale."""
    return random.standard_t(2, (count, dim)).astype(np.float32)


def sparse(random, count, dim):
    """Nine elements of ten are 0."""
    return directions(random, count, dim) * (random.random((count, dim)) < 0.1)


def duplicates(random, count, dim):
    """Copies of 100 rows, each element changed by about a millionth."""
    originals = directions(np.random.default_rng(dim + 3), 100, dim)
    return (originals[random.integers(0, 100, count)] * (1 + 1e-6 * directions(random, count, dim))).astype(np.float32)


def digits(random, count, dim):
    """Handwritten digits, 64 numbers each: those of data/digits.csv, then the same again with a little noise."""
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "data", "digits.csv")
    rows = np.loadtxt(path, delimiter=",", dtype=np.float32)[:, :64]
    return rows[random.integers(0, len(rows), count)] + random.normal(0, 0.5, (count, 64)).astype(np.float32)


KINDS = {"normal": directions, "clustered": clustered, "heavy-tailed": heavy_tailed, "sparse": sparse,
         "digits": digits, "near-duplicates": duplicates}


def make_rows(kind, count, dim):
    return KINDS[kind](np.random.default_rng(dim), count, dim).astype(np.float32)


def make_queries(kind, count, dim):
    return KINDS[kind](np.random.default_rng(dim + 1), count, dim).astype(np.float32)
