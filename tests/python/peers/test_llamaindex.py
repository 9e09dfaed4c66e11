"""The vector store under LlamaIndex: an index over it, and what its own simple store does with the same nodes."""
import numpy as np
import pytest

pytest.importorskip("llama_index.core", reason="SKIP: llama-index-core is not installed; make check-python installs it")
from llama_index.core import StorageContext, VectorStoreIndex  # noqa: E402
from llama_index.core.embeddings import MockEmbedding  # noqa: E402
from llama_index.core.schema import NodeRelationship, RelatedNodeInfo, TextNode  # noqa: E402
from llama_index.core.vector_stores import SimpleVectorStore  # noqa: E402
from llama_index.core.vector_stores.types import (FilterCondition, FilterOperator, MetadataFilter, MetadataFilters, VectorStoreQuery,  # noqa: E402
                                                  VectorStoreQueryMode)

import warpwave  # noqa: E402
from warpwave.llamaindex import WarpwaveVectorStore  # noqa: E402


def nodes():
    rng = np.random.default_rng(4)
    return [TextNode(text=f"text {i}", id_=f"n{i}", embedding=rng.standard_normal(16).tolist(), metadata={"year": 1990 + i, "lang": ["en", "de"][i % 2]},
                     relationships={NodeRelationship.SOURCE: RelatedNodeInfo(node_id=f"doc{i // 5}")}) for i in range(20)]


@pytest.fixture(params=["memory", "store"])
def store(request, tmp_path):
    collection = None if request.param == "memory" else warpwave.Store(tmp_path / "s.db", device="cpu").create("nodes", dim=16)
    made = WarpwaveVectorStore(collection, device="cpu")
    assert made.add(nodes()) == [f"n{i}" for i in range(20)]
    return made


def one(key, operator, value):
    return MetadataFilters(filters=[MetadataFilter(key=key, operator=operator, value=value)])


FILTERS = [None, one("year", FilterOperator.GT, 2000), one("lang", FilterOperator.EQ, "de"), one("lang", FilterOperator.NE, "de"),
           one("year", FilterOperator.IN, [1991, 1995, 3]), one("year", FilterOperator.NIN, [1991, 1995]), one("lang", FilterOperator.TEXT_MATCH, "e"),
           MetadataFilters(filters=[MetadataFilter(key="year", operator=FilterOperator.LTE, value=1993), MetadataFilter(key="lang", value="de")],
                           condition=FilterCondition.OR)]


@pytest.mark.parametrize("filters", FILTERS)
def test_queries_find_what_the_simple_store_finds(store, filters):
    simple = SimpleVectorStore()
    simple.add(nodes())
    query = VectorStoreQuery(query_embedding=nodes()[3].embedding, similarity_top_k=6, filters=filters)
    ours, theirs = store.query(query), simple.query(query)
    assert ours.ids == theirs.ids and np.allclose(ours.similarities, theirs.similarities, atol=1e-5)
    assert [node.text for node in ours.nodes] == [f"text {i[1:]}" for i in theirs.ids]
    assert {node.node_id for node in store.get_nodes(filters=filters)} == set(simple.query(VectorStoreQuery(query_embedding=[1.0] * 16, similarity_top_k=20, filters=filters)).ids)


def test_nodes_come_back_as_they_went_and_are_removed(store):
    assert store.get_nodes(["n3", "none"])[0].metadata == {"year": 1993, "lang": "de"} and store.get_nodes(["n3"])[0].ref_doc_id == "doc0"
    store.delete("doc1")
    assert len(store.get_nodes()) == 15
    store.delete_nodes(["n0", "n1"])
    store.delete_nodes(filters=one("year", FilterOperator.GTE, 2005))
    assert len(store.client) == 8
    store.delete_nodes(["n2", "n3"], filters=one("lang", FilterOperator.EQ, "de"))
    assert "n2" in store.client and "n3" not in store.client
    found = store.query(VectorStoreQuery(query_embedding=nodes()[2].embedding, similarity_top_k=5, node_ids=["n2", "n12"]))
    assert found.ids == ["n2", "n12"]
    found = store.query(VectorStoreQuery(query_embedding=nodes()[2].embedding, similarity_top_k=5, doc_ids=["doc2"]))
    assert found.ids and all(10 <= int(i[1:]) < 15 for i in found.ids)
    assert len(store.query(VectorStoreQuery(query_embedding=nodes()[2].embedding, similarity_top_k=4, mode=VectorStoreQueryMode.MMR)).ids) == 4
    store.clear()
    assert store.get_nodes() == [] and store.query(VectorStoreQuery(query_embedding=[1.0] * 16)).ids == []


def test_an_index_over_the_store_needs_nothing_else(tmp_path):
    with warpwave.Store(tmp_path / "s.db", device="cpu") as file:
        store = WarpwaveVectorStore(file.create("nodes", dim=8))
        plain = [TextNode(text=f"text {i}", id_=f"n{i}") for i in range(5)]
        VectorStoreIndex(plain, storage_context=StorageContext.from_defaults(vector_store=store), embed_model=MockEmbedding(embed_dim=8))
    with warpwave.Store(tmp_path / "s.db", device="cpu") as file:
        index = VectorStoreIndex.from_vector_store(WarpwaveVectorStore(file["nodes"]), embed_model=MockEmbedding(embed_dim=8))
        assert sorted(hit.node.get_content() for hit in index.as_retriever(similarity_top_k=5).retrieve("text")) == [f"text {i}" for i in range(5)]
