"""Collections of text: a store's collection together with the model that makes its vectors."""
from __future__ import annotations

import os
import threading
from contextlib import nullcontext
from ctypes import addressof, byref, c_double, c_int64, c_void_p, sizeof
from typing import Any, Callable, Mapping, Optional, Protocol, Sequence, Union

import numpy as np

from . import _native as c
from ._arrays import Texts, _block_of, as_payloads, as_texts, name_text
from ._calls import Handle, Progress, Token, interruptible
from ._checked import integer
from ._errors import check
from ._names import chosen
from ._numpy import address
from ._ranking import Ranking
from ._select import Where
from .device import Device, made
from .model import Model, described, embedded, placed, warn_of_cut
from .results import FETCH_IDS, FETCH_MULTI, FETCH_PAYLOADS, FETCH_SPARSE, FETCH_VECTORS, Results
from .vectors import K_DEFAULT, Collection, _taken

__all__ = ["TextCollection"]

Rerank = Union[Model, Callable[[str, "list[str]"], Any]]
_MODES = {"vector": c.WW_TEXT_VECTOR, "text": c.WW_TEXT_WORDS, "hybrid": c.WW_TEXT_HYBRID}
_FUSIONS = {"ranks": c.WW_FUSION_RANKS, "scores": c.WW_FUSION_SCORES}
_RERANKED = 100  # default number of candidates for reranking


def _listed(texts: Any, what: str) -> list[str]:
    listed = [texts] if isinstance(texts, str) else list(texts)
    if not all(isinstance(text, str) for text in listed):
        raise TypeError(f"{what} has {next(text for text in listed if not isinstance(text, str))!r}; it must be a str, or a list of str")
    return listed


def _block(texts: Sequence[str], what: str) -> Texts:
    return Texts(*_block_of(texts, what)) if texts else Texts(b"\0", np.empty(0, np.int64))


def _initialised(kind: Any, init: Callable[..., int]) -> Any:
    value = kind()
    check(init(byref(value), sizeof(value)))
    return value


class Opened(Protocol):
    """What a collection of texts needs of its store."""

    _handle: Handle

    def list(self) -> dict[str, Any]: ...


class TextCollection(Collection):
    """A collection of a `Store` with a model: add texts, and search by text.

    `Store.create(name, model=...)` creates one. A store returns one for every collection that has a model. Vectors can be added and
    searched as in any other collection.

    The first text opens the model from its recorded path; another model is refused.
    """

    _store: Opened
    _device: Device
    _opening: threading.Lock
    _text: Optional[Handle]
    _held: Any

    @classmethod
    def _of_text(cls, pointer: c_void_p, name: str, store: Opened, device: Device) -> TextCollection:
        self = cls._of_store(pointer, name)
        assert isinstance(self, TextCollection)
        self._store, self._device, self._opening, self._text, self._held = store, device, threading.Lock(), None, None
        return self

    def _open_text(self) -> Handle:
        with self._opening:
            if self._text is None or self._text.closed:
                self._text, self._held = open_text(self._store, self.name, self._device)
            return self._text

    def _reattach(self, pointer: c_void_p, name: str) -> None:
        with self._opening:
            text, self._text = self._text, None
        super()._reattach(pointer, name)
        if text is not None:
            text.close()

    def close(self) -> None:
        """Free the collection and its model now, or when the last call on another thread returns. Closing twice is allowed."""
        super().close()
        if self._text is not None:
            self._text.close()

    @property
    def model(self) -> dict[str, str]:
        """The stored description of the model: name, fingerprint, path, pooling, and the prefixes for queries and documents."""
        kept: dict[str, str] = self._store.list()[self.name]["model"]
        return kept

    # ---- writing ------------------------------------------------------------------------------------------------------------------

    def add(self, vectors: Any = None, ids: Any = None, payloads: Any = None, *, texts: Any = None, documents: Any = None, chunk: Optional[int] = None,
            overlap: Optional[int] = None, sparse: Any = None, multi: Any = None, progress: Progress = None) -> None:
        """Add texts with vectors made by the model, or documents, or vectors. If one is refused, nothing is added.

        With vectors and texts, the texts are kept with your vectors; these must be of the same model. `documents` is a dict of sources and texts, or a list of texts with their sources as `ids`. They are split at sentence ends into
        chunks of at most `chunk` tokens (256); each chunk shares `overlap` tokens (32) with the previous one. A chunk's id is
        "SOURCE#number", and its payload has "source", "chunk", "chunks", "start" and "end" in addition to the document's own fields. `sparse`
        and `multi` have a sparse vector and a multivector for each text or vector (see `Collection.add`).
        """
        self._take(False, vectors, ids, payloads, texts, documents, chunk, overlap, sparse, multi, progress)

    def upsert(self, vectors: Any = None, ids: Any = None, payloads: Any = None, *, texts: Any = None, documents: Any = None, chunk: Optional[int] = None,
               overlap: Optional[int] = None, sparse: Any = None, multi: Any = None, progress: Progress = None) -> None:
        """Add like `add`, but replace rows with the same id or the same source."""
        self._take(True, vectors, ids, payloads, texts, documents, chunk, overlap, sparse, multi, progress)

    def _take(self, upsert: bool, vectors: Any, ids: Any, payloads: Any, texts: Any, documents: Any, chunk: Optional[int], overlap: Optional[int],
              sparse: Any, multi: Any, progress: Progress) -> None:
        if documents is not None and (vectors is not None or texts is not None) or (vectors is None and texts is None and documents is None):
            raise ValueError("give vectors, texts or both, or documents")
        if documents is None and (chunk is not None or overlap is not None):
            raise ValueError("chunk and overlap are for documents")
        if documents is not None and (sparse is not None or multi is not None):
            raise ValueError("sparse vectors and multivectors are for texts and vectors, and not for documents, which are split")
        if vectors is not None or sparse is not None or multi is not None:
            write = super().upsert if upsert else super().add
            write(vectors, ids, payloads, texts=texts, sparse=sparse, multi=multi, progress=progress)
        elif texts is not None:
            self._add_texts(upsert, _listed(texts, "texts"), ids, payloads, progress)
        else:
            self._add_documents(upsert, documents, ids, payloads, chunk, overlap, progress)

    def _add_texts(self, upsert: bool, texts: list[str], ids: Any, payloads: Any, progress: Progress) -> None:
        rows = _initialised(c.ww_text_rows, c.ww_text_rows_init)
        block = _block(texts, "texts")
        rows.count, rows.texts = block.count, block.pointers
        id_texts = None if ids is None else as_texts(ids, block.count)
        payload_texts = None if payloads is None else as_payloads(payloads, block.count, "texts")
        rows.ids = id_texts.pointers if id_texts is not None else None
        rows.payloads = payload_texts.pointers if payload_texts is not None else None
        write = c.ww_text_upsert if upsert else c.ww_text_add

        def call(told: Any) -> int:
            rows.progress = told
            return int(write(pointer, byref(rows)))

        with self._open_text() as pointer, self._writing:
            model = c.ww_text_model(pointer)
            before = described(model).texts_cut
            interruptible(call, progress, "embedding texts")
            info = described(model)
        warn_of_cut(info.texts_cut - before, block.count, info.context)

    def _add_documents(self, upsert: bool, documents: Any, ids: Any, payloads: Any, chunk: Optional[int], overlap: Optional[int], progress: Progress) -> None:
        if isinstance(documents, Mapping):
            if ids is not None:
                raise ValueError("the keys of documents are their sources; ids are for a list of documents")
            documents, ids = list(documents.values()), list(documents)
        if ids is None:
            raise ValueError("documents need sources: give a dict of sources and texts, or ids beside a list")
        asked, how = _initialised(c.ww_documents, c.ww_documents_init), _initialised(c.ww_chunking, c.ww_chunking_init)
        block = _block(_listed(documents, "documents"), "documents")
        sources = as_texts(ids, block.count)
        described = None if payloads is None else as_payloads(payloads, block.count, "documents")
        asked.count, asked.texts, asked.sources = block.count, block.pointers, sources.pointers
        asked.payloads = described.pointers if described is not None else None
        if chunk is not None or overlap is not None:
            how.tokens = how.tokens if chunk is None else integer(chunk, "chunk")
            how.overlap = min(how.overlap, how.tokens // 8) if overlap is None else integer(overlap, "overlap")
            asked.chunking = addressof(how)
        write, chunks = c.ww_text_upsert_documents if upsert else c.ww_text_add_documents, c_int64()

        def call(told: Any) -> int:
            asked.progress = told
            return int(write(pointer, byref(asked), byref(chunks)))

        with self._open_text() as pointer, self._writing:
            interruptible(call, progress, "embedding documents")

    def _embedded(self, texts: list[str]) -> Any:
        """Return the vectors that the collection's model makes of texts to add."""
        prefix = self.model["document_prefix"]
        with self._open_text() as pointer:
            model = c.ww_text_model(pointer)
            vectors, cut = embedded(model, [prefix + text for text in _listed(texts, "texts")], self.dim, "")
            context = described(model).context
        warn_of_cut(cut, len(texts), context)
        return vectors

    def texts(self, ids: Any) -> list[Optional[str]]:
        """Return the texts of the rows with these ids, None for rows without one; raise `NotFound`, a KeyError, for unknown ids."""
        found = self._get(as_texts(ids), FETCH_IDS | c.WW_FETCH_TEXTS)
        self._refuse_missing(found, ids)
        return list(found.texts)

    def _copy_model(self, store: int, name: str) -> None:
        model = made(c.ww_store_model)
        with self._store._handle as here:
            check(c.ww_store_get_model(here, name_text(self.name, "the name"), byref(model)))
            check(c.ww_store_set_model(store, name_text(name, "the name"), byref(model)))

    # ---- searching ----------------------------------------------------------------------------------------------------------------

    def search(self, queries: Any = None, k: Optional[int] = None, *, text: Any = None, mode: str = "vector", fusion: str = "ranks",
               weights: Optional[Sequence[float]] = None, expand: int = 0, rerank: Optional[Rerank] = None, **options: Any) -> Results:
        """Find the best `k` rows (10 by default) for a text or each text of a list; for vectors see `Collection.search`.

        `mode` is "vector", "text" for the words of the texts (BM25), or "hybrid" for both, fused by reciprocal "ranks" or by "scores" with
        `weights` for vectors and words. Results of the last two have `vector_ranks` and `text_ranks`. `expand` returns a chunk's text
        together with that many chunks before and after it. `rerank` is a reranking model, or a function that takes the query and a list of
        texts and returns a score for each; it reorders the best `candidates` (100). For other options see `Collection.search`. Texts are
        fetched unless `texts=False`.
        """
        if text is None:
            if mode != "vector" or expand or rerank is not None:
                raise ValueError("mode, expand and rerank are for a text: search(text=...)")
            return super().search(queries, k, **options)
        if queries is not None or not isinstance(options.get("sparse", False), bool) or not isinstance(options.get("multi", False), bool):
            raise ValueError("give vectors, a text, sparse vectors or multivectors, and only one of them")
        return self._search_texts(text, K_DEFAULT if k is None else integer(k, "k"), mode, fusion, weights, expand, rerank, **options)

    def _search_texts(self, text: Any, k: int, mode: str, fusion: str, weights: Optional[Sequence[float]], expand: int, rerank: Optional[Rerank], *,
                      where: Optional[Where] = None, parameters: Any = None, mask: Any = None, ids: bool = True, payloads: bool = False, vectors: bool = False,
                      texts: bool = True, mmr: Optional[float] = None, candidates: Optional[int] = None, group_by: Optional[str] = None, groups: int = 10,
                      group_size: int = 1, sparse: bool = False, multi: bool = False) -> Results:
        listed = _listed(text, "text")
        asked, fuse = _initialised(c.ww_text_query, c.ww_text_query_init), _initialised(c.ww_fuse, c.ww_fuse_init)
        query, block = c.ww_query(sizeof(c.ww_query)), _block(listed, "text")
        scorer = rerank if rerank is not None and not isinstance(rerank, Model) else None
        query.k = max(k, candidates or _RERANKED) if scorer is not None else k
        query.fetch = ((FETCH_IDS if ids else 0) | (FETCH_PAYLOADS if payloads else 0) | (FETCH_VECTORS if vectors else 0) |
                       (c.WW_FETCH_TEXTS if texts or scorer is not None else 0) | (FETCH_SPARSE if sparse else 0) | (FETCH_MULTI if multi else 0))
        if mask is not None:
            words, query.mask_rows = self._mask(mask)
            query.mask = address(words)
        fuse.fusion = chosen(_FUSIONS, fusion, "the fusion")
        if weights is not None:
            of_vectors, of_words = weights
            both = (c_double * 2)(of_vectors, of_words)
            fuse.weights = addressof(both)
        ranking = Ranking(mmr, None if rerank is not None else candidates, group_by, groups, group_size)
        asked.texts, asked.count, asked.mode = block.pointers, block.count, chosen(_MODES, mode, "the mode")
        asked.query, asked.fuse, asked.candidates, asked.expand = addressof(query), addressof(fuse), ranking.candidates, integer(expand, "expand")
        if ranking.diversity is not None:
            asked.diversity = addressof(ranking.diversity)
        if ranking.grouping is not None:
            asked.grouping = addressof(ranking.grouping)
        second = rerank._handle if isinstance(rerank, Model) else nullcontext()
        found = c_void_p()
        with self._selected(where, parameters) as selection, self._open_text() as pointer, second as model:
            asked.rerank, asked.reranked = model, (candidates or 0) if model else 0
            query.filter, query.where, query.parameters, query.parameter_count = (selection.filter, selection.where, selection.parameters,
                                                                                  selection.parameter_count)
            token = Token()
            query.cancel = token.pointer
            interruptible(lambda _: int(c.ww_text_search(pointer, byref(asked), byref(found))), token=token)
        results = _taken(found, isinstance(text, str), None, int(query.fetch))
        return _reranked(results, listed, scorer, k) if scorer is not None else results


def _reranked(found: Results, queries: list[str], rerank: Callable[[str, "list[str]"], Any], k: int) -> Results:
    """Reorder the hits by the function's scores."""
    scores = np.empty(len(found._rows), np.float32)
    for q, query in enumerate(queries):
        first, end = int(found._starts[q]), int(found._starts[q + 1])
        given = np.asarray(rerank(query, [text or "" for text in (found._texts[first:end] if found._texts is not None else [])]), np.float32)
        if given.shape != (end - first,):
            raise ValueError(f"rerank gave scores of shape {given.shape} for {end - first} texts; it must give one for each")
        scores[first:end] = given
    again = c_void_p()
    check(c.ww_results_rerank(found._found.pointer, address(scores), k, byref(again)))
    return _taken(again, found._single, None, found._fetch)


def open_text(store: Opened, name: str, device: Device, model: Union[None, str, "os.PathLike[str]", Model] = None, create: bool = False, metric: int = 0,
              type: int = 0, query_prefix: Optional[str] = None, document_prefix: Optional[str] = None) -> tuple[Handle, Any]:
    """Open a collection with its model; also return the objects that must live as long."""
    config = _initialised(c.ww_text_config, c.ww_text_config_init)
    config.device, config.create, config.metric, config.type = device._open().pointer, int(create), metric, type
    if isinstance(model, Model):
        config.opened = model._handle.pointer
    elif model is not None:
        config.model = os.fsencode(placed(model, False))
    if query_prefix is not None:
        config.query_prefix = name_text(query_prefix, "query_prefix")
    if document_prefix is not None:
        config.document_prefix = name_text(document_prefix, "document_prefix")
    pointer = c_void_p()
    with store._handle as opened:
        interruptible(lambda told: int(_open(opened, name, config, told, pointer)), None, "opening the model")
    return Handle(pointer.value or 0, c.ww_text_close, f"the collection {name!r}"), model


def _open(store: int, name: str, config: Any, told: Any, pointer: c_void_p) -> int:
    config.progress = told
    return int(c.ww_text_open(store, name_text(name, "the name"), byref(config), byref(pointer)))

