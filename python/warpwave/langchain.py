"""A vector store for LangChain, over a collection in memory or in a store."""
from __future__ import annotations

import uuid
from typing import Any, Callable, Iterable, Optional, Sequence, Union

import numpy as np
from ._optional import installed

installed("langchain_core", "warpwave.langchain", "langchain")
from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings
from langchain_core.vectorstores import VectorStore
from langchain_core.vectorstores.utils import maximal_marginal_relevance

from . import _native as c
from .device import DeviceLike
from .model import Model
from .results import Results
from .vectors import Collection

__all__ = ["WarpwaveEmbeddings", "WarpwaveVectorStore"]

Filter = Union[dict[str, Any], Callable[[Document], bool]]


def _document(identifier: str, payload: Any, text: Optional[str] = None) -> Document:
    """Return a document that this module wrote, or any other row: its text or its field `text`; other fields are metadata."""
    fields = payload if isinstance(payload, dict) else {} if payload is None else {"payload": payload}
    content = str(fields.get("text", "")) if text is None else text
    if isinstance(fields.get("metadata"), dict):
        return Document(id=identifier, page_content=content, metadata=fields["metadata"])
    return Document(id=identifier, page_content=content, metadata={name: value for name, value in fields.items() if name != "text" or text is not None})


def _documents(collection: Collection, found: Results) -> list[Document]:
    """Return the rows that were found. Rows of a store may have their own texts, which are fetched by handle."""
    texts: Any = [None] * len(found._rows)
    if collection._stored and len(texts):
        texts = collection._get(None, c.WW_FETCH_TEXTS, handles=np.ascontiguousarray(found._handles))._row_texts()
    return [_document(identifier, payload, text) for identifier, payload, text in zip(found._all_ids(), found._all_payloads(), texts)]


def _conditions(conditions: dict[str, Any]) -> dict[str, Any]:
    """Translate conditions on metadata to conditions on payloads.

    Rows that this module wrote have the fields in `metadata`; other rows have them at the top level.
    """
    listed: list[dict[str, Any]] = []
    for name, value in conditions.items():
        if name in ("$and", "$or"):
            listed.append({name: [_conditions(one) for one in value]})
        elif name == "$not":
            listed.append({name: _conditions(value)})
        else:
            written = {"$and": [{"metadata": {"$exists": True}}, {f"metadata.{name}": value}]}
            listed.append({"$or": [written, {"$and": [{"metadata": {"$exists": False}}, {name: value}]}]})
    return listed[0] if len(listed) == 1 else {"$and": listed} if listed else {}


class WarpwaveEmbeddings(Embeddings):
    """Embeddings by a model from a GGUF file, given as a path or an open `Model`: the same bits on every device."""

    def __init__(self, model: Any, *, device: DeviceLike = "auto") -> None:
        self.model = model if isinstance(model, Model) else Model(model, device=device)

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        """Return a vector of length 1 for each text, after the model's prompt for documents."""
        return self._embed(texts, "document")

    def embed_query(self, text: str) -> list[float]:
        """Return the vector of one text, after the model's prompt for queries."""
        return self._embed([text], "query")[0]

    def _embed(self, texts: list[str], prompt: str) -> list[list[float]]:
        return [[float(number) for number in row] for row in self.model.embed(texts, prompt=prompt)]


class WarpwaveVectorStore(VectorStore):
    """Documents with exact search.

    `collection` is an existing collection, for example of a `Store`; without it, one is created in memory with the first document. Searches
    take `filter`, conditions on the metadata as a dict ({"year": {"$gt": 2000}}) or a function of a document, and `where`, conditions on
    whole payloads: a dict or, for a store, an SQL expression. Collections written by other programs, for example the `warpwave` command,
    work too: the payload's field `text` is the document's text, and the other fields are its metadata.

    >>> from langchain_core.embeddings import DeterministicFakeEmbedding
    >>> from warpwave.langchain import WarpwaveVectorStore
    >>> store = WarpwaveVectorStore(DeterministicFakeEmbedding(size=8), device="cpu")
    >>> _ = store.add_texts(["a fox", "a dog"], ids=["1", "2"])
    >>> store.similarity_search("a dog", k=1)[0].page_content
    'a dog'
    """

    def __init__(self, embedding: Embeddings, *, collection: Optional[Collection] = None, metric: str = "cosine", device: DeviceLike = "auto") -> None:
        self._embedding = embedding
        self._metric = metric
        self._device = device
        self._collection = collection

    @property
    def embeddings(self) -> Embeddings:
        """The embedding function."""
        return self._embedding

    @property
    def collection(self) -> Optional[Collection]:
        """The collection of the documents; None while there are none."""
        return self._collection

    def add_texts(self, texts: Iterable[str], metadatas: Optional[list[dict[str, Any]]] = None, *, ids: Optional[Sequence[Optional[str]]] = None,
                  **kwargs: Any) -> list[str]:
        """Add texts, or replace the ones whose ids exist; return the ids."""
        listed = list(texts)
        described = [{} for _ in listed] if metadatas is None else list(metadatas)
        named = [str(uuid.uuid4()) if name is None else name for name in (ids if ids is not None else [None] * len(listed))]
        if not len(listed) == len(described) == len(named):
            raise ValueError(f"there are {len(listed)} texts, {len(described)} metadatas and {len(named)} ids")
        if not listed:
            return []
        vectors = np.asarray(self._embedding.embed_documents(listed), np.float32)
        if self._collection is None:
            self._collection = Collection(vectors.shape[1], metric=self._metric, device=self._device)
        payloads = [{"text": text, "metadata": metadata} for text, metadata in zip(listed, described)]
        last = {name: i for i, name in enumerate(named)}  # if an id occurs twice, the last one wins
        places = sorted(last.values())
        self._collection.upsert(vectors[places], [named[i] for i in places], [payloads[i] for i in places])
        return named

    def delete(self, ids: Optional[list[str]] = None, **kwargs: Any) -> Optional[bool]:
        """Remove documents, or all of them without ids; unknown ids are ignored."""
        if self._collection is not None:
            if ids is None:
                self._collection.clear()
            else:
                self._collection.discard(ids)
        return True

    def get_by_ids(self, ids: Sequence[str], /) -> list[Document]:
        """Return the documents that exist, in the order of the ids."""
        if self._collection is None:
            return []
        there = [identifier for identifier in ids if identifier in self._collection]
        found = self._collection.get(there, vectors=False)
        return _documents(self._collection, found)

    def _found(self, embedding: Any, k: int, filter: Optional[Filter], vectors: bool, options: dict[str, Any]) -> Optional[Results]:
        if self._collection is None:
            return None
        if isinstance(filter, dict):
            if isinstance(options.get("where"), str):
                raise ValueError("filter is a dict, and where is SQL; give one of them")
            where = options.get("where")
            options["where"] = _conditions(filter) if where is None else {"$and": [_conditions(filter), where]}
        elif filter is not None and not callable(filter):
            raise TypeError(f"filter is {type(filter).__name__}; it must be a dict of conditions, or a function of a document")
        elif filter is not None:
            mask = np.zeros(self._collection.mask_rows, bool)
            rows = self._collection.get(vectors=False)
            for row, document in zip(rows._rows, _documents(self._collection, rows)):
                mask[row] = filter(document)
            options["mask"] = mask
        return self._collection.search(np.asarray(embedding, np.float32), min(k, 16384), payloads=True, vectors=vectors, **options)

    def similarity_search_with_score_by_vector(self, embedding: list[float], k: int = 4, filter: Optional[Filter] = None,
                                               **kwargs: Any) -> list[tuple[Document, float]]:
        """Return the nearest documents and their scores: larger is nearer for cosine and dot, smaller for l2."""
        found = self._found(embedding, k, filter, False, _options(kwargs))
        if found is None or self._collection is None:
            return []
        return [(document, float(score)) for document, score in zip(_documents(self._collection, found), found._scores)]

    def similarity_search_with_score(self, query: str, k: int = 4, **kwargs: Any) -> list[tuple[Document, float]]:
        """Return the documents nearest to a text and their scores."""
        return self.similarity_search_with_score_by_vector(self._embedding.embed_query(query), k, **kwargs)

    def similarity_search_by_vector(self, embedding: list[float], k: int = 4, **kwargs: Any) -> list[Document]:
        """Return the documents nearest to a vector."""
        return [document for document, _ in self.similarity_search_with_score_by_vector(embedding, k, **kwargs)]

    def similarity_search(self, query: str, k: int = 4, **kwargs: Any) -> list[Document]:
        """Return the documents nearest to a text."""
        return [document for document, _ in self.similarity_search_with_score(query, k, **kwargs)]

    def max_marginal_relevance_search_by_vector(self, embedding: list[float], k: int = 4, fetch_k: int = 20, lambda_mult: float = 0.5,
                                                filter: Optional[Filter] = None, **kwargs: Any) -> list[Document]:
        """Return documents that are near the vector and differ from each other."""
        found = self._found(embedding, fetch_k, filter, True, _options(kwargs))
        if found is None or self._collection is None or len(found) == 0:
            return []
        chosen = maximal_marginal_relevance(np.asarray(embedding, np.float32), list(found.vectors), lambda_mult, k)
        documents = _documents(self._collection, found)
        return [documents[i] for i in chosen]

    def max_marginal_relevance_search(self, query: str, k: int = 4, fetch_k: int = 20, lambda_mult: float = 0.5, **kwargs: Any) -> list[Document]:
        """Return documents that are near the text and differ from each other."""
        return self.max_marginal_relevance_search_by_vector(self._embedding.embed_query(query), k, fetch_k, lambda_mult, **kwargs)

    def _select_relevance_score_fn(self) -> Callable[[float], float]:
        metric = self._collection.metric if self._collection is not None else self._metric
        if metric == "cosine":
            return lambda score: min(max((score + 1.0) / 2.0, 0.0), 1.0)  # rounding may give slightly more than 1
        if metric == "l2":
            near: Callable[[float], float] = self._euclidean_relevance_score_fn
            return near
        return lambda score: score

    @classmethod
    def from_texts(cls, texts: list[str], embedding: Embeddings, metadatas: Optional[list[dict[str, Any]]] = None, *, ids: Optional[list[str]] = None,
                   **kwargs: Any) -> WarpwaveVectorStore:
        """Create a store with these texts."""
        store = cls(embedding, **kwargs)
        store.add_texts(texts, metadatas, ids=ids)
        return store


def _options(given: dict[str, Any]) -> dict[str, Any]:
    """Return the options that are passed on to the search."""
    unknown = set(given) - {"where", "parameters"}
    if unknown:
        raise TypeError(f"a search does not take {', '.join(sorted(unknown))}; it takes filter, where and parameters")
    return dict(given)
