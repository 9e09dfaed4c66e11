"""A vector store for LlamaIndex, over a collection in memory or in a store."""
from __future__ import annotations

from typing import Any, Optional, Sequence

import numpy as np
from ._optional import installed

installed("llama_index.core", "warpwave.llamaindex", "llamaindex")
from llama_index.core.bridge.pydantic import PrivateAttr
from llama_index.core.schema import BaseNode
from llama_index.core.vector_stores.types import (BasePydanticVectorStore, FilterCondition, FilterOperator, MetadataFilters, VectorStoreQuery,
                                                  VectorStoreQueryMode, VectorStoreQueryResult)
from llama_index.core.vector_stores.utils import metadata_dict_to_node, node_to_metadata_dict

from .device import DeviceLike
from .results import Results
from .vectors import Collection

__all__ = ["WarpwaveVectorStore"]

_OPERATORS = {FilterOperator.EQ: "$eq", FilterOperator.NE: "$ne", FilterOperator.GT: "$gt", FilterOperator.GTE: "$gte", FilterOperator.LT: "$lt",
              FilterOperator.LTE: "$lte", FilterOperator.IN: "$in", FilterOperator.NIN: "$nin", FilterOperator.ANY: "$in", FilterOperator.CONTAINS: "$contains",
              FilterOperator.TEXT_MATCH: "$contains"}


def _condition(one: Any) -> dict[str, Any]:
    if isinstance(one, MetadataFilters):
        return _conditions(one)
    if one.operator == FilterOperator.IS_EMPTY:
        return {"$or": [{one.key: None}, {"$not": {one.key: {"$exists": True}}}]}
    if one.operator == FilterOperator.ALL:
        return {"$and": [{one.key: {"$eq": value}} for value in one.value]}
    if one.operator not in _OPERATORS:
        raise ValueError(f"the filter {one.operator.value} over {one.key} is not supported; supported are {', '.join(o.value for o in (*_OPERATORS, FilterOperator.ALL, FilterOperator.IS_EMPTY))}")
    return {one.key: {_OPERATORS[one.operator]: one.value}}


def _conditions(filters: MetadataFilters) -> dict[str, Any]:
    listed = [_condition(one) for one in filters.filters]
    if filters.condition == FilterCondition.OR:
        return {"$or": listed}
    return {"$not": {"$or": listed}} if filters.condition == FilterCondition.NOT else {"$and": listed}


def _where(filters: Optional[MetadataFilters]) -> Optional[dict[str, Any]]:
    return None if filters is None or not filters.filters else _conditions(filters)


class WarpwaveVectorStore(BasePydanticVectorStore):
    """Nodes with exact search.

    `collection` is an existing collection, for example of a `Store`; without it, one is created in memory with the first nodes. Texts and
    metadata of nodes are in the payloads, so an index over such a store needs no docstore.
    """

    stores_text: bool = True
    flat_metadata: bool = False
    _collection: Optional[Collection] = PrivateAttr()
    _metric: str = PrivateAttr()
    _device: Any = PrivateAttr()

    def __init__(self, collection: Optional[Collection] = None, *, metric: str = "cosine", device: DeviceLike = "auto") -> None:
        super().__init__()
        self._collection, self._metric, self._device = collection, metric, device

    @classmethod
    def class_name(cls) -> str:
        """Return the name of the class, for LlamaIndex's serialization."""
        return "WarpwaveVectorStore"

    @property
    def client(self) -> Optional[Collection]:
        """The collection; None while there are no nodes."""
        return self._collection

    def add(self, nodes: Sequence[BaseNode], **kwargs: Any) -> list[str]:
        """Add nodes with their embeddings, or replace the ones whose ids exist; return the ids."""
        if not nodes:
            return []
        vectors = np.asarray([node.get_embedding() for node in nodes], np.float32)
        if self._collection is None:
            self._collection = Collection(vectors.shape[1], metric=self._metric, device=self._device)
        last = {node.node_id: i for i, node in enumerate(nodes)}  # if an id occurs twice, the last one wins
        places = sorted(last.values())
        payloads = [node_to_metadata_dict(nodes[i], remove_text=False, flat_metadata=False) for i in places]
        self._collection.upsert(vectors[places], [nodes[i].node_id for i in places], payloads)
        return [node.node_id for node in nodes]

    def delete(self, ref_doc_id: str, **delete_kwargs: Any) -> None:
        """Remove the nodes of a document."""
        if self._collection is not None:
            self._collection.remove(where={"ref_doc_id": ref_doc_id})

    def delete_nodes(self, node_ids: Optional[list[str]] = None, filters: Optional[MetadataFilters] = None, **delete_kwargs: Any) -> None:
        """Remove nodes by ids, by filters, or the given ids that match the filters."""
        if self._collection is None or (node_ids is None and filters is None):
            return
        chosen = [node.node_id for node in self.get_nodes(node_ids, filters)] if filters is not None else list(node_ids or [])
        self._collection.discard(chosen)

    def clear(self) -> None:
        """Remove all nodes."""
        if self._collection is not None:
            self._collection.clear()

    def get_nodes(self, node_ids: Optional[list[str]] = None, filters: Optional[MetadataFilters] = None, **kwargs: Any) -> list[BaseNode]:
        """Return nodes by ids, by filters, or both; unknown ids are left out."""
        if self._collection is None:
            return []
        if filters is not None and filters.filters or node_ids is None:
            found = self._collection.get(where=_where(filters), vectors=False)
            wanted = None if node_ids is None else set(node_ids)
        else:
            found, wanted = self._collection.get([one for one in node_ids if one in self._collection], vectors=False), None
        assert isinstance(found, Results)
        return [metadata_dict_to_node(payload) for identifier, payload in zip(found._all_ids(), found._all_payloads()) if wanted is None or identifier in wanted]

    def query(self, query: VectorStoreQuery, **kwargs: Any) -> VectorStoreQueryResult:
        """Return the nodes nearest to an embedding, with their scores (for l2: 1 / (1 + distance))."""
        if query.mode not in (VectorStoreQueryMode.DEFAULT, VectorStoreQueryMode.MMR):
            raise ValueError(f"the mode {query.mode.value} is not supported; default and mmr are")
        if query.query_embedding is None:
            raise ValueError("the query has no embedding")
        if self._collection is None:
            return VectorStoreQueryResult(nodes=[], similarities=[], ids=[])
        k = int(query.similarity_top_k)
        diverse = query.mode == VectorStoreQueryMode.MMR
        mask = None
        if query.node_ids or query.doc_ids:  # LlamaIndex passes an empty list for no restriction
            mask = self._mask(query)
        found = self._collection.search(np.asarray(query.query_embedding, np.float32), min(4 * k if diverse else k, 16384), where=_where(query.filters),
                                        mask=mask, payloads=True, vectors=diverse)
        hits = list(found.hits())
        if diverse and hits:
            from llama_index.core.indices.query.embedding_utils import get_top_k_mmr_embeddings

            _, chosen = get_top_k_mmr_embeddings(list(query.query_embedding), [list(map(float, row)) for row in found.vectors], similarity_top_k=k,
                                                 mmr_threshold=query.mmr_threshold)
            hits = [hits[i] for i in chosen]
        near = (lambda score: 1.0 / (1.0 + score)) if self._collection.metric == "l2" else float
        return VectorStoreQueryResult(nodes=[metadata_dict_to_node(hit.payload) for hit in hits], similarities=[near(hit.score) for hit in hits],
                                      ids=[str(hit.id) for hit in hits])

    def _mask(self, query: VectorStoreQuery) -> Any:
        """Return a mask of the nodes or documents that a query is restricted to."""
        assert self._collection is not None
        mask = np.zeros(self._collection.mask_rows, bool)
        rows = self._collection.get(vectors=False)
        assert isinstance(rows, Results)
        for row, identifier, payload in zip(rows._rows, rows._all_ids(), rows._all_payloads()):
            mask[row] = (not query.node_ids or identifier in query.node_ids) and (not query.doc_ids or (payload or {}).get("ref_doc_id") in query.doc_ids)
        return mask

