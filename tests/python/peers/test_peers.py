"""Beside other libraries, every night: DLPack with PyTorch and JAX on a CPU, and imports in every order in one process."""
import importlib.util
import itertools
import os

import numpy as np
import pytest
from conftest import run_python

import warpwave

pytestmark = pytest.mark.nightly
PEERS = ["torch", "jax", "faiss", "usearch.index", "sklearn.neighbors"]


def needed(name):
    """A package of requirements-nightly.txt: that it is missing is a failure of the night's run, not a reason to skip."""
    assert importlib.util.find_spec(name.split(".")[0]), f"{name} is not installed: run tests/python/run BUILD nightly"
    return importlib.import_module(name)


def test_torch_shares_memory_both_ways():
    torch = needed("torch")
    theirs = torch.arange(12, dtype=torch.float32).reshape(3, 4)
    ours = warpwave.from_dlpack(theirs)
    theirs[1, 2] = 99
    assert ours[1, 2].item() == 99
    ours[0] = -1
    assert theirs[0].tolist() == [-1, -1, -1, -1]
    back = torch.from_dlpack(ours[:, 1:3])
    back += 1
    assert theirs[2].tolist() == [8, 10, 11, 11]
    assert warpwave.from_dlpack(theirs.t()).shape == (4, 3)
    for kind, name in ((torch.bfloat16, "bf16"), (torch.float16, "f16"), (torch.int64, "i64"), (torch.uint8, "u8"), (torch.bool, "u8")):
        assert warpwave.from_dlpack(torch.ones(3).to(kind)).dtype == name
    del theirs, ours
    assert back.tolist()[2] == [10, 11]


def test_a_collection_takes_torch_tensors(points):
    torch = needed("torch")
    c = warpwave.Collection(20, device="cpu")
    c.add(torch.from_numpy(points))
    assert (c.search(torch.from_numpy(points[:5])).rows[:, 0] == range(5)).all()
    assert c.search(torch.from_numpy(points[7]).to(torch.bfloat16)).rows[0] == 7
    with_gradient = torch.from_numpy(points[:2].copy()).requires_grad_()
    assert (c.search(with_gradient.detach()).rows[:, 0] == [0, 1]).all()


def test_jax_shares_memory():
    jax = needed("jax")
    array = jax.numpy.arange(6, dtype="float32").reshape(2, 3)
    ours = warpwave.from_dlpack(array)
    assert ours.tolist() == [[0, 1, 2], [3, 4, 5]]
    assert np.asarray(jax.dlpack.from_dlpack(ours * 2)).tolist() == [[0, 2, 4], [6, 8, 10]]


@pytest.mark.parametrize("position", range(len(PEERS) + 1))
def test_imports_in_every_order(position):
    """usearch before faiss crashes FAISS by itself: that pair is imported the other way round, and we stand at every place."""
    for name in PEERS:
        needed(name)
    orders = [order for order in itertools.permutations(PEERS) if order.index("faiss") < order.index("usearch.index")]
    for order in orders[:: int(os.environ.get("WARPWAVE_ORDERS_STEP", "1"))]:
        names = [*order[:position], "warpwave", *order[position:]]
        run_python("\n".join(f"import {name}" for name in names) + """
import numpy as np
x = np.random.default_rng(1).standard_normal((500, 16)).astype("f4")
c = warpwave.Collection(16, metric="l2", device="cpu"); c.add(x)
index = faiss.IndexFlatL2(16); index.add(x)
assert (index.search(x, 3)[1] == c.search(x, 3).rows).all()
u = usearch.index.Index(ndim=16, metric="l2sq"); u.add(np.arange(500), x); u.search(x[:5], 3)
n = sklearn.neighbors.NearestNeighbors(n_neighbors=3, algorithm="brute").fit(x)
assert (n.kneighbors(x, return_distance=False) == c.search(x, 3).rows).all()
assert warpwave.from_dlpack(torch.ones(3)).sum().item() == 3
assert warpwave.from_dlpack(jax.numpy.ones(3)).sum().item() == 3
""", timeout=180)
