"""DLPack: memory goes to NumPy and back without a copy, and lives exactly as long as somebody uses it."""
import ctypes
import gc
import threading
import weakref

import numpy as np
import pytest

import warpwave


class Watched(np.ndarray):
    """An array whose end can be seen."""


def watched(shape=(4, 3)):
    array = np.arange(np.prod(shape), dtype=np.float32).reshape(shape).view(Watched)
    return array, weakref.ref(array)


def test_an_import_is_the_same_memory():
    array, _ = watched()
    x = warpwave.from_dlpack(array)
    assert x.shape == (4, 3) and x.device == "cpu"
    array[2, 1] = 99
    assert x[2, 1].item() == 99
    x[0] = -1
    assert (array[0] == -1).all()


def test_an_export_is_the_same_memory_and_outlives_the_tensor():
    x = warpwave.asarray(np.arange(6.0).reshape(2, 3), dtype="f64", device="cpu")
    array = np.from_dlpack(x)
    x[1, 1] = 42
    assert array[1, 1] == 42
    del x
    gc.collect()
    assert array.tolist() == [[0, 1, 2], [3, 42, 5]]
    view = np.from_dlpack(warpwave.from_dlpack(array)[:, ::2])
    assert view.tolist() == [[0, 2], [3, 5]]


def test_an_owner_is_let_go_with_the_last_view():
    array, alive = watched()
    x = warpwave.from_dlpack(array)
    view = x[1:]
    del array, x
    gc.collect()
    assert alive() is not None and view.tolist()[0] == [3, 4, 5]
    del view
    gc.collect()
    assert alive() is None


@pytest.mark.parametrize("version", [None, (0, 8), (1, 0), (1, 1), (2, 0)])
def test_capsules_that_nobody_takes_free_what_they_hold(version):
    array, alive = watched()
    x = warpwave.from_dlpack(array)
    capsule = x.__dlpack__(max_version=version)
    assert ("versioned" in repr(capsule)) == (version is not None and version[0] >= 1)
    del array, x
    gc.collect()
    assert alive() is not None
    del capsule
    gc.collect()
    assert alive() is None


def test_a_capsule_is_taken_once():
    class Once:
        def __init__(self, capsule):
            self.capsule = capsule

        def __dlpack_device__(self):
            return (1, 0)

        def __dlpack__(self, **_):
            return self.capsule

    once = Once(np.zeros(3).__dlpack__())
    warpwave.from_dlpack(once)
    assert "used_dltensor" in repr(once.capsule)
    with pytest.raises(ValueError, match="taken before"):
        warpwave.from_dlpack(once)


def test_producers_from_before_versions_are_understood():
    class Old:
        def __init__(self, array):
            self.array = array

        def __dlpack_device__(self):
            return self.array.__dlpack_device__()

        def __dlpack__(self, stream=None):
            return self.array.__dlpack__()

    assert warpwave.from_dlpack(Old(np.arange(3))).tolist() == [0, 1, 2]


def test_read_only_memory_stays_so():
    array = np.arange(4, dtype=np.float32)
    array.flags.writeable = False
    x = warpwave.from_dlpack(array)
    assert (x + 1).tolist() == [1, 2, 3, 4]
    with pytest.raises(warpwave.Error, match="may only be read"):
        x[0] = 5
    assert not np.from_dlpack(x).flags.writeable
    with pytest.raises(warpwave.Unsupported, match="read-only"):
        x.__dlpack__()
    assert array[0] == 0


def test_strides_offsets_and_types_are_kept():
    array = np.arange(60, dtype=np.int16).reshape(3, 4, 5)
    for part in (array, array[1:, ::2, 1::2], array.transpose(2, 0, 1), array[:, :, 2], array[1, 2, 3:4].reshape(()), array[:0], np.asfortranarray(array)):
        x = warpwave.from_dlpack(part)
        np.testing.assert_array_equal(x.numpy(), part)
        back = np.from_dlpack(x)
        np.testing.assert_array_equal(back, part)
    assert warpwave.from_dlpack(np.array([True, False])).dtype == "u8"


def test_what_cannot_be_taken_is_refused_and_stays_the_producers():
    for wrong in (np.zeros(3, complex), np.arange(5)[::-1], np.zeros(3, np.uint16)):
        with pytest.raises(warpwave.Error):
            warpwave.from_dlpack(wrong)

    class Elsewhere:
        def __dlpack_device__(self):
            return (8, 0)

    with pytest.raises(BufferError, match="not a device of this library"):
        warpwave.from_dlpack(Elsewhere())


def test_copies_and_devices_are_asked_for():
    array = np.arange(3, dtype=np.float32)
    copied = warpwave.from_dlpack(array, copy=True)
    array[0] = 9
    assert copied.tolist() == [0, 1, 2]
    other = [info.id for info in warpwave.devices() if info.id != "cpu"]
    for name in other:
        moved = warpwave.from_dlpack(array, device=name)
        assert moved.device == name and moved.tolist() == [9, 1, 2]
        with pytest.raises(BufferError):
            warpwave.from_dlpack(array, device=name, copy=False)
        assert moved.__dlpack_device__()[0] in (2, 10, 12)
        assert np.from_dlpack(moved, device="cpu").tolist() == [9, 1, 2]
        with pytest.raises(BufferError):
            moved.__dlpack__(dl_device=(1, 0), copy=False)
    x = warpwave.from_dlpack(array)
    held = np.from_dlpack(x, copy=True)
    array[1] = 8
    assert held.tolist() == [9, 1, 2]


def test_a_deleter_may_be_called_without_the_gil_on_any_thread():
    """The consumer takes the capsule apart as C code does, and deletes it from a thread that holds no GIL."""
    array, alive = watched()
    x = warpwave.from_dlpack(array)
    capsule = x.__dlpack__()
    get = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)(("PyCapsule_GetPointer", ctypes.pythonapi))
    rename = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object, ctypes.c_char_p)(("PyCapsule_SetName", ctypes.pythonapi))
    name = ctypes.create_string_buffer(b"used_dltensor")
    managed = get(capsule, b"dltensor")
    rename(capsule, ctypes.cast(name, ctypes.c_char_p))
    deleter = ctypes.c_void_p.from_address(managed + 56).value
    del x, array, capsule
    gc.collect()
    assert alive() is not None
    thread = threading.Thread(target=ctypes.CFUNCTYPE(None, ctypes.c_void_p)(deleter), args=(managed,))  # CFUNCTYPE: without the GIL
    thread.start()
    thread.join()
    assert alive() is None


def test_a_collection_takes_what_speaks_dlpack(points):
    class Foreign:
        """Not NumPy's, but with its memory."""

        def __init__(self, array):
            self.array = array

        def __dlpack_device__(self):
            return self.array.__dlpack_device__()

        def __dlpack__(self, **options):
            return self.array.__dlpack__(**options)

    c = warpwave.Collection(20, device="cpu")
    c.add(Foreign(points))
    assert (c.search(Foreign(points[:3])).rows[:, 0] == [0, 1, 2]).all()
    assert (c.search(Foreign(points[4].astype(np.float64))).rows[0]) == 4
