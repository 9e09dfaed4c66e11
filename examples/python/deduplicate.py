"""Find the near-duplicates of a data set: all pairs that are nearer than a threshold, exactly, and one of each group to keep.

    python examples/python/deduplicate.py [VECTORS.npy [THRESHOLD]]

Without a file: handwritten digits, some of which are there twice, with a little noise.
"""
# %% The vectors
import sys

import numpy as np

import warpwave

if len(sys.argv) > 1:
    vectors = np.load(sys.argv[1])
else:
    random = np.random.default_rng(1)
    originals = random.standard_normal((2000, 64)).astype(np.float32)
    vectors = np.concatenate([originals, originals[:300] + 0.02 * random.standard_normal((300, 64)).astype(np.float32)])
threshold = float(sys.argv[2]) if len(sys.argv) > 2 else 0.98

# %% Every vector asks for all that are at least so similar
with warpwave.Collection(vectors.shape[1], metric="cosine") as collection:
    collection.add(vectors)
    found = collection.search(vectors, radius=threshold, ids=False, progress=sys.stderr.isatty())

# %% Each group keeps its first: a row goes if an earlier one is near it
earliest = np.array([rows.min() for rows in found.rows])
keep = earliest == np.arange(len(vectors))
print(f"{len(vectors)} vectors, {int((found.counts - 1).sum()) // 2} pairs with a similarity of at least {threshold}, {int(keep.sum())} kept")
