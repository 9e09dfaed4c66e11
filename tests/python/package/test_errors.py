"""Failures as exceptions: each is a warpwave.Error and what people expect."""
import pickle

import numpy as np
import pytest

import warpwave


def test_every_status_has_an_exception_of_its_own():
    kinds = {kind.status: kind for kind in warpwave.Error.__subclasses__()}
    assert set(kinds) == set(warpwave.Status) - {warpwave.Status.OK}


@pytest.mark.parametrize("kind, also", [(warpwave.NotFound, KeyError), (warpwave.InvalidArgument, ValueError), (warpwave.OutOfMemory, MemoryError),
                                        (warpwave.MissingFile, FileNotFoundError), (warpwave.IoError, OSError), (warpwave.OutOfRange, IndexError),
                                        (warpwave.DimensionMismatch, ValueError), (warpwave.DuplicateId, ValueError), (warpwave.CorruptFile, ValueError)])
def test_errors_are_what_people_catch(kind, also):
    assert issubclass(kind, warpwave.Error) and issubclass(kind, also)
    error = kind("what happened")
    assert str(error) == error.message == "what happened" and error.detail is None
    assert type(pickle.loads(pickle.dumps(error))) is kind


def test_the_message_says_what_to_do():
    with pytest.raises(warpwave.NoDevice, match="cpu") as caught:
        warpwave.Device("cuda:77")
    assert caught.value.status is warpwave.Status.NO_DEVICE
    with pytest.raises(warpwave.OutOfMemory, match="GiB"):
        warpwave.Collection(65536, device="cpu").reserve(4_000_000_000)
    with pytest.raises(FileNotFoundError, match="nothing.gguf"):
        warpwave.open_gguf("/nowhere/nothing.gguf")
    with pytest.raises(FileNotFoundError):
        warpwave.load_npy("/nowhere/nothing.npy")


def test_messages_name_no_functions_of_c():
    collection = warpwave.Collection(2, device="cpu")
    for wrong in (lambda: collection.remove(["nobody"]), lambda: collection.search([1.0, 2.0], k=20_000), lambda: warpwave.open_gguf("/nowhere.gguf"),
                  lambda: warpwave.Collection(2, device="cpu", rows="host", screen="none"), lambda: warpwave.Collection(0, device="cpu")):
        with pytest.raises(warpwave.Error) as caught:
            wrong()
        assert "ww_" not in str(caught.value).lower(), str(caught.value)


def test_a_vendor_failure_has_its_detail():
    device = warpwave.Device("emulator:32")
    with pytest.raises(warpwave.Error) as caught:
        warpwave.empty((2**40,), device=device)
    assert caught.value.status is warpwave.Status.OUT_OF_MEMORY


def test_a_corrupt_file_is_named(tmp_path):
    path = tmp_path / "bad.gguf"
    path.write_bytes(b"GGUF" + (3).to_bytes(4, "little") + b"\xff" * 40)
    with pytest.raises(warpwave.CorruptFile, match="bad.gguf"):
        warpwave.open_gguf(path)


@pytest.mark.parametrize("thing", [lambda: warpwave.Collection(2, device="cpu"), lambda: warpwave.Device("cpu"), lambda: warpwave.zeros(3, device="cpu"),
                                   lambda: warpwave.QuantMatrix.from_array(np.ones((1, 32)), "q8_0", device="cpu")])
def test_pickling_is_refused_with_a_word(thing):
    import copy
    made = thing()
    with pytest.raises(TypeError, match="cannot be pickled: it lives in this process"):
        pickle.dumps(made)
    for copied in (copy.copy, copy.deepcopy):
        with pytest.raises(TypeError, match="cannot be copied"):
            copied(made)


def test_devices_are_described():
    for info in warpwave.devices():
        with warpwave.Device(info.id) as device:
            assert device.info.name == info.name and device.memory.total_bytes > 0
            assert device == info.id and info.id in repr(device)
            device.trim()
            device.synchronize()
        with pytest.raises(ValueError, match="closed"):
            device.memory
    assert (warpwave.backend_absence("cuda") == "") == any(info.backend == "cuda" for info in warpwave.devices())
