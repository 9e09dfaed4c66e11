"""Sparse vectors of a store's rows: written, searched, fetched and saved; compared to the bit with a loop over NumPy's numbers."""
import asyncio
import pickle

import numpy as np
import pytest
from small_models import write_encoder

import warpwave

SIZE = 50  # indices of the random vectors


def random_vectors(random, count):
    """Values of 16 bits: products and sums are exact in double precision, so that rounding them once is a fused multiply-add."""
    return [{int(index) * 80_000_000: float(random.integers(-2**16, 2**16)) / 2**10 for index in random.choice(SIZE, random.integers(1, 12), replace=False)}
            for _ in range(count)]


def fused_dot(query, row):
    total = np.float32(0)
    for index in sorted(query.keys() & row.keys()):
        total = np.float32(float(np.float32(query[index])) * float(np.float32(row[index])) + float(total))
    return total + np.float32(0)


def nearest(query, rows, k):
    """The rows that have an index in common with the query, best first, equal scores by row."""
    scores = [(fused_dot(query, row), number) for number, row in enumerate(rows) if query.keys() & row.keys()]
    return sorted(scores, key=lambda one: (-one[0], one[1]))[:k]


def with_idf(query, rows):
    weights = {}
    for index, value in query.items():
        holding = sum(index in row for row in rows)
        weights[index] = np.float32(value) * np.float32(np.log1p((len(rows) - holding + 0.5) / (holding + 0.5)))
    return weights


def same(sparse, expected):
    return sparse.indices.dtype == np.uint32 and sparse.values.dtype == np.float32 and dict(zip(sparse.indices.tolist(), sparse.values.tolist())) == expected and (
        np.diff(sparse.indices.astype(np.int64)) > 0).all()


class Matrix:
    """What is read of a matrix of scipy.sparse."""

    def __init__(self, indptr, indices, data, shape):
        self.indptr, self.indices, self.data, self.shape = indptr, indices, data, shape

    def tocsr(self):
        return self


def matrix_of(vectors):
    return Matrix(np.cumsum([0, *map(len, vectors)]).astype(np.int32), np.array([i for one in vectors for i in one]), np.array([x for one in vectors for x in one.values()]),
                  (len(vectors), 2**32))


@pytest.fixture
def store(tmp_path):
    with warpwave.Store(tmp_path / "s.db", device="cpu") as opened:
        yield opened


@pytest.fixture
def docs(store):
    made = store.create("docs", dim=2, metric="l2")
    made.add([[0, 1], [1, 1], [2, 1], [3, 1]], ids=["a", "b", "c", "none"], payloads=[{"n": 1}, {"n": 2}, {"n": 2}, {"n": 3}],
             sparse=[{5: 1.0, 7: 2.0}, {7: 0.5}, {4294967295: 1.5, 5: -1.0}, None])
    return made


def test_searches_find_what_a_loop_over_all_rows_finds(store, random):
    rows, queries = random_vectors(random, 900), random_vectors(random, 9)
    docs = store.create("docs", dim=3)
    docs.add(random.standard_normal((900, 3)), sparse=rows)
    for modifier in (None, "idf"):
        found = docs.search(sparse=queries, k=17, modifier=modifier)
        assert len(found) == 9
        for number, query in enumerate(queries):
            expected = nearest(query if modifier is None else with_idf(query, rows), rows, 17)
            assert found.rows[number].tolist() == [row for _, row in expected] and found.ids[number].tolist() == [str(row) for _, row in expected]
            assert found.scores[number].tobytes() == np.array([score for score, _ in expected], np.float32).tobytes()
    one = docs.search(sparse=queries[2])
    assert one.rows.tolist() == docs.search(sparse=queries).rows[2].tolist() and len(one) == 10
    assert [hit.id for hit in docs.search(sparse={3: 1.0})] == []


def test_all_forms_of_a_vector_are_the_same(docs, store):
    other = store.create("other", dim=2)
    vectors = [{5: 1.0, 7: 2.0}, {7: 0.5}, {4294967295: 1.5, 5: -1.0}, {}]
    forms = [[tuple(map(list, (one, one.values()))) for one in vectors], [(np.array([*one], np.int64), np.array([*one.values()], np.float64)) for one in vectors],
             [*vectors[:3], None], [{np.uint32(index): np.float16(value) for index, value in one.items()} for one in vectors], matrix_of(vectors), docs.get(sparse=True).sparse]
    for form in forms:
        other.upsert(np.eye(2)[[0, 1, 0, 1]], ids=["a", "b", "c", "none"], sparse=form)
        got = other.get(["a", "b", "c", "none"], sparse=True).sparse
        assert all(same(one, expected) for one, expected in zip(got, vectors[:3])) and got[3] is None
        found = other.search(sparse=form)
        assert [one.tolist() for one in found.ids] == [["a", "b", "c"], ["a", "b"], ["c", "a"], []] and found.scores[0].tolist() == [5.0, 1.0, -1.0]
    for form in ({5: 2.0}, ([5], [2.0]), (np.array([5], np.uint32), np.array([2], np.int8)), docs.get("a", sparse=True).sparse):
        found = docs.search(sparse=form, k=1)
        assert found.ids.tolist() == ["a"]
    docs.add([7, 7], ids="one", sparse={9: 1.0})
    docs.add([8, 8], ids="pair", sparse=([9], [2.0]))
    assert docs.search(sparse=Matrix([0, 1], np.array([9]), np.array([1.0]), (10,))).ids.tolist() == ["pair", "one"]


@pytest.mark.check
def test_matrices_of_scipy(store, random):
    scipy = pytest.importorskip("scipy.sparse")
    dense = np.where(random.random((40, 30)) < 0.2, random.integers(1, 9, (40, 30)), 0).astype(np.float32)
    docs = store.create("docs", dim=1, metric="dot")
    docs.add(np.zeros((40, 1)), sparse=scipy.csr_matrix(dense))
    rows = [{i: float(x) for i, x in enumerate(row) if x} for row in dense]
    for matrix in (scipy.csr_array(dense[:5]), scipy.coo_matrix(dense[:5]), scipy.csc_matrix(dense[:5]), scipy.csr_matrix(dense)[:5]):
        found = docs.search(sparse=matrix, k=40)
        assert [one.tolist() for one in found.rows] == [[row for _, row in nearest(query, rows, 40)] for query in rows[:5]]
    assert docs.search(sparse=scipy.csr_array(dense[3])).rows.tolist() == [row for _, row in nearest(rows[3], rows, 10)]


def test_where_mask_radius_and_groups_hold(docs):
    assert docs.search(sparse={7: 1.0}, where={"n": 2}).ids.tolist() == ["b"]
    assert docs.search(sparse={7: 1.0}, where="payload->>'$.n' = :n", parameters={"n": 1}, payloads=True).payloads == [{"n": 1}]
    assert docs.search(sparse={7: 1.0}, mask=np.arange(docs.mask_rows) == 1).ids.tolist() == ["b"]
    assert docs.search(sparse={5: 1.0}, radius=0.0).ids.tolist() == ["a"] and docs.search(sparse={5: 1.0}, radius=-1.0).ids.tolist() == ["a", "c"]
    ranged = docs.search(sparse=[{5: 1.0}, {6: 1.0}], radius=-9.0, k=1)
    assert [one.tolist() for one in ranged.ids] == [["a"], []] and ranged.totals.tolist() == [2, 0]
    assert docs.search(sparse={5: 1.0, 7: 2.0}, group_by="n", groups=5).ids.tolist() == ["a", "b"]
    assert docs.search(sparse={5: 1.0}, vectors=True).vectors.tolist() == [[0, 1], [2, 1]]
    assert len(docs.search(sparse=[])) == 0 and docs.search(sparse={}).ids.tolist() == []


def test_sparse_vectors_are_fetched_if_asked_for(docs):
    assert same(docs.get("a", sparse=True).sparse, {5: 1.0, 7: 2.0}) and docs.get("none", sparse=True).sparse is None
    assert "sparse=SparseVector(indices=array([5, 7]" in repr(docs.get("a", sparse=True)) and "sparse" not in repr(docs["a"])
    for row in (docs["a"], docs.search([0, 1])[0], next(docs.iterate())):
        with pytest.raises(ValueError, match="the sparse vector was not fetched; ask for it with sparse=True"):
            row.sparse  # noqa: B018
    with pytest.raises(ValueError, match="ask for them with sparse=True"):
        docs.search([0, 1]).sparse  # noqa: B018
    assert [None if row.sparse is None else row.sparse.indices.tolist() for row in docs.iterate(sparse=True)] == [[5, 7], [7], [5, 4294967295], None]
    identifier, vector, payload = docs.get("b", sparse=True)
    assert (identifier, vector.tolist(), payload) == ("b", [1, 1], {"n": 2})
    found = docs.search([2.1, 1], k=2, sparse=True)
    assert same(found[0].sparse, {5: -1.0, 4294967295: 1.5}) and found[1].sparse is None and found[1:].sparse == [None]
    several = docs.search([[0, 1], [3, 1]], k=1, sparse=True)
    assert same(several.sparse[0][0], {5: 1.0, 7: 2.0}) and several.sparse[1] == [None] and several[1].sparse == [None]
    assert same(pickle.loads(pickle.dumps(found)).sparse[0], {5: -1.0, 4294967295: 1.5})
    assert found.to_list()[0]["sparse"] == {"indices": [5, 4294967295], "values": [-1.0, 1.5]} and found.to_list()[1]["sparse"] is None
    assert "sparse" not in docs.search([0, 1]).to_list()[0] and docs.search([0, 1], k=0, sparse=True).sparse == []
    assert docs.search([0, 1], k=1, sparse=True).to_pandas()["sparse"][0] == {"indices": [5, 7], "values": [1.0, 2.0]}


@pytest.mark.check
def test_tables_of_arrow_have_sparse_vectors(docs):
    pyarrow = pytest.importorskip("pyarrow")
    table = docs.get(sparse=True).to_arrow()
    assert table.schema.field("sparse").type == pyarrow.struct([("indices", pyarrow.list_(pyarrow.uint32())), ("values", pyarrow.list_(pyarrow.float32()))])
    assert table.column("sparse").to_pylist()[2:] == [{"indices": [5, 4294967295], "values": [-1.0, 1.5]}, None]


def test_rows_are_replaced_updated_and_removed_with_their_sparse_vectors(docs, store):
    docs.upsert([[9, 9]], ids=["a"], sparse=[{8: 1.0}])
    assert docs.search(sparse={5: 1.0}).ids.tolist() == ["c"] and docs.search(sparse={8: 1.0}).ids.tolist() == ["a"]
    docs.upsert([[9, 9]], ids=["a"])
    assert docs.get("a", sparse=True).sparse is None
    assert docs.update("b", [4, 4]) == 1 and same(docs.get("b", sparse=True).sparse, {7: 0.5})
    docs.update("b", payloads={"n": 5})
    assert same(docs.get("b", sparse=True).sparse, {7: 0.5})
    docs.update(["b", "c"], [[4, 5], [4, 6]], sparse=[{8: 3.0}, None])
    assert same(docs.get("b", sparse=True).sparse, {8: 3.0}) and docs.get("c", sparse=True).sparse is None and docs["b"].payload == {"n": 5}
    docs.update("b", [4, 4], sparse={11: 1.0})
    assert docs.search(sparse={11: 2.0}).scores.tolist() == [2.0]
    docs.remove("b")
    assert docs.search(sparse={11: 2.0}).ids.tolist() == []
    docs.compact()
    store.check()


def test_the_file_keeps_them_and_save_copies_them(tmp_path):
    with warpwave.Store(tmp_path / "a.db", device="cpu") as store:
        docs = store.create("docs", dim=2)
        docs.add(np.eye(2), ids=["x", "y"], sparse=[{1: 1.0}, {1: 2.0, 2: 1.0}])
        docs.save(tmp_path / "b.db")
    for name in ("a.db", "b.db"):
        with warpwave.Store(tmp_path / name, device="cpu") as store:
            assert store["docs"].search(sparse={1: 1.0}).ids.tolist() == ["y", "x"]
            assert store["docs"].search([1, 0], k=1, sparse=True)[0].sparse.indices.tolist() == [1]


def test_rows_may_have_only_sparse_vectors(store):
    words = store.create("words", dim=1, metric="dot")
    words.add(np.zeros((3, 1)), ids=["a", "b", "c"], sparse=[{1: 1.0}, {1: 2.0, 2: 1.0}, {2: 3.0}])
    assert words.search(sparse={1: 1.0}, modifier="idf").ids.tolist() == ["b", "a"]
    with pytest.raises(ValueError, match="get dense vectors of zeros"):
        words.add(ids=["d"], sparse=[{1: 1.0}])


@pytest.mark.parametrize("sparse, error, message", [
    ([{1: float("nan")}, {}], ValueError, "sparse vector of row 0: column 0 is NaN"),
    ([{}, {1: 1e39}], ValueError, "sparse vector of row 1: .*finite"),
    ([{}, ([3, 3], [1.0, 2.0])], ValueError, "index 3 appears twice"),
    ([{}], ValueError, "there is 1 sparse vector for 2 vectors"),
    ([{}, {}, {}], ValueError, "there are 3 sparse vectors for 2 vectors"),
    ({1: 1.0}, ValueError, "there is 1 sparse vector for 2 vectors"),
    ([([1, 2], [1.0]), {}], ValueError, r"sparse\[0\] has 2 indices and 1 values"),
    ([{}, {-1: 1.0}], ValueError, r"sparse\[1\]: an index is -1; it must be from 0 to 4294967295"),
    ([{2**32: 1.0}, {}], ValueError, "an index is 4294967296"),
    ([{2**70: 1.0}, {}], TypeError, "the indices are of type object"),
    ([{1.5: 1.0}, {}], TypeError, "the indices are of type float64"),
    ([{True: 1.0}, {}], TypeError, "the indices are of type bool"),
    ([{"a": 1.0}, {}], TypeError, "the indices are of type"),
    ([{1: "a"}, {}], TypeError, "the values are of type"),
    ([{1: None}, {}], TypeError, "the values are of type object"),
    ([([[1]], [1.0]), {}], ValueError, "the indices have 2 dimensions"),
    ([([1], 1.0), {}], ValueError, "the values have 0 dimensions"),
    ([[1, 2], {}], TypeError, r"sparse\[0\] is \[1, 2\]; it must be a dict"),
    (([1], [1.0], [1]), TypeError, "it must be a dict"),
    ("words", TypeError, "sparse is str; it must be a dict of indices and values"),
    (np.zeros((2, 3)), TypeError, "sparse is ndarray"),
    ([(np.arange(65537), np.ones(65537)), {}], ValueError, "65537 indices"),
    (Matrix([0, 1, 3], np.array([1, 2]), np.array([1.0, 2.0]), (2, 9)), ValueError, "indptr"),
    (Matrix([0, 2, 1], np.array([1, 2]), np.array([1.0, 2.0]), (2, 9)), ValueError, "indptr"),
    (Matrix([-1, 0, 1], np.array([1, 2]), np.array([1.0, 2.0]), (2, 9)), ValueError, "indptr"),
])
def test_what_is_no_sparse_vector_is_refused_and_changes_nothing(docs, sparse, error, message):
    with pytest.raises(error, match=message):
        docs.add([[5, 5], [6, 6]], sparse=sparse)
    assert len(docs) == 4 and docs.search(sparse={3: 1.0, 1: 1.0}).ids.tolist() == []


@pytest.mark.parametrize("options, error, message", [
    ({"queries": [0, 1], "sparse": {1: 1.0}}, ValueError, "only one of them"),
    ({"text": "a", "sparse": {1: 1.0}}, ValueError, "only one of them"),
    ({"sparse": {1: 1.0}, "mmr": 0.5}, ValueError, "mmr is for a search by vectors"),
    ({"sparse": {1: 1.0}, "nprobe": 1}, ValueError, "nprobe"),
    ({"sparse": {1: 1.0}, "modifier": "bm25"}, ValueError, "modifier is 'bm25'; it must be one of idf"),
    ({"sparse": {1: 1.0}, "modifier": 1}, TypeError, "modifier is 1"),
    ({"queries": [0, 1], "modifier": "idf"}, ValueError, "modifier is for a search by sparse vectors"),
    ({"queries": [0, 1], "sparse": True, "modifier": "idf"}, ValueError, "modifier is for a search by sparse vectors"),
    ({"sparse": ([2, 2], [1.0, 1.0])}, ValueError, "sparse vector of query 0: index 2 appears twice"),
    ({"sparse": [{}, {1: float("inf")}]}, ValueError, "sparse vector of query 1"),
    ({"sparse": {1: 1.0}, "k": -1}, ValueError, "k is -1"),
])
def test_searches_that_cannot_be_are_refused(docs, options, error, message):
    with pytest.raises(error, match=message):
        docs.search(**options)


def test_updates_need_vectors_and_all_or_nothing_is_changed(docs):
    with pytest.raises(ValueError, match="sparse vectors are given without vectors; give both"):
        docs.update("a", sparse={1: 1.0})
    with pytest.raises(ValueError, match="where and merge"):
        docs.update(where={"n": 1}, vectors=[[1, 1]], sparse={1: 1.0})
    with pytest.raises(KeyError):
        docs.update(["a", "missing"], [[1, 1], [1, 1]], sparse=[{1: 1.0}, {1: 1.0}])
    assert docs.search(sparse={1: 1.0}).ids.tolist() == [] and same(docs.get("a", sparse=True).sparse, {5: 1.0, 7: 2.0})


def test_a_collection_in_memory_refuses_them():
    memory = warpwave.Collection(2, device="cpu")
    memory.add([[1, 2]], ids=["a"])
    for call in (lambda: memory.add([[1, 2]], sparse=[{1: 1.0}]), lambda: memory.update("a", [1, 2], sparse={1: 1.0}), lambda: memory.search(sparse={1: 1.0})):
        with pytest.raises(warpwave.InvalidArgument, match="in memory, and only"):
            call()
    assert len(memory) == 1 and memory.get("a", sparse=True).sparse is None


def test_a_long_search_runs_on_a_thread_and_the_first_dense_one_still_loads(store, random, monkeypatch):
    docs = store.create("docs", dim=2)
    rows = random_vectors(random, 300)
    docs.add(random.standard_normal((300, 2)), sparse=rows)
    names, here = [], warpwave.vectors.interruptible
    monkeypatch.setattr(warpwave.vectors, "interruptible", lambda call, progress, what, **options: (names.append(what), here(call, progress, what, **options)))
    assert len(docs.search(sparse=rows[7])) == 10 and names == []
    monkeypatch.setattr(warpwave.vectors, "_LONG_SEARCH", 1000)
    found = docs.search(sparse=rows, k=3)
    assert [one.tolist() for one in found.rows] == [[row for _, row in nearest(query, rows, 3)] for query in rows] and names == ["search"]
    assert docs._cold and len(docs.search([1, 0])) == 10 and not docs._cold


def test_texts_have_sparse_vectors_too(store, tmp_path):
    docs = store.create("docs", dim=2, embed=lambda texts: np.eye(2)[[len(text) % 2 for text in texts]])
    docs.add(texts=["one", "four"], ids=["a", "b"], sparse=[{1: 1.0}, {2: 1.0}])
    docs.update("a", texts="three", sparse={3: 1.0})
    found = docs.search(sparse=[{2: 1.0}, {3: 1.0}], texts=True)
    assert [one.tolist() for one in found.texts] == [["four"], ["three"]]
    assert docs.search(text="x", k=1, sparse=True)[0].sparse.indices.tolist() == [3]
    write_encoder(tmp_path / "model.gguf", context=64)
    try:
        notes = store.create("notes", model=str(tmp_path / "model.gguf"))
    except ImportError as error:
        pytest.skip(f"SKIP: no models in this build: {error}")
    notes.add(texts=["a squirrel", "a boat"], ids=["s", "b"], sparse=[{1: 1.0}, {2: 1.0}])
    notes.upsert(texts=["a ship"], ids=["b"], sparse=[{2: 2.0}])
    assert notes.search(sparse={2: 1.0}, texts=True)[0].text == "a ship" and notes.search(sparse={2: 1.0}).scores.tolist() == [2.0]
    hits = notes.search(text="a squirrel", k=2, mode="hybrid", sparse=True)
    assert {hit.id: hit.sparse.indices.tolist() for hit in hits} == {"s": [1], "b": [2]}
    reranked = notes.search(text="a squirrel", k=1, rerank=lambda query, texts: [float("ship" in text) for text in texts], sparse=True)
    assert reranked[0].sparse.values.tolist() == [2.0]
    with pytest.raises(ValueError, match="documents, which are split"):
        notes.add(documents={"d": "A text."}, sparse=[{1: 1.0}])
    with pytest.raises(ValueError, match="only one of them"):
        notes.search(text="a", sparse={1: 1.0})


def test_with_asyncio(tmp_path):
    async def work():
        async with await warpwave.AsyncStore.open(tmp_path / "s.db", device="cpu") as store:
            docs = await store.create("docs", dim=2)
            await docs.add(np.eye(2), ids=["x", "y"], sparse=[{1: 1.0}, {2: 1.0}])
            assert (await docs.search(sparse={2: 1.0})).ids.tolist() == ["y"]
            assert [row.sparse.indices.tolist() async for row in docs.iterate(sparse=True)] == [[1], [2]]

    asyncio.run(work())


def test_texts_are_made_into_vectors_of_their_words(tmp_path):
    texts = ["the red fox", "the dog and the other dog", "a RED dog's house"]
    vectors = warpwave.bm25(texts)
    assert [len(vector.indices) for vector in vectors] == [3, 4, 5]
    assert warpwave.bm25("hello").indices.tolist() == [0x248BFA47]  # MurmurHash3
    asked = warpwave.bm25("Red dog dog", query=True)
    assert asked.values.tolist() == [1, 1]
    rows = warpwave.Store(tmp_path / "bm25.db").create("docs", dim=1, metric="dot")
    rows.add(np.zeros((3, 1)), ids=["fox", "dog", "house"], sparse=vectors)
    assert rows.search(sparse=asked, modifier="idf", k=2).ids.tolist() == ["house", "dog"]
    weight = 2 * 2.2 / (2 + 1.2 * (0.25 + 0.75 * 6 / 10))
    assert np.float32(weight) in warpwave.bm25(texts[1], average_words=10).values
    with pytest.raises(TypeError, match=r"texts\[1\]"):
        warpwave.bm25(["a", 1])
    with pytest.raises(ValueError, match="NUL"):
        warpwave.bm25("a\0b")
    with pytest.raises(warpwave.OutOfRange, match="b is 2"):
        warpwave.bm25("a", b=2)
