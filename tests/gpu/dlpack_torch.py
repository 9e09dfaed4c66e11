#!/usr/bin/env python3
"""The library and PyTorch in one process, by DLPack: the same addresses, no copies, streams that wait for each other, owners that are
told once. Fails, with what was wrong, on the first thing that is not so.

    tests/gpu/dlpack_torch.py [build/libwarpwave.so [cuda:0]]

Needs PyTorch; the device may be "cpu", where there are no streams.
"""
import ctypes
import gc
import sys

import torch

CODES = {"u8": 0, "u32": 1, "i16": 2, "i32": 3, "i64": 4, "bf16": 5, "f16": 6, "f32": 7, "f64": 8, "f8e4m3": 9, "i8": 10}
TORCH = {"u8": torch.uint8, "i8": torch.int8, "i16": torch.int16, "i32": torch.int32, "i64": torch.int64, "bf16": torch.bfloat16,
         "f16": torch.float16, "f32": torch.float32, "f64": torch.float64}
NONE = ctypes.c_void_p(-1)
MUL_CANONICAL = 0


class Layout(ctypes.Structure):
    _fields_ = [("rank", ctypes.c_int32), ("shape", ctypes.c_int64 * 8), ("strides", ctypes.c_int64 * 8), ("offset", ctypes.c_int64)]


class Tensor(ctypes.Structure):
    _fields_ = [("storage", ctypes.c_void_p), ("layout", Layout)]


capsules = ctypes.pythonapi
capsules.PyCapsule_New.restype = ctypes.py_object
capsules.PyCapsule_New.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
capsules.PyCapsule_GetName.restype = ctypes.c_char_p
capsules.PyCapsule_GetName.argtypes = [ctypes.py_object]
capsules.PyCapsule_GetPointer.restype = ctypes.c_void_p
capsules.PyCapsule_GetPointer.argtypes = [ctypes.py_object, ctypes.c_char_p]
capsules.PyCapsule_SetName.argtypes = [ctypes.py_object, ctypes.c_char_p]
NAMES = {b"dltensor": b"used_dltensor", b"dltensor_versioned": b"used_dltensor_versioned"}
FROM = {b"dltensor": "ww_tensor_from_dlpack_unversioned", b"dltensor_versioned": "ww_tensor_from_dlpack"}
TO = {b"dltensor": "ww_tensor_to_dlpack_unversioned", b"dltensor_versioned": "ww_tensor_to_dlpack"}


def expect(holds, what):
    if not holds:
        sys.exit(f"FAILED: {what}")


class Library:
    def __init__(self, path, device):
        self.c = ctypes.CDLL(path)
        self.c.ww_error_message.restype = ctypes.c_char_p
        self.c.ww_device_close.argtypes = [ctypes.c_void_p]
        self.device = ctypes.c_void_p()
        self.ok(self.c.ww_device_open(device.encode(), ctypes.byref(self.device)))
        self.stream = ctypes.c_void_p()
        self.ok(self.c.ww_device_stream(self.device, ctypes.byref(self.stream)))

    def ok(self, status):
        expect(status == 0, self.c.ww_error_message().decode())

    def full(self, code, shape, value):
        made = Tensor()
        self.ok(self.c.ww_tensor_full(self.device, code, len(shape), (ctypes.c_int64 * len(shape))(*shape), ctypes.c_double(value),
                                      ctypes.byref(made)))
        return made

    def affine(self, x, mul, add, out):
        self.ok(self.c.ww_tensor_affine(ctypes.byref(x), ctypes.c_double(mul), ctypes.c_double(add), ctypes.byref(out)))

    def matmul(self, a, b, out):
        self.ok(self.c.ww_tensor_matmul(ctypes.byref(a), ctypes.byref(b), MUL_CANONICAL, ctypes.byref(out)))

    def address(self, x):
        data = ctypes.c_void_p()
        self.ok(self.c.ww_tensor_data(ctypes.byref(x), ctypes.byref(data)))
        return data.value

    def release(self, *tensors):
        for x in tensors:
            self.c.ww_tensor_release(ctypes.byref(x))

    def take(self, capsule, stream):
        """A tensor on what a capsule has; `stream` is the one that it is written on, or None if ours was told to wait."""
        name = capsules.PyCapsule_GetName(capsule)
        made = Tensor()
        managed = ctypes.c_void_p(capsules.PyCapsule_GetPointer(capsule, name))
        self.ok(getattr(self.c, FROM[name])(self.device, managed, NONE if stream is None else ctypes.c_void_p(stream), ctypes.byref(made)))
        capsules.PyCapsule_SetName(capsule, NAMES[name])
        return made

    def give(self, x, name, stream):
        managed = ctypes.c_void_p()
        self.ok(getattr(self.c, TO[name])(ctypes.byref(x), NONE if stream is None else ctypes.c_void_p(stream), ctypes.byref(managed)))
        return capsules.PyCapsule_New(managed, name, None)


def torch_takes(name, ours, where):
    """Does this PyTorch read such capsules?"""
    x = ours.full(CODES["f32"], [2], 1.0)
    try:
        kept = torch.utils.dlpack.from_dlpack(ours.give(x, name, None))
        expect(kept.device.type == where.type, f"PyTorch sees {kept.device}")
        return True
    except (RuntimeError, ValueError, BufferError, AttributeError):
        return False
    finally:
        ours.release(x)


def check_types(ours, where, names):
    types = dict(TORCH)
    if hasattr(torch, "uint32"):
        types["u32"] = torch.uint32
    for name in names:
        for ours_name, theirs in types.items():
            x = ours.full(CODES[ours_name], [3, 5], 3.0)
            ours.ok(ours.c.ww_device_synchronize(ours.device))
            t = torch.utils.dlpack.from_dlpack(ours.give(x, name, None))
            expect(t.dtype == theirs, f"{ours_name} came as {t.dtype}")
            expect(t.data_ptr() == ours.address(x), f"{ours_name}: another address")
            expect(tuple(t.shape) == (3, 5) and bool((t.to(torch.float64) == 3).all()), f"{ours_name}: other elements")
            ours.release(x)
    for ours_name, theirs in types.items():
        t = (torch.arange(24).reshape(2, 3, 4) % 7).to(theirs).to(where).permute(2, 0, 1)
        y = ours.take(t.__dlpack__(), None if where.type == "cpu" else 0)
        expect(ours.address(y) == t.data_ptr(), f"{ours_name} of PyTorch: another address")
        host = torch.empty(4, 2, 3, dtype=theirs)
        ours.ok(ours.c.ww_tensor_to_host(ctypes.byref(y), ctypes.c_void_p(host.data_ptr())))
        expect(bool((host.to(torch.float64) == t.cpu().to(torch.float64)).all()), f"{ours_name} of PyTorch: other elements")
        ours.release(y)
    t = torch.tensor([True, False, True], device=where)
    y = ours.take(t.__dlpack__(), None if where.type == "cpu" else 0)
    host = torch.empty(3, dtype=torch.uint8)
    ours.ok(ours.c.ww_tensor_to_host(ctypes.byref(y), ctypes.c_void_p(host.data_ptr())))
    expect(host.tolist() == [1, 0, 1], "bool of PyTorch: other elements")
    ours.release(y)
    print(f"types: {len(types)} both ways, and bool")


def check_owners(ours, where):
    """What PyTorch lent is given back when we release it, and what we lent when PyTorch forgets it."""
    held = torch.cuda.memory_allocated() if where.type == "cuda" else None
    t = torch.full((1 << 20,), 2.0, device=where)
    capsule = t.__dlpack__()
    y = ours.take(capsule, None if where.type == "cpu" else 0)
    view = Tensor()
    ours.ok(ours.c.ww_tensor_narrow(ctypes.byref(y), 0, ctypes.c_int64(5), ctypes.c_int64(10), ctypes.byref(view)))
    ours.affine(y, 1.0, 3.0, y)
    del t, capsule
    gc.collect()
    ours.release(y)
    host = torch.empty(10)
    ours.ok(ours.c.ww_tensor_to_host(ctypes.byref(view), ctypes.c_void_p(host.data_ptr())))
    expect(bool((host == 5).all()), "memory of PyTorch was gone while a view of it was there")
    if held is not None:
        expect(torch.cuda.memory_allocated() > held, "PyTorch had its memory back too early")
    ours.release(view)
    if held is not None:
        expect(torch.cuda.memory_allocated() == held, "PyTorch has not got its memory back")
    print("owners: told last, and once")


def check_streams(ours, where, name):
    """Long work on either side, and the other uses its result at once. Without waiting both would read what was there before."""
    n, turns = 2048, 20
    side = torch.cuda.Stream()
    for turn in range(5):
        with torch.cuda.stream(side):
            t = torch.zeros(n, n, device=where)
            torch.cuda._sleep(200_000_000)  # about a tenth of a second
            t.fill_(1.0 + turn)
            y = ours.take(t.__dlpack__(stream=ours.stream.value), None) if turn % 2 else ours.take(t.__dlpack__(), side.cuda_stream)
            z = Tensor()
            ours.affine(y, 2.0, 0.0, z)
        host = torch.empty(n, n)
        ours.ok(ours.c.ww_tensor_to_host(ctypes.byref(z), ctypes.c_void_p(host.data_ptr())))
        expect(bool((host == 2.0 * (1.0 + turn)).all()), f"turn {turn}: ours did not wait for PyTorch's stream")
        ours.release(y, z)

        a, out = ours.full(CODES["f32"], [n, n], 1.0 / n), Tensor()
        ours.matmul(a, a, out)
        for _ in range(turns):  # 1/n of a matrix of 1/n is itself
            ours.matmul(out, a, out)
        ours.affine(out, float(n), float(turn), out)
        with torch.cuda.stream(side):
            seen = torch.utils.dlpack.from_dlpack(ours.give(out, name, side.cuda_stream))
            expect(seen.data_ptr() == ours.address(out), "another address")
            copy = seen.clone()
        side.synchronize()
        expect(bool(((copy - (1.0 + turn)).abs() < 1e-3).all()), f"turn {turn}: PyTorch's stream did not wait for ours")
        with torch.cuda.stream(side):
            torch.cuda._sleep(200_000_000)
            seen.fill_(9.0)
        ours.ok(ours.c.ww_device_wait_stream(ours.device, ctypes.c_void_p(side.cuda_stream)))
        again = Tensor()
        ours.affine(out, 1.0, 1.0, again)
        ours.ok(ours.c.ww_tensor_to_host(ctypes.byref(again), ctypes.c_void_p(host.data_ptr())))
        expect(bool((host == 10.0).all()), f"turn {turn}: what PyTorch wrote was not waited for")
        ours.release(a, out, again)
        del seen
    print("streams: wait for each other, both ways")


def check_end(path, device, where, name):
    """An export outlives its tensor and its device."""
    ours = Library(path, device)
    x = ours.full(CODES["f32"], [1000], 4.0)
    t = torch.utils.dlpack.from_dlpack(ours.give(x, name, 0 if where.type == "cuda" else None))
    ours.release(x)
    ours.c.ww_device_close(ours.device)
    expect(bool((t == 4.0).all()), "an export did not outlive its device")
    t += 1
    expect(float(t.sum()) == 5000.0, "an export did not outlive its device")
    del t
    gc.collect()
    print("exports: outlive tensor and device")


def main():
    path = sys.argv[1] if len(sys.argv) > 1 else "build/libwarpwave.so"
    device = sys.argv[2] if len(sys.argv) > 2 else "cuda:0"
    where = torch.device(device)
    if where.type == "cuda":
        expect(torch.cuda.is_available(), "PyTorch has no GPU")
        torch.zeros(1, device=where)
    ours = Library(path, device)
    names = [name for name in TO if torch_takes(name, ours, where)]
    print(f"PyTorch {torch.__version__} takes {', '.join(n.decode() for n in names)}")
    expect(b"dltensor" in names or b"dltensor_versioned" in names, "PyTorch takes none of our capsules")
    check_types(ours, where, names)
    check_owners(ours, where)
    if where.type == "cuda":
        check_streams(ours, where, names[-1])
    for name in names:
        check_end(path, device, where, name)
    ours.c.ww_device_close(ours.device)
    print("dlpack with PyTorch: all as it should be")


if __name__ == "__main__":
    main()
