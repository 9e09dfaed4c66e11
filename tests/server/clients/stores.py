"""Vector stores of LangChain, Haystack, LlamaIndex and mem0 over the server at WARPWAVE_PORT: run with pytest. The first two have test suites of
their own, which are taken as they are."""
import os
import uuid
from dataclasses import replace

import pytest
from haystack import Document
from haystack.document_stores.errors import DuplicateDocumentError
from haystack.document_stores.types import DuplicatePolicy
from haystack.testing.document_store import DocumentStoreBaseExtendedTests
from haystack_integrations.document_stores.qdrant import QdrantDocumentStore
from haystack.dataclasses import SparseEmbedding
from langchain_qdrant import QdrantVectorStore, RetrievalMode, SparseEmbeddings, SparseVector
from langchain_tests.integration_tests.vectorstores import EMBEDDING_SIZE, VectorStoreIntegrationTests
from llama_index.core.schema import NodeRelationship, RelatedNodeInfo, TextNode
from llama_index.core.vector_stores import FilterOperator, MetadataFilter, MetadataFilters, VectorStoreQuery
from llama_index.core.vector_stores.types import VectorStoreQueryMode
from llama_index.vector_stores.qdrant import QdrantVectorStore as LlamaStore
from mem0.vector_stores.qdrant import Qdrant as Mem0Store
from qdrant_client import AsyncQdrantClient, QdrantClient, models

PORT = int(os.environ["WARPWAVE_PORT"])
URL = f"http://127.0.0.1:{PORT}"


@pytest.fixture
def name():
    chosen = f"s{uuid.uuid4().hex}"
    yield chosen
    QdrantClient(url=URL).delete_collection(chosen)


class TestLangChain(VectorStoreIntegrationTests):
    @pytest.fixture
    def vectorstore(self, name):
        client = QdrantClient(url=URL)
        client.create_collection(name, vectors_config=models.VectorParams(size=EMBEDDING_SIZE, distance=models.Distance.COSINE))
        return QdrantVectorStore(client=client, collection_name=name, embedding=self.get_embeddings())


def words_of(text):
    """Each word is a dimension."""
    words = sorted({sum(map(ord, word)) for word in text.lower().split()})
    return words, [1.0] * len(words)


class Words(SparseEmbeddings):
    def embed_documents(self, texts):
        return [self.embed_query(text) for text in texts]

    def embed_query(self, text):
        return SparseVector(indices=words_of(text)[0], values=words_of(text)[1])


class TestLangChainModes:
    @pytest.mark.parametrize("mode", [RetrievalMode.SPARSE, RetrievalMode.HYBRID])
    def test_words_are_found(self, name, mode):
        dense = TestLangChain.get_embeddings() if mode == RetrievalMode.HYBRID else None
        store = QdrantVectorStore.from_texts(["a fox runs", "a stone lies", "stones"], dense, sparse_embedding=Words(), host="127.0.0.1", port=PORT, collection_name=name,
                                             retrieval_mode=mode, metadatas=[{"n": i} for i in range(3)])
        assert store.similarity_search("stone lies", k=1)[0].metadata["n"] == 1
        some = models.Filter(must=[models.FieldCondition(key="metadata.n", match=models.MatchValue(value=0))])
        assert [one.page_content for one in store.similarity_search("stone fox", k=3, filter=some)] == ["a fox runs"]


class TestHaystackModes:
    def test_words_and_vectors_are_found(self, name):
        store = QdrantDocumentStore(host="127.0.0.1", port=PORT, index=name, embedding_dim=2, use_sparse_embeddings=True, progress_bar=False)
        made = [Document(content=text, embedding=vector, sparse_embedding=SparseEmbedding(*words_of(text)))
                for text, vector in (("a fox runs", [1.0, 0.0]), ("a stone lies", [0.0, 1.0]))]
        assert store.write_documents(made) == 2
        asked = SparseEmbedding(*words_of("stone lies"))
        assert store._query_by_sparse(asked, top_k=1)[0].content == "a stone lies"
        assert store._query_hybrid([0.0, 1.0], asked, top_k=2)[0].content == "a stone lies"


class EmbeddedStore(QdrantDocumentStore):
    """The suite writes documents without embeddings. The server has no points without vectors, so that these get one."""

    def write_documents(self, documents, policy=DuplicatePolicy.FAIL):
        if isinstance(documents, list) and all(isinstance(one, Document) for one in documents):
            documents = [one if one.embedding else replace(one, embedding=[1.0] + 767 * [0.0]) for one in documents]
        return super().write_documents(documents, policy)


class TestHaystack(DocumentStoreBaseExtendedTests):
    @pytest.fixture
    def document_store(self, name):
        return EmbeddedStore(host="127.0.0.1", port=PORT, index=name, embedding_dim=768, progress_bar=False)

    @staticmethod
    def assert_documents_are_equal(received, expected):
        """In any order, and without vectors, which come back with length 1."""
        plain = [sorted((replace(one, embedding=None, score=None) for one in some), key=lambda one: one.id) for some in (received, expected)]
        assert plain[0] == plain[1]

    def test_write_documents(self, document_store):
        """The suite leaves to each store what its default policy does: this one refuses duplicates."""
        document = Document(content="a document")
        assert document_store.write_documents([document]) == 1
        with pytest.raises(DuplicateDocumentError):
            document_store.write_documents([document], DuplicatePolicy.FAIL)


def nodes():
    texts = {"a fox": [1.0, 0.0, 0.0], "a wolf": [0.9, 0.1, 0.0], "a stone": [0.0, 0.0, 1.0]}
    return [TextNode(id_=str(uuid.UUID(int=i)), text=text, embedding=vector, metadata={"n": i, "kind": "thing" if i == 2 else "animal"},
                     relationships={NodeRelationship.SOURCE: RelatedNodeInfo(node_id=f"document {i}")})
            for i, (text, vector) in enumerate(texts.items())]


class TestLlamaIndex:
    @pytest.fixture
    def store(self, name):
        made = LlamaStore(collection_name=name, client=QdrantClient(url=URL), aclient=AsyncQdrantClient(url=URL))
        assert made.add(nodes()) == [str(uuid.UUID(int=i)) for i in range(3)]
        return made

    @staticmethod
    def texts(store, **asked):
        return [node.text for node in store.query(VectorStoreQuery(query_embedding=[1.0, 0.05, 0.0], similarity_top_k=2, **asked)).nodes]

    def test_the_nearest_nodes_are_found(self, store):
        assert self.texts(store) == ["a fox", "a wolf"]

    def test_filters_leave_some(self, store):
        thing = MetadataFilter(key="kind", value="thing")
        late = MetadataFilter(key="n", value=1, operator=FilterOperator.GTE)
        some = MetadataFilter(key="kind", value=["thing", "plant"], operator=FilterOperator.IN)
        assert self.texts(store, filters=MetadataFilters(filters=[thing])) == ["a stone"]
        assert self.texts(store, filters=MetadataFilters(filters=[late])) == ["a wolf", "a stone"]
        assert self.texts(store, filters=MetadataFilters(filters=[some])) == ["a stone"]

    def test_words_and_vectors_are_found(self, name):
        many = lambda texts: tuple(zip(*map(words_of, texts)))
        store = LlamaStore(collection_name=name, client=QdrantClient(url=URL), enable_hybrid=True, sparse_doc_fn=many, sparse_query_fn=many)
        store.add(nodes())
        for mode in ("sparse", "hybrid"):
            asked = VectorStoreQuery(query_embedding=[0.0, 0.0, 1.0], query_str="a stone", similarity_top_k=1, sparse_top_k=2, mode=VectorStoreQueryMode(mode))
            assert store.query(asked).nodes[0].text == "a stone"

    def test_documents_and_nodes_are_deleted(self, store):
        store.delete("document 0")
        assert self.texts(store) == ["a wolf", "a stone"]
        store.delete_nodes([str(uuid.UUID(int=1))])
        assert [node.text for node in store.get_nodes()] == ["a stone"]
        store.clear()


class TestMem0:
    def test_memories_are_kept_and_found(self, name):
        store = Mem0Store(collection_name=name, embedding_model_dims=3, client=QdrantClient(url=URL))
        ids = [str(uuid.UUID(int=i)) for i in range(3)]
        vectors = [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.9, 0.1, 0.0]]
        store.insert(vectors, [{"data": f"memory {i}", "user_id": "amy" if i < 2 else "bob"} for i in range(3)], ids)
        found = store.search(query="memory", vectors=[1.0, 0.0, 0.0], top_k=2, filters={"user_id": "amy"})
        assert [one.id for one in found] == ids[:2]
        store.update(ids[1], vector=[1.0, 0.0, 0.0], payload={"data": "new", "user_id": "bob"})
        assert store.get(ids[1]).payload["data"] == "new"
        store.delete(ids[0])
        assert len(store.list(filters={"user_id": "bob"}, top_k=9)[0]) == 2 and name in [one.name for one in store.list_cols().collections]
