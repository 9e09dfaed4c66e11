"""The vector store against LangChain's standard tests."""
import os
import subprocess

import numpy as np
import pytest
from langchain_core.documents import Document
from langchain_core.embeddings import DeterministicFakeEmbedding
from langchain_tests.integration_tests.vectorstores import VectorStoreIntegrationTests

import warpwave
from warpwave.langchain import WarpwaveVectorStore


@pytest.mark.filterwarnings("ignore")
class TestStandard(VectorStoreIntegrationTests):
    @pytest.fixture()
    def vectorstore(self):
        yield WarpwaveVectorStore(self.get_embeddings(), device="cpu")


@pytest.fixture
def store():
    documents = [Document(id=str(i), page_content=f"text {i}", metadata={"year": 1990 + i}) for i in range(20)]
    made = WarpwaveVectorStore(DeterministicFakeEmbedding(size=16), device="cpu")
    made.add_documents(documents)
    return made


def test_filters_scores_and_diversity(store):
    best, score = store.similarity_search_with_score("text 7", k=1)[0]
    assert best.id == "7" and best.metadata == {"year": 1997} and score > 0.999
    found = store.similarity_search("text 7", k=20, filter=lambda document: document.metadata["year"] < 1995)
    assert sorted(document.id for document in found) == ["0", "1", "2", "3", "4"]
    assert len(store.max_marginal_relevance_search("text 3", k=5)) == 5
    assert 0.999 < store.similarity_search_with_relevance_scores("text 3", k=1)[0][1] <= 1
    assert store.as_retriever(search_kwargs={"k": 2}).invoke("text 4")[0].id == "4"
    with pytest.raises(TypeError, match="does not take"):
        store.similarity_search("x", unknown=1)
    with pytest.raises(ValueError, match="Store"):
        store.similarity_search("x", where="1")


def test_a_collection_that_is_there_is_used(store):
    again = WarpwaveVectorStore(DeterministicFakeEmbedding(size=16), collection=store.collection)
    assert again.get_by_ids(["3", "none", "1"]) == store.get_by_ids(["3", "1"])
    again.delete(["3"])
    assert len(store.collection) == 19
    again.delete()
    assert len(store.collection) == 0
    assert again.similarity_search("x") == [] and isinstance(store.collection, warpwave.Collection)
    made = WarpwaveVectorStore.from_texts(["a", "b"], DeterministicFakeEmbedding(size=16), ids=["x", "x"], metric="l2", device="cpu")
    assert made.get_by_ids(["x"])[0].page_content == "b"
    with pytest.raises(ValueError, match="1 ids"):
        made.add_texts(["a", "b"], ids=["1"])


def test_filters_are_conditions_on_the_metadata(store):
    def ids(**options):
        return sorted((document.id for document in store.similarity_search("text 7", k=20, **options)), key=int)

    assert ids(filter={"year": {"$lt": 1995}}) == ["0", "1", "2", "3", "4"]
    assert ids(filter={"$or": [{"year": 1991}, {"year": {"$gte": 2009}}]}) == ["1", "19"]
    assert ids(filter={"year": {"$ne": 1990}, "$not": {"year": {"$gt": 1992}}}) == ["1", "2"]
    assert ids(filter={"year": {"$lt": 1995}}, where={"text": "text 3"}) == ["3"]
    assert [document.id for document in store.as_retriever(search_kwargs={"k": 3, "filter": {"year": 1994}}).invoke("x")] == ["4"]
    with pytest.raises(TypeError, match="filter is int; it must be a dict of conditions, or a function of a document"):
        store.similarity_search("x", filter=5)


def test_a_collection_that_the_command_wrote_is_opened(tmp_path):
    lines = tmp_path / "rows.jsonl"
    lines.write_text("".join(f'{{"id": "{i}", "vector": {[float(i), 1.0]}, "payload": {payload}}}\n' for i, payload in enumerate(
        ['{"text": "a fox", "year": 1999}', '{"text": "a dog", "year": 2001}', 'null', '[1, 2]'])))
    path = tmp_path / "s.db"
    subprocess.run([os.environ["WARPWAVE_COMMAND"], "store", "import", path, "docs", lines, "--metric", "l2"], check=True, capture_output=True)
    with warpwave.Store(path, device="cpu") as file:
        store = WarpwaveVectorStore(DeterministicFakeEmbedding(size=2), collection=file["docs"])
        found = store.similarity_search_by_vector([0.0, 1.0], k=4)
        assert [(document.id, document.page_content, document.metadata) for document in found] == [
            ("0", "a fox", {"year": 1999}), ("1", "a dog", {"year": 2001}), ("2", "", {}), ("3", "", {"payload": [1, 2]})]
        assert [document.id for document in store.similarity_search_by_vector([0.0, 1.0], filter={"year": {"$gt": 2000}})] == ["1"]
        store.add_texts(["a new one"], [{"year": 2010}], ids=["4"])
        assert sorted(document.id for document in store.similarity_search_by_vector([0.0, 1.0], k=9, filter={"year": {"$gt": 2000}})) == ["1", "4"]
        assert store.get_by_ids(["1"])[0].page_content == "a dog"


def test_rows_with_texts_of_their_own_are_documents(tmp_path):
    from ctypes import byref, c_char_p, cast, c_void_p, sizeof

    c = warpwave._native
    with warpwave.Store(tmp_path / "s.db", device="cpu") as file:
        docs = file.create("docs", dim=2)
        vectors = np.eye(2, dtype=np.float32)
        texts = (c_char_p * 2)("a fox".encode(), None)
        payloads = (c_char_p * 2)(b'{"text": "a field", "year": 1}', b'{"text": "a dog", "year": 2}')
        rows = c.ww_rows(sizeof(c.ww_rows), 2, 2, vectors.__array_interface__["data"][0], texts=cast(texts, c_void_p), payloads=cast(payloads, c_void_p))
        with docs._handle as pointer:
            assert c.ww_collection_add(pointer, byref(rows)) == 0
        store = WarpwaveVectorStore(DeterministicFakeEmbedding(size=2), collection=docs)
        found = store.similarity_search_by_vector([1.0, 0.0])
        assert [(one.page_content, one.metadata) for one in found] == [("a fox", {"text": "a field", "year": 1}), ("a dog", {"year": 2})]
        assert [one.page_content for one in store.get_by_ids(["1", "0"])] == ["a dog", "a fox"]
        assert [one.id for one in store.similarity_search_by_vector([0.0, 1.0], filter=lambda one: one.page_content == "a fox")] == ["0"]
        assert len(store.max_marginal_relevance_search_by_vector([1.0, 0.0], k=2)) == 2
