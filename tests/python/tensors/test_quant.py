"""Quantized matrices and GGUF files."""
import os
import subprocess

import numpy as np
import pytest

import warpwave


@pytest.fixture
def weights(random):
    return random.standard_normal((24, 256)).astype(np.float32)


@pytest.mark.parametrize("kind, tolerance", [("q8_0", 0.02), ("q4_K", 0.2), ("f16", 0.002), ("q6_K", 0.05)])
def test_a_coded_matrix_is_near_its_numbers(device, weights, kind, tolerance):
    w = warpwave.QuantMatrix.from_array(weights, kind, device=device)
    assert w.shape == (24, 256) and w.type == kind and len(w) == 24 and w.nbytes < weights.nbytes
    assert abs(w.numpy() - weights).max() < tolerance * 3
    x = np.linspace(-1, 1, 256, dtype=np.float32)
    for product in (w @ x, w.multiply(x), x @ w.T, w.multiply(x, activations="float"), w @ warpwave.asarray(x, device=device)):
        np.testing.assert_allclose(product.numpy(), w.numpy() @ x, atol=0.2)
    batch = np.stack([x, -x, x / 2])
    assert (batch @ w.T).shape == (3, 24) and (w @ batch.T).shape == (24, 3)
    np.testing.assert_array_equal((w @ batch.T).numpy(), (batch @ w.T).numpy().T)
    np.testing.assert_array_equal(w[3:7].numpy(), w.numpy()[3:7])
    with pytest.raises(ValueError):
        w[::2]
    with pytest.raises(TypeError, match="multiply"):
        w.__rmatmul__(x)


def test_devices_agree_to_the_bit(weights):
    x = np.linspace(-1, 1, 256, dtype=np.float32)
    answers = {(warpwave.QuantMatrix.from_array(weights, "q4_K", device=info.id) @ x).numpy().tobytes() for info in warpwave.devices()}
    assert len(answers) == 1
    tensor = warpwave.asarray(weights, device="cpu")
    assert (warpwave.QuantMatrix.from_array(tensor, "q4_K") @ x).numpy().tobytes() in answers


def test_what_cannot_be_coded_is_refused(weights):
    with pytest.raises(warpwave.Error, match="q4_K"):
        warpwave.QuantMatrix.from_array(weights, "q9_9", device="cpu")
    with pytest.raises(ValueError):
        warpwave.QuantMatrix.from_array(weights[:, :100], "q4_K", device="cpu")
    with pytest.raises(ValueError, match="coded or float"):
        warpwave.QuantMatrix.from_array(weights, "q4_K", device="cpu").multiply(weights, activations="int3")


def gguf_of(path, weights):
    """A small file, written by hand: two tensors of f32, and values of several kinds."""
    def text(value):
        data = value.encode()
        return len(data).to_bytes(8, "little") + data

    def number(value, size=4):
        return value.to_bytes(size, "little")

    keys = [text("general.architecture") + number(8) + text("test"), text("test.count") + number(4) + number(7),
            text("test.ratio") + number(6) + np.float32(0.5).tobytes(), text("test.flag") + number(7) + b"\1",
            text("test.names") + number(9) + number(8) + number(2, 8) + text("a") + text("bc"),
            text("test.sizes") + number(9) + number(5) + number(3, 8) + np.array([1, -2, 3], "<i4").tobytes()]
    rows, columns = weights.shape
    size = weights.nbytes
    tensors = [text("blk.0.ffn_up.weight") + number(2) + number(columns, 8) + number(rows, 8) + number(0) + number(0, 8),
               text("output_norm.weight") + number(1) + number(columns, 8) + number(0) + number(size, 8)]
    head = b"GGUF" + number(3) + number(len(tensors), 8) + number(len(keys), 8) + b"".join(keys) + b"".join(tensors)
    head += b"\0" * (-len(head) % 32)
    path.write_bytes(head + weights.tobytes() + weights[0].tobytes())


def test_a_gguf_file_is_its_tensors_and_metadata(tmp_path, device, weights):
    gguf_of(tmp_path / "model.gguf", weights)
    with warpwave.open_gguf(tmp_path / "model.gguf", device=device) as model:
        assert list(model) == ["blk.0.ffn_up.weight", "output_norm.weight"] and len(model) == 2 and "output_norm.weight" in model and 3 not in model
        assert model.shape("blk.0.ffn_up.weight") == (24, 256) and model.shape("output_norm.weight") == (256,)
        metadata = model.metadata
        assert metadata["general.architecture"] == "test" and metadata["test.count"] == 7 and metadata["test.ratio"] == 0.5
        assert metadata["test.flag"] is True and metadata["test.names"] == ["a", "bc"] and metadata["test.sizes"].tolist() == [1, -2, 3]
        x = np.ones(256, np.float32)
        y = model["blk.0.ffn_up.weight"] @ x
        np.testing.assert_allclose(y.numpy(), weights @ x, rtol=1e-4, atol=1e-4)
        assert model["blk.0.ffn_up.weight"] is model["blk.0.ffn_up.weight"]
        np.testing.assert_array_equal(model["output_norm.weight"].numpy(), weights[:1])
        with pytest.raises(KeyError, match="nothing"):
            model["nothing"]
        told = []
        kept = model.load("blk.0.ffn_up.weight", progress=lambda done, total: told.append(done))
        assert told
        assert "2 tensors" in repr(model)
    with pytest.raises(ValueError, match="closed"):
        model["blk.0.ffn_up.weight"]
    np.testing.assert_array_equal((kept @ x).numpy(), y.numpy())


def test_the_command_reads_the_same_file(tmp_path, weights):
    gguf_of(tmp_path / "model.gguf", weights)
    printed = subprocess.run([os.environ["WARPWAVE_COMMAND"], "gguf", "info", str(tmp_path / "model.gguf")], capture_output=True, text=True, check=True)
    assert "blk.0.ffn_up.weight" in printed.stdout
