"""Tensors: operators, slices and the array API's names, against NumPy; every device gives the same bits."""
import ml_dtypes
import numpy as np
import pytest

import warpwave


@pytest.fixture
def pair(random):
    return random.standard_normal((6, 5)).astype(np.float32), random.standard_normal((6, 5)).astype(np.float32)


def test_operators_are_numpys(device, pair):
    a, b = pair
    x, y = warpwave.asarray(a, device=device), warpwave.asarray(b, device=device)
    for found, wanted in ((x + y, a + b), (x - y, a - b), (x * y, a * b), (x / y, a / b), (-x, -a), (abs(x), abs(a)), (2 + x, 2 + a), (x - 1.5, a - np.float32(1.5)),
                          (1 / x, 1 / a), (3 - x, 3 - a), (x * b, a * b), (b * x, a * b), (x * [1, 2, 3, 4, 5], a * np.float32([1, 2, 3, 4, 5]))):
        assert found.device == device and found.dtype == "f32"
        np.testing.assert_array_equal(found.numpy(), wanted)
    for found, wanted in ((x == y, a == b), (x != y, a != b), (x < y, a < b), (x <= 0, a <= 0), (x > y, a > b), (x >= a, a >= a)):
        np.testing.assert_array_equal(found.numpy(), wanted)
    np.testing.assert_allclose((x @ y.T).numpy(), a @ b.T, rtol=1e-5)
    np.testing.assert_allclose((x @ b[0]).numpy(), a @ b[0], rtol=1e-5)
    np.testing.assert_allclose((a[:, 0] @ x).numpy(), a[:, 0] @ a, rtol=1e-5)
    np.testing.assert_allclose((abs(x) ** 2.5).numpy(), abs(a) ** np.float32(2.5), rtol=1e-5)
    np.testing.assert_allclose((2**x).numpy(), 2**a, rtol=1e-5)


def test_every_device_gives_the_bits_of_the_cpu(pair):
    def computed(device):
        x, y = (warpwave.asarray(part, device=device) for part in pair)
        return [t.numpy().tobytes() for t in (x @ y.mT, warpwave.exp(x), warpwave.softmax(x), x.sum(), warpwave.layer_norm(x), warpwave.gelu(x * y))]

    answers = {info.id: computed(info.id) for info in warpwave.devices()}
    assert all(answer == answers["cpu"] for answer in answers.values())


def test_indexing_is_numpys_and_gives_views(device):
    a = np.arange(2 * 3 * 4, dtype=np.float32).reshape(2, 3, 4)
    x = warpwave.asarray(a, device=device)
    for key in (0, -1, (1, 2), (1, 2, 3), slice(None), (slice(None), slice(1, 3)), (..., 0), (0, ..., slice(None, None, 2)), None, (None, ..., None),
                (slice(-2, None), 1), (slice(5, 9),), slice(0, 0), (slice(None), None, 2)):
        np.testing.assert_array_equal(x[key].numpy(), a[key], err_msg=str(key))
    np.testing.assert_array_equal(x[[1, 0, 1]].numpy(), a[[1, 0, 1]])
    np.testing.assert_array_equal(warpwave.take(x, [2, 0], axis=1).numpy(), a.take([2, 0], axis=1))
    x[1, :, 0] = 7
    x[0] = a[1]
    a[1, :, 0] = 7
    a[0] = x[0].numpy()
    np.testing.assert_array_equal(x.numpy(), a)
    for wrong in (2, -3, (0, 0, 0, 0), (0, 3), (..., ...)):
        with pytest.raises(IndexError):
            x[wrong]
    with pytest.raises(ValueError):
        x[::-1]


def test_shapes(device):
    a = np.arange(24, dtype=np.int32).reshape(2, 3, 4)
    x = warpwave.asarray(a, device=device)
    assert x.shape == (2, 3, 4) and x.ndim == 3 and x.size == 24 and len(x) == 2 and x.strides == (12, 4, 1) and x.dtype == "i32"
    np.testing.assert_array_equal(x.reshape(6, -1).numpy(), a.reshape(6, 4))
    np.testing.assert_array_equal(x.mT.reshape((4, 6)).numpy(), a.transpose(0, 2, 1).reshape(4, 6))
    np.testing.assert_array_equal(warpwave.permute_dims(x, (2, 0, 1)).numpy(), a.transpose(2, 0, 1))
    np.testing.assert_array_equal(warpwave.broadcast_to(x[0, 0], (3, 4)).numpy(), np.broadcast_to(a[0, 0], (3, 4)))
    np.testing.assert_array_equal(warpwave.concat([x, x], axis=1).numpy(), np.concatenate([a, a], 1))
    np.testing.assert_array_equal(warpwave.stack([x, x]).numpy(), np.stack([a, a]))
    assert warpwave.squeeze(warpwave.expand_dims(x, 1), 1).shape == x.shape and warpwave.expand_dims(x, -1).shape == (2, 3, 4, 1)
    with pytest.raises(ValueError, match="matrices"):
        x.T
    assert warpwave.zeros((0, 3), device=device).numpy().shape == (0, 3)


def test_reductions(device, pair):
    a = pair[0]
    x = warpwave.asarray(a, device=device)
    for name in ("sum", "mean", "max", "min", "prod"):
        for axis, keepdims in ((None, False), (0, False), (1, True), ((0, 1), False), (-1, False)):
            wanted = getattr(a, name)(axis=axis, keepdims=keepdims)
            np.testing.assert_allclose(getattr(x, name)(axis=axis, keepdims=keepdims).numpy(), wanted, rtol=1e-4, atol=1e-6)
    np.testing.assert_array_equal(x.argmax(axis=1).numpy(), a.argmax(1))
    np.testing.assert_array_equal(warpwave.argmin(x, axis=0).numpy(), a.argmin(0))
    np.testing.assert_allclose(warpwave.cumulative_sum(x, axis=1).numpy(), a.cumsum(1), rtol=1e-5)
    values, indices = warpwave.sort(x)
    np.testing.assert_array_equal(values.numpy(), np.sort(a, 1))
    np.testing.assert_array_equal(indices.numpy(), np.argsort(a, 1))
    best, _ = warpwave.top_k(x, 2)
    np.testing.assert_array_equal(best.numpy(), -np.sort(-a, 1)[:, :2])
    with pytest.raises(IndexError):
        x.sum(axis=2)


def test_functions_are_near_numpys(device, pair):
    a = abs(pair[0]) + 0.1
    x = warpwave.asarray(a, device=device)
    for name in ("exp", "expm1", "log", "log1p", "sin", "cos", "tanh", "sqrt", "square", "reciprocal", "floor", "ceil", "sign", "negative", "abs"):
        np.testing.assert_allclose(getattr(warpwave, name)(x).numpy(), getattr(np, name)(a), rtol=1e-5, err_msg=name)
    np.testing.assert_allclose(warpwave.sigmoid(x).numpy(), 1 / (1 + np.exp(-a)), rtol=1e-5)
    np.testing.assert_array_equal(warpwave.maximum(x, 1).numpy(), np.maximum(a, 1))
    np.testing.assert_array_equal(warpwave.where(x > 1, x, 0).numpy(), np.where(a > 1, a, 0))
    np.testing.assert_array_equal(warpwave.where(x > 1, 2.0, -x).numpy(), np.where(a > 1, np.float32(2), -a))


def test_types_and_conversions(device):
    for name, kind in (("u8", np.uint8), ("i16", np.int16), ("i32", np.int32), ("i64", np.int64), ("u32", np.uint32), ("f16", np.float16), ("f64", np.float64),
                       ("bf16", ml_dtypes.bfloat16), ("f8e4m3", ml_dtypes.float8_e4m3fn), ("i8", np.int8)):
        x = warpwave.asarray(np.arange(5), dtype=name, device=device)
        assert x.dtype == name == warpwave.asarray(np.arange(5), dtype=kind, device=device).dtype
        assert x.numpy().dtype == kind and x.astype("f32").tolist() == [0, 1, 2, 3, 4]
        assert warpwave.asarray(x.numpy(), device=device).dtype == name
    assert warpwave.asarray([1.5], device=device).dtype == "f32" and warpwave.asarray([1], device=device).dtype == "i64"
    assert warpwave.asarray([True, False], device=device).tolist() == [1, 0]
    assert warpwave.asarray(np.arange(3, dtype=">i4"), device=device).tolist() == [0, 1, 2]
    assert warpwave.asarray(np.arange(3, dtype=np.uint16), dtype="f32", device=device).tolist() == [0, 1, 2]
    for wrong in ("f31", complex, "datetime64[s]"):
        with pytest.raises(TypeError):
            warpwave.zeros(3, dtype=wrong, device=device)
    with pytest.raises(TypeError):
        warpwave.asarray(["a"], device=device)
    with pytest.raises((ValueError, TypeError)):
        warpwave.zeros(3, device=device) + warpwave.zeros(3, dtype="f64", device=device)
    with pytest.raises(TypeError, match="floats"):
        warpwave.arange(3, device=device) / 2


def test_making(device):
    assert warpwave.arange(3, device=device).tolist() == [0, 1, 2]
    assert warpwave.arange(1, 2, 0.25, device=device).tolist() == [1, 1.25, 1.5, 1.75]
    assert warpwave.full((2, 2), 7, dtype="i32", device=device).tolist() == [[7, 7], [7, 7]]
    opened = warpwave.Device(device)
    opened.seed(5)
    first = warpwave.uniform((100,), -1, 1, device=opened).numpy()
    opened.seed(5)
    assert (first == warpwave.uniform((100,), -1, 1, device=opened).numpy()).all() and -1 <= first.min() < first.max() <= 1
    assert warpwave.normal((10, 10), device=opened).shape == (10, 10)


def test_one_number_is_a_number(device):
    x = warpwave.asarray(3.0, device=device)
    assert x.shape == () and float(x) == 3 and int(x) == 3 and x.item() == 3 and bool(x)
    assert [10, 20, 30, 40][warpwave.asarray(2, device=device)] == 30
    with pytest.raises(TypeError):
        len(x)
    with pytest.raises(ValueError, match="2 elements"):
        bool(warpwave.zeros(2, device=device))
    with pytest.raises(TypeError):
        [1][x]
    with pytest.raises(TypeError):
        hash(x)


def test_files(tmp_path, device, pair):
    np.save(tmp_path / "a.npy", pair[0])
    np.testing.assert_array_equal(warpwave.load_npy(tmp_path / "a.npy", device=device).numpy(), pair[0])
    header = b'{"w":{"dtype":"F32","shape":[6,5],"data_offsets":[0,120]}}      '
    (tmp_path / "a.safetensors").write_bytes(len(header).to_bytes(8, "little") + header + pair[0].tobytes())
    np.testing.assert_array_equal(warpwave.load_safetensors(tmp_path / "a.safetensors", "w", device=device).numpy(), pair[0])
    with pytest.raises(KeyError):
        warpwave.load_safetensors(tmp_path / "a.safetensors", "v", device=device)


def test_tensors_cannot_be_made_by_hand_and_tell_what_they_are():
    with pytest.raises(TypeError, match="asarray"):
        warpwave.Tensor()
    assert repr(warpwave.zeros((40, 40), device="cpu")) == "Tensor((40, 40), f32, cpu)"
    assert "[1. 2.]" in repr(warpwave.asarray([1.0, 2.0], dtype="bf16", device="cpu"))
    assert warpwave.zeros(1, device="cpu").__array_namespace__().exp is warpwave.exp
