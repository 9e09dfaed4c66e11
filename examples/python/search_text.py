"""Search your own text by meaning, with any embedding model.

    python examples/python/search_text.py "how to stay warm" notes/*.txt

`embed` is the one place that knows a model: a function from texts to vectors. Without sentence-transformers it counts words and their
parts, which finds words rather than meanings but needs nothing.
"""
# %% A model, or something that does as one
import pathlib
import sys
import zlib
from typing import Any

import numpy as np

import warpwave


def embed(texts: list[str]) -> Any:
    """A vector for each text."""
    try:
        from sentence_transformers import SentenceTransformer
    except ImportError:
        vectors = np.zeros((len(texts), 512), np.float32)
        for vector, text in zip(vectors, texts):
            for word in text.lower().split():
                word = f"<{word.strip('.,;:!?')}>"
                for i in range(len(word) - 2):
                    vector[zlib.crc32(word[i:i + 3].encode()) % 512] += 1
        return vectors
    return SentenceTransformer("all-MiniLM-L6-v2").encode(texts)


# %% The text: files that were named, or a few sentences
question = sys.argv[1] if len(sys.argv) > 1 else "keeping warm in winter"
paths = [pathlib.Path(name) for name in sys.argv[2:]]
if paths:
    passages = [(path.name, part) for path in paths for part in path.read_text(encoding="utf-8").split("\n\n") if part.strip()]
else:
    passages = [("birds", "Many birds fly south before the winter comes."), ("house", "A warm house in winter needs thick walls and a good stove."),
                ("soup", "Soup keeps you warm: onions, carrots, a little pepper."), ("sea", "The sea is cold all year, and the wind does the rest."),
                ("bears", "Bears sleep through the winter, warm in their dens.")]

# %% Into a collection: a passage a row, with its text as the payload
vectors = embed([text for _, text in passages])
with warpwave.Collection(vectors.shape[1], name="passages") as collection:
    collection.add(vectors, ids=[f"{name} {i}" for i, (name, _) in enumerate(passages)], payloads=[{"file": name, "text": text} for name, text in passages])
    print(collection)

    # %% Ask
    for hit in collection.search(embed([question])[0], k=3, payloads=True):
        print(f"{hit.score:.3f}  {hit.id}: {hit.payload['text'][:90]}")
