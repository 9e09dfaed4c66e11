"""Sparse vectors of texts, for BM25."""
from __future__ import annotations

from ctypes import byref, sizeof
from typing import Any, Sequence, Union, overload

import numpy as np

from . import _native as c
from ._errors import check
from ._numpy import address
from ._sparse import SparseVector

_ROOM = 65536  # WW_SPARSE_MAX


@overload
def bm25(  # type: ignore[overload-overlap]  # a text is a sequence of texts, too
        texts: str, *, query: bool = False, k: float = 1.2, b: float = 0.75, average_words: float = 256.0) -> SparseVector: ...
@overload
def bm25(texts: Sequence[str], *, query: bool = False, k: float = 1.2, b: float = 0.75, average_words: float = 256.0) -> list[SparseVector]: ...


def bm25(texts: Union[str, Sequence[str]], *, query: bool = False, k: float = 1.2, b: float = 0.75, average_words: float = 256.0) -> Any:
    """Make the sparse vector of a text, or those of several: an index for each word, and its weight by BM25.

    With `query=True` each word weighs 1. A search by such a vector with `modifier="idf"` ranks rows by BM25. `average_words` is how many words your
    texts have on average. The indices are those of fastembed's `Qdrant/bm25`, but words are not stemmed, and none is left out.

    >>> warpwave.bm25(["a red fox", "a dog"])[1].indices.size
    2
    """
    listed = [texts] if isinstance(texts, str) else list(texts)
    how = c.ww_bm25()
    check(c.ww_bm25_init(byref(how), sizeof(how)))
    how.k, how.b, how.average_words, how.query = k, b, average_words, int(bool(query))
    indices, values = np.empty(_ROOM, np.uint32), np.empty(_ROOM, np.float32)
    room = c.ww_sparse_room(_ROOM, 0, address(indices), address(values))
    made = []
    for number, text in enumerate(listed):
        if not isinstance(text, str):
            raise TypeError(f"texts[{number}] is {text!r:.60}; it must be a str")
        if "\0" in text:
            raise ValueError(f"texts[{number}] has a NUL at {text.index(chr(0))}")
        check(c.ww_sparse_from_text(text.encode(), byref(how), byref(room)))
        made.append(SparseVector(indices[: room.count].copy(), values[: room.count].copy()))
    return made[0] if isinstance(texts, str) else made
