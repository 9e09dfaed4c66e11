"""What C cannot hold is refused before a call, with the argument's name: numbers that would wrap, texts that would be cut at a NUL. And what is
closed is closed for good."""
import gc
import os
import re
import shutil
import sqlite3
import threading
from ctypes import Structure

import numpy as np
import pytest
from conftest import ROOT
from small_models import write_decoder

import warpwave
from warpwave import _native as c

try:
    c.ww_model_token_ends(None, 0)
    MODELS = True
except ImportError:
    MODELS = False


@pytest.fixture
def collection():
    rows = warpwave.Collection(2, metric="l2", device="cpu")
    rows.add([[0, 1], [1, 1], [2, 1]], ids=["a", "b", "c"])
    return rows


@pytest.fixture
def store(tmp_path):
    with warpwave.Store(tmp_path / "a.db", device="cpu") as opened:
        docs = opened.create("docs", dim=2)
        docs.add([[1, 0], [0, 1]], ids=["mine", "theirs"], payloads=[{"tenant": 7}, {"tenant": 8}])
        yield opened


@pytest.mark.parametrize("k", [2**31, 2**32 + 1, -2**31 - 1, 2**64 + 1, 2**200])
def test_a_k_that_does_not_fit_is_refused(collection, k):
    with pytest.raises(ValueError, match="^k is"):
        collection.search([0, 0], k=k)


@pytest.mark.parametrize("k", [2**63, 2**64 + 1, -2**63 - 1])
def test_a_limit_of_a_radius_that_does_not_fit_is_refused(collection, k):
    with pytest.raises(ValueError, match="^k is"):
        collection.search([0, 0], k=k, radius=9)


@pytest.mark.parametrize("k", [True, 1.0, 1.9, "1", np.float32(1), np.bool_(True)])
def test_a_k_that_is_no_integer_is_refused(collection, k):
    for radius in (None, 9.0):
        with pytest.raises(TypeError, match="^k is"):
            collection.search([0, 0], k=k, radius=radius)


def test_negative_numbers_are_refused(collection):
    with pytest.raises(ValueError, match="k is -1"):
        collection.search([0, 0], k=-1)
    with pytest.raises(ValueError, match="-1"):
        collection.reserve(-1)
    with pytest.raises(ValueError, match="dim|dimension"):
        warpwave.Collection(-2, device="cpu")
    with pytest.raises(ValueError, match="seed is -1"):
        warpwave.Device("cpu").seed(-1)


def test_numpys_integers_are_integers(collection):
    assert len(collection.search([0, 0], k=np.int64(2))) == 2
    assert warpwave.Collection(np.uint8(3), device="cpu").dim == 3


@pytest.mark.parametrize("dim", [2**32 + 2, 2**31, -2**32 + 2, 2**64 + 2])
def test_a_dim_that_does_not_fit_is_refused(store, dim):
    with pytest.raises(ValueError, match="^dim is"):
        warpwave.Collection(dim, device="cpu")
    with pytest.raises(ValueError, match="^dim is"):
        store.create("wide", dim)
    assert list(store) == ["docs"]


@pytest.mark.parametrize("dim", [True, 2.5, "2"])
def test_a_dim_that_is_no_integer_is_refused(dim):
    with pytest.raises(TypeError, match="^dim is"):
        warpwave.Collection(dim, device="cpu")


def test_other_numbers_that_do_not_fit_are_refused(collection, tmp_path):
    x = warpwave.zeros((2, 2), device="cpu")
    for call, named in ((lambda: collection.reserve(2**64 + 3), "rows"), (lambda: warpwave.Store(tmp_path / "n.db", "cpu", busy_ms=2**32), "busy_ms"),
                        (lambda: warpwave.Store(tmp_path / "n.db", "cpu", filter_ms=2**32), "filter_ms"), (lambda: warpwave.Device("cpu").seed(2**64), "seed"),
                        (lambda: warpwave.Store(tmp_path / "n.db", "cpu", page_bytes=2**32 + 4096), "page_bytes"),
                        (lambda: warpwave.zeros((2**64 + 2,), device="cpu"), "shape"), (lambda: warpwave.zeros(2**64, device="cpu"), "shape"),
                        (lambda: x.reshape(2**64 + 4), "shape"), (lambda: warpwave.broadcast_to(x, (2**64 + 2, 2, 2)), "shape"),
                        (lambda: warpwave.top_k(x, 2**64 + 1), "k"), (lambda: warpwave.softmax(x, 2**32), "axis"),
                        (lambda: warpwave.cumulative_sum(x, axis=2**32), "axis"), (lambda: warpwave.permute_dims(x, (2**32 + 1, 0)), "axes"),
                        (lambda: warpwave.concat([x, x], axis=2**32 + 1), "axis"), (lambda: x[2**64:], "begin"), (lambda: warpwave.expand_dims(x, 2**32), "axis"),
                        (lambda: warpwave.asarray(np.array([2**64 - 1], np.uint64), dtype="i64", device="cpu"), "value")):
        with pytest.raises(ValueError, match=f"^({named}) (is|holds)"):
            call()
    with pytest.raises(TypeError, match="^rows is"):
        collection.reserve(2.5)
    with pytest.raises(TypeError, match="^shape holds"):
        warpwave.zeros((2, 1.5), device="cpu")
    assert not (tmp_path / "n.db").exists()


def test_a_where_with_a_nul_is_refused(store):
    user = "tenant = 8) OR (1\0"
    with pytest.raises(ValueError, match="^where holds a NUL"):
        store["docs"].search([1, 0], where=f"({user}) AND payload->>'$.tenant' = 7")
    with pytest.raises(ValueError, match="^name holds a NUL"):
        store["docs"].search([1, 0], where="id = :a", parameters={"a\0b": "mine"})


def test_names_and_ids_with_a_nul_are_refused(store, collection):
    for call, named in ((lambda: warpwave.Collection(2, device="cpu", name="a\0b"), "name"), (lambda: store.create("docs\0x", 2), "name"),
                        (lambda: store["docs\0x"], "name"), (lambda: store.drop("docs\0x"), "name"), (lambda: store.index("docs\0x", "$.a"), "collection"),
                        (lambda: store.index("docs", "$.tenant\0"), "path"), (lambda: collection.add([[1, 2]], ids=["x\0y"]), "ids"),
                        (lambda: collection.remove("a\0"), "ids"), (lambda: collection.get(["a\0"]), "ids"), (lambda: collection.update("a\0", [[1, 2]]), "ids"),
                        (lambda: warpwave.Device("cpu\0x"), "name"), (lambda: warpwave.backend_absence("cuda\0"), "backend"),
                        (lambda: warpwave.QuantMatrix.from_array(np.ones((1, 32)), "q8_0\0", "cpu"), "name")):
        with pytest.raises(ValueError, match=f"^{named}\\b.* holds a NUL"):
            call()
    assert list(store) == ["docs"] and list(collection) == ["a", "b", "c"]


def test_paths_with_a_nul_are_refused(store, tmp_path):
    x = np.ones((2, 2), np.float32)
    np.save(tmp_path / "x.npy", x)
    cut = str(tmp_path / "x.npy") + "\0.txt"
    for call in (lambda: warpwave.Store(str(tmp_path / "b.db") + "\0", "cpu"), lambda: store.backup(str(tmp_path / "b.db") + "\0"), lambda: warpwave.load_npy(cut, "cpu"),
                 lambda: warpwave.load_safetensors(cut, "x", "cpu"), lambda: warpwave.open_gguf(cut, "cpu"), lambda: warpwave.Model(cut, "cpu")):
        with pytest.raises(ValueError, match="^path holds a NUL"):
            call()
    assert not (tmp_path / "b.db").exists()


@pytest.mark.skipif(not MODELS, reason="SKIP: no models in this build")
def test_texts_of_models_may_hold_a_nul_where_their_length_is_told(tmp_path):
    write_decoder(tmp_path / "decoder.gguf")
    model = warpwave.Model(tmp_path / "decoder.gguf", "cpu")
    ids = model.tokenize("a\0b")
    assert model.detokenize(ids) == "a\0b"
    pieces = [model.generate("a", 40, temperature=100.0, seed=seed, on_text=lambda text: None) for seed in range(20)]
    assert any("\0" in text[:-1] for text in pieces)  # one token of 258 is a NUL
    with pytest.raises(ValueError, match="^content holds a NUL"):
        model.chat([{"role": "user", "content": "a\0b"}])
    session = model.session()
    with pytest.raises(ValueError, match="^tokens is"):
        session.generate(2**64 + 1)
    with pytest.raises(ValueError, match="^tokens"):
        session.feed([2**32 + 1])
    with pytest.raises(ValueError, match="^length is"):
        session.truncate(-2**64)
    with pytest.raises(ValueError, match="^top_k is"):
        session.feed(ids) or session.sample(top_k=2**32 + 1)
    with pytest.raises(ValueError, match="^path holds a NUL"):
        session.save(str(tmp_path / "s") + "\0")


def test_every_struct_and_function_is_checked():
    """No field and no parameter of the API takes a number that does not fit, or a text that would be cut."""
    structs = [value for value in vars(c).values() if isinstance(value, type) and issubclass(value, Structure) and value is not Structure]
    assert len(structs) > 30
    for kind in structs:
        for name, field in kind._fields_:
            if field in (c.c_int, c.c_int32, c.c_uint32, c.c_int64, c.c_size_t):
                with pytest.raises(ValueError, match=f"^{name} is"):
                    setattr(kind(), name, 2**64)
                with pytest.raises(TypeError, match=f"^{name} is"):
                    setattr(kind(), name, 1.0)
            elif field is c.c_char_p:
                with pytest.raises(ValueError, match=f"^{name} holds a NUL"):
                    kind(**{name: b"a\0"})
    declared = (ROOT / "python" / "warpwave" / "_native.py").read_text(encoding="utf-8")
    functions = re.findall(r"^(ww_\w+) = function\((.*?)\)$", declared, flags=re.M | re.S)
    assert len(functions) > 250
    unchecked = {name for name, listed in functions for kind in re.split(r",\s+", re.sub(r"\([^)]*\)", "", listed))[3:] if kind.startswith(("c_int", "c_uint", "c_size", "c_char"))}
    assert unchecked == {"ww_gguf_file_path", "ww_tokenizer_encode", "ww_model_tokenize", "ww_model_detokenize", "ww_model_chat", "ww_grammar_create", "ww_text_chunks", "ww_filter_text", "ww_collection_id", "ww_collection_payload", "ww_store_get_note", "ww_plan_explain"}  # buffers, and texts with their lengths


# ---- closing ---------------------------------------------------------------------------------------------------------------------------


def open_files(path):
    """Files of this process whose names begin with the path: a store's file, its -wal and its -shm."""
    found = []
    for number in os.listdir("/proc/self/fd"):
        try:
            target = os.readlink(f"/proc/self/fd/{number}")
        except OSError:
            continue
        if target.startswith(str(path)):
            found.append(target)
    return found


def rows_of_copy(path, tmp_path):
    """Ids in a copy of the file alone, without its WAL."""
    shutil.copyfile(path, tmp_path / "copy.db")
    with sqlite3.connect(tmp_path / "copy.db") as copy:
        return [row[0] for row in copy.execute("SELECT id FROM docs_rows ORDER BY 1")]


def test_close_closes_the_file_while_the_closed_objects_live(tmp_path):
    path = tmp_path / "a.db"
    store = warpwave.Store(path, device="cpu")
    docs = store.create("docs", dim=2)
    docs.add([[1, 0], [0, 1]], ids=["a", "b"])
    found = docs.search([1, 0])
    docs.close()
    store.close()
    assert open_files(path) == []
    assert not (tmp_path / "a.db-wal").exists()
    assert rows_of_copy(path, tmp_path) == ["a", "b"]
    assert found.ids[0] == "a"  # what was found stays
    with pytest.raises(ValueError, match="closed"):
        docs.search([1, 0])
    with pytest.raises(ValueError, match="closed"):
        list(store)


def test_close_of_the_store_closes_every_collection_that_it_gave(tmp_path):
    path = tmp_path / "a.db"
    store = warpwave.Store(path, device="cpu")
    given = [store.create("docs", dim=2), store["docs"]]
    store.drop("docs")
    given += [store.create("docs", dim=2), store["docs"]]
    given[-1].add([[1, 0]], ids=["a"])
    store.close()
    assert open_files(path) == []
    assert rows_of_copy(path, tmp_path) == ["a"]
    for docs in given:
        with pytest.raises(ValueError, match="closed"):
            len(docs)


def test_close_closes_the_file_while_an_exception_is_kept(tmp_path):
    """A notebook keeps the last exception, and with it the frames of the calls that raised it."""
    path = tmp_path / "a.db"
    store = warpwave.Store(path, device="cpu")
    docs = store.create("docs", dim=2)
    docs.add([[1, 0]], ids=["a"])
    with pytest.raises(KeyError) as first:
        store["nothing"]
    with pytest.raises(ValueError) as second:
        docs.search([1, 0], where="no such column = 1")
    store.close()
    assert open_files(path) == [] and first.value is not second.value


def test_close_checkpoints_while_another_connection_is_open(tmp_path):
    path = tmp_path / "a.db"
    store = warpwave.Store(path, device="cpu")
    docs = store.create("docs", dim=2)
    other = sqlite3.connect(path)
    other.execute("SELECT count(*) FROM docs_rows").fetchall()
    docs.add([[1, 0]], ids=["a"])
    store.close()
    assert rows_of_copy(path, tmp_path) == ["a"]
    other.close()


def test_close_waits_for_calls_of_other_threads(tmp_path):
    path = tmp_path / "a.db"
    store = warpwave.Store(path, device="cpu")
    docs = store.create("docs", dim=64, metric="l2")
    docs.add(np.random.default_rng(1).standard_normal((4000, 64)))
    inside, go, found = threading.Event(), threading.Event(), []

    def tell(done, total):
        inside.set()
        go.wait(10)

    searching = threading.Thread(target=lambda: found.append(docs.search(np.zeros((64, 64)), k=1, progress=tell)))
    searching.start()
    assert inside.wait(10)
    store.close()
    with pytest.raises(ValueError, match="closed"):
        docs.search(np.zeros(64))
    go.set()
    searching.join()
    assert len(found[0]) == 64
    assert open_files(path) == []


def test_a_closed_gguf_file_is_closed(tmp_path):
    path = tmp_path / "decoder.gguf"
    write_decoder(path)
    file = warpwave.open_gguf(path, "cpu")
    with pytest.raises(KeyError) as kept:
        file["nothing"]
    file.close()
    with open("/proc/self/maps", encoding="utf-8") as maps:
        assert str(path) not in maps.read()
    assert open_files(path) == [] and kept.value is not None


def test_what_is_dropped_without_close_is_closed(tmp_path):
    path = tmp_path / "a.db"
    store = warpwave.Store(path, device="cpu")
    store.create("docs", dim=2)
    del store
    gc.collect()
    assert open_files(path) == []
