"""The document store against Haystack's own tests."""
import numpy as np
import pytest

pytest.importorskip("haystack", reason="SKIP: haystack-ai is not installed; make check-python installs it")
from haystack import Pipeline  # noqa: E402
from haystack.dataclasses import Document  # noqa: E402
from haystack.document_stores.types import DuplicatePolicy  # noqa: E402
from haystack.testing.document_store import DeleteByFilterTest, DocumentStoreBaseTests, UpdateByFilterTest  # noqa: E402

from warpwave.haystack import WarpwaveDocumentStore, WarpwaveEmbeddingRetriever  # noqa: E402


def rounded(document):
    embedding = None if document.embedding is None else np.asarray(document.embedding, np.float32).tolist()
    return Document.from_dict({**document.to_dict(flatten=False), "embedding": embedding})


class TestStandard(DocumentStoreBaseTests, DeleteByFilterTest, UpdateByFilterTest):
    @pytest.fixture
    def document_store(self):
        store = WarpwaveDocumentStore(device="cpu")
        yield store
        store.close()

    @staticmethod
    def assert_documents_are_equal(received, expected):
        """Embeddings are kept as f32."""
        assert sorted(received, key=lambda d: d.id) == sorted(map(rounded, expected), key=lambda d: d.id)

    def test_write_documents(self, document_store):
        documents = [Document(content="a"), Document(content="b", embedding=[0.5] * 768)]
        assert document_store.write_documents(documents) == 2
        self.assert_documents_are_equal(document_store.filter_documents(), documents)


def test_the_nearest_documents_are_retrieved_by_a_pipeline(tmp_path):
    store = WarpwaveDocumentStore(str(tmp_path / "documents.db"), embedding_dim=2, device="cpu")
    store.write_documents([Document(id="east", content="e", embedding=[1, 0], meta={"n": 1}), Document(id="north", content="n", embedding=[0, 1], meta={"n": 2}),
                           Document(id="none", content="no embedding", meta={"n": 3})])
    pipeline = Pipeline()
    pipeline.add_component("retriever", WarpwaveEmbeddingRetriever(store, top_k=5))
    found = pipeline.run({"retriever": {"query_embedding": [0.9, 0.1]}})["retriever"]["documents"]
    assert [document.id for document in found] == ["east", "north"] and found[0].score > 0.99
    filters = {"field": "meta.n", "operator": ">", "value": 1}
    assert [document.id for document in store.search([0.9, 0.1], filters)] == ["north"]
    store.write_documents([Document(id="east", content="changed", embedding=[1, 0])], DuplicatePolicy.OVERWRITE)
    store.close()
    again = WarpwaveEmbeddingRetriever.from_dict(pipeline.get_component("retriever").to_dict()).document_store
    assert again.count_documents() == 3 and again.filter_documents({"field": "id", "operator": "==", "value": "east"})[0].content == "changed"
    again.close()
