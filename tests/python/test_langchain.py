"""The vector store against LangChain's standard tests."""
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
