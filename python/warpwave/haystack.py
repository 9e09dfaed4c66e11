"""A document store and a retriever for Haystack, over a collection of a store."""
from __future__ import annotations

import datetime
from typing import Any, Optional

import numpy as np
from ._optional import installed

installed("haystack", "warpwave.haystack", "haystack")
from haystack import component, default_from_dict, default_to_dict
from haystack.dataclasses import Document
from haystack.document_stores.errors import DuplicateDocumentError
from haystack.document_stores.types import DuplicatePolicy
from haystack.errors import FilterError

from .results import Results
from .store import Store
from .vectors import Collection

__all__ = ["WarpwaveDocumentStore", "WarpwaveEmbeddingRetriever"]

_OWN_FIELDS = ("id", "content", "blob", "score")
_ORDERS = {">": "$gt", ">=": "$gte", "<": "$lt", "<=": "$lte"}
_NOTHING = {"id": {"$exists": False}}  # matches nothing, because every payload has an id


def _needs(filters: Any, *keys: str) -> None:
    if not isinstance(filters, dict):
        raise FilterError(f"a filter is {filters!r}; it must be a dict")
    for key in keys:
        if key not in filters:
            raise FilterError(f"'{key}' key missing in {filters}")


def _conditions(filters: Any) -> dict[str, Any]:
    """Translate Haystack's filters to Warpwave's."""
    if isinstance(filters, dict) and "field" in filters:
        return _comparison(filters)
    _needs(filters, "operator", "conditions")
    listed = [_conditions(one) for one in filters["conditions"]]
    operator = filters["operator"]
    if operator not in ("AND", "OR", "NOT"):
        raise FilterError(f"unknown operator {operator!r}; it must be AND, OR or NOT")
    return {"$or": listed} if operator == "OR" else {"$and": listed} if operator == "AND" else {"$not": {"$and": listed}}


def _comparison(condition: dict[str, Any]) -> dict[str, Any]:
    _needs(condition, "field", "operator", "value")
    field, operator, value = condition["field"], condition["operator"], condition["value"]
    if not field.startswith("meta.") and field not in _OWN_FIELDS:
        field = f"meta.{field}"
    if operator in ("==", "!="):
        return {field: {"$eq" if operator == "==" else "$ne": value}}
    if operator in ("in", "not in"):
        if not isinstance(value, list):
            raise FilterError(f"the value of {operator!r} is {type(value).__name__}; it must be a list")
        return {field: {"$in" if operator == "in" else "$nin": value}}
    if operator not in _ORDERS:
        raise FilterError(f"unknown operator {operator!r}; it must be one of ==, !=, in, not in, {', '.join(_ORDERS)}")
    return _NOTHING if value is None else {field: {_ORDERS[operator]: _ordered(value, operator)}}


def _ordered(value: Any, operator: str) -> Any:
    """Return a value that can be ordered: a number or a date, as an object or an ISO text."""
    if isinstance(value, str):
        try:
            datetime.datetime.fromisoformat(value.replace("Z", "+00:00"))
        except ValueError:
            raise FilterError(f"{value!r} cannot be compared by {operator}; texts can only if they are dates in ISO form") from None
        return {"$date": value}
    if not isinstance(value, (int, float, datetime.date)):
        raise FilterError(f"a {type(value).__name__} cannot be compared by {operator}; a number or a date can")
    return value


class WarpwaveDocumentStore:
    """Documents in a collection of a `Store`: the file `path`, or ":memory:".

    A document without an embedding is stored and can be filtered, but searches do not find it. Embeddings are stored as f32. A list field
    matches a condition if one of its elements does.
    """

    def __init__(self, path: str = ":memory:", collection: str = "documents", embedding_dim: int = 768, metric: str = "cosine", device: str = "auto") -> None:
        self.path, self.name, self.embedding_dim, self.metric, self.device = str(path), collection, embedding_dim, metric, device
        self._opened: Optional[Store] = None

    @property
    def collection(self) -> Collection:
        """The collection of the documents; opened, or created if needed, on first use."""
        if self._opened is None:
            self._opened = Store(self.path, device=self.device)
        return self._opened.get_or_create(self.name, self.embedding_dim, self.metric)

    def close(self) -> None:
        """Close the file. Closing twice is allowed."""
        if self._opened is not None:
            self._opened.close()
            self._opened = None

    def to_dict(self) -> dict[str, Any]:
        """Serialize the document store for Haystack's pipelines."""
        return default_to_dict(self, path=self.path, collection=self.name, embedding_dim=self.embedding_dim, metric=self.metric,  # type: ignore[no-any-return]
                               device=self.device)

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> WarpwaveDocumentStore:
        """Create a document store from the output of to_dict()."""
        return default_from_dict(cls, data)  # type: ignore[no-any-return]

    def count_documents(self) -> int:
        """Return the number of documents."""
        return len(self.collection)

    def count_documents_by_filter(self, filters: dict[str, Any]) -> int:
        """Return the number of documents that match the filters."""
        return self.collection.count(_conditions(filters) if filters else None)

    def filter_documents(self, filters: Optional[dict[str, Any]] = None) -> list[Document]:
        """Return the documents that match the filters, or all."""
        return _documents(self.collection.get(where=_conditions(filters) if filters else {}))

    def write_documents(self, documents: list[Document], policy: DuplicatePolicy = DuplicatePolicy.NONE) -> int:
        """Write documents and return how many were written; `policy` decides about ids that exist already."""
        if not isinstance(documents, list) or not all(isinstance(document, Document) for document in documents):
            raise ValueError("documents must be a list of Document")
        there = self.collection
        taken = [document for document in documents if document.id in there]
        if taken and policy in (DuplicatePolicy.NONE, DuplicatePolicy.FAIL):
            raise DuplicateDocumentError(f"the document {taken[0].id!r} exists already")
        skipped = {document.id for document in taken} if policy == DuplicatePolicy.SKIP else set()
        last = {document.id: document for document in documents if document.id not in skipped}
        if not last:
            return 0
        vectors = np.zeros((len(last), there.dim), np.float32)
        for i, document in enumerate(last.values()):
            if document.embedding is not None:
                vectors[i] = document.embedding
        there.upsert(vectors, list(last), [_payload(document) for document in last.values()])
        return len(last)

    def delete_documents(self, document_ids: list[str]) -> None:
        """Remove documents; unknown ids are ignored."""
        self.collection.discard(document_ids)

    def delete_all_documents(self) -> None:
        """Remove all documents."""
        self.collection.clear()

    def delete_by_filter(self, filters: dict[str, Any]) -> int:
        """Remove the documents that match the filters and return how many there were."""
        return self.collection.remove(where=_conditions(filters))

    def update_by_filter(self, filters: dict[str, Any], meta: dict[str, Any]) -> int:
        """Set metadata fields of the documents that match the filters and return how many there were."""
        found = self.collection.get(where=_conditions(filters), vectors=False)
        payloads = [{**payload, "meta": {**payload["meta"], **meta}} for payload in found.payloads] if len(found) else []
        return self.collection.update(list(found.ids), payloads=payloads) if payloads else 0

    def search(self, query_embedding: list[float], filters: Optional[dict[str, Any]] = None, top_k: int = 10) -> list[Document]:
        """Return the documents nearest to an embedding, with their scores."""
        embedded = {"embedded": True}
        where = {"$and": [embedded, _conditions(filters)]} if filters else embedded
        return _documents(self.collection.search(np.asarray(query_embedding, np.float32), top_k, where=where, payloads=True, vectors=True), scored=True)


def _payload(document: Document) -> dict[str, Any]:
    fields = {name: value for name, value in document.to_dict(flatten=False).items() if name not in ("embedding", "score")}
    return {**fields, "embedded": document.embedding is not None}


def _documents(found: Results, scored: bool = False) -> list[Document]:
    made = []
    for i, payload in enumerate(found._all_payloads()):
        fields = {name: value for name, value in payload.items() if name != "embedded"}
        if payload["embedded"] and found._vectors is not None:
            fields["embedding"] = found._vectors[i].tolist()
        if scored:
            fields["score"] = float(found._scores[i])
        made.append(Document.from_dict(fields))
    return made


@component
class WarpwaveEmbeddingRetriever:
    """A pipeline component that returns the documents nearest to a query's embedding."""

    def __init__(self, document_store: WarpwaveDocumentStore, filters: Optional[dict[str, Any]] = None, top_k: int = 10) -> None:
        if not isinstance(document_store, WarpwaveDocumentStore):
            raise ValueError("document_store must be a WarpwaveDocumentStore")
        self.document_store, self.filters, self.top_k = document_store, filters, top_k

    def to_dict(self) -> dict[str, Any]:
        """Serialize the component for Haystack's pipelines."""
        return default_to_dict(self, document_store=self.document_store.to_dict(), filters=self.filters, top_k=self.top_k)  # type: ignore[no-any-return]

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> WarpwaveEmbeddingRetriever:
        """Create a component from the output of to_dict()."""
        data["init_parameters"]["document_store"] = WarpwaveDocumentStore.from_dict(data["init_parameters"]["document_store"])
        return default_from_dict(cls, data)  # type: ignore[no-any-return]

    @component.output_types(documents=list[Document])
    def run(self, query_embedding: list[float], filters: Optional[dict[str, Any]] = None, top_k: Optional[int] = None) -> dict[str, list[Document]]:
        """Search; arguments given here override those of the constructor."""
        return {"documents": self.document_store.search(query_embedding, self.filters if filters is None else filters, self.top_k if top_k is None else top_k)}
