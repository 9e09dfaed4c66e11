"""The library's own ROCm backend with its kernels executed from their machine code: the stand-in for libamdhip64 (testing/standin) hands
each launch over, and it is run here (run_hsaco.py) on the memory that the library gave. So a test is a call of the library on this
device and on the CPU, and whatever the backend launches for it, as the backend launches it, is what is tested."""
import contextlib
import ctypes
import os
import pathlib
import sys

import numpy as np

from run_hsaco import GpuFault, Module
from structs import Header

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "scripts/kernels"))

from code_objects import CodeObject  # noqa: E402

standin = Header(ROOT / "testing/standin/standin.h")
api = Header(*(ROOT / "include/warpwave" / name for name in ("tensor.h", "tensor_rows.h", "attention.h", "quant.h")))

hooks = Header(ROOT / "tests/seams/codeobjects_hooks.h")

TYPES = {"u8": np.uint8, "u32": np.uint32, "i16": np.int16, "i32": np.int32, "i64": np.int64, "bf16": np.uint16, "f16": np.float16,
         "f32": np.float32, "f64": np.float64, "f8e4m3": np.uint8, "i8": np.int8}
CODES = {name: getattr(api, "WW_" + name.upper()) for name in TYPES}
NAMES = {code: name for name, code in CODES.items()}


def dot2_code(build, chip):
    return build / "codeobjects/dot2" / f"matmul_fast.{chip}.hsaco"


class Count:
    """The counts of one kernel."""

    def __init__(self):
        self.launches, self.instructions, self.executed = 0, 0, set()


class Executor:
    """Runs the launches that the stand-in passes on, with waves in the order of `order`, and counts."""

    def __init__(self, build, chip):
        os.environ.update(WARPWAVE_HIP_LIBRARY=str(build / "standin/libamdhip64.so.6"), WARPWAVE_STANDIN=f"chips={chip}",
                          WARPWAVE_ROCBLAS_LIBRARY=str(build / "standin/none"))  # fast products are by kernels of ours
        self.c = ctypes.CDLL(os.environ["WARPWAVE_HIP_LIBRARY"])
        self.c.standin_misuse.restype = ctypes.c_char_p
        self.hashes = {}  # of the machine code that was launched
        self.modules, self.counts, self.order, self.wrong = {}, {}, {"quantum": 0, "reverse": False}, None
        self.called = ctypes.CFUNCTYPE(None, ctypes.POINTER(standin.standin_launch))(self._called)
        self.c.standin_execute_with(self.called)

    def _called(self, launch):
        """No exception may go through C: the first one is kept, and nothing runs after it."""
        try:
            if self.wrong is None:
                self.run(launch.contents)
        except (GpuFault, NotImplementedError, AssertionError, MemoryError) as wrong:
            self.wrong = wrong

    @contextlib.contextmanager
    def asleep(self):
        """Within this, the stand-in runs the kernels' emulated twins."""
        self.c.standin_execute_with(None)
        try:
            yield
        finally:
            self.c.standin_execute_with(self.called)

    def by_dot2(self, build, chip):
        """Within this, fast products of f16 run in the form for chips without matrix units, which is compiled for this chip, too
        (testing/standin/CMakeLists.txt). Returns the folder of that code."""
        path = dot2_code(build, chip)
        module = Module(str(path))
        self.modules.update((kernel, module) for kernel in module.kernels)
        return path

    def run(self, launch):
        kernel = ctypes.string_at(launch.kernel).decode()
        if kernel not in self.modules:
            image = ctypes.string_at(launch.image, launch.image_bytes)
            self.modules[kernel], self.hashes[kernel] = Module(image), CodeObject(image).hash_of(kernel)
        grid, reverse = (launch.grid_x, launch.grid_y), self.order["reverse"]
        blocks = [(x, y, 0) for y in range(grid[1]) for x in range(grid[0])]
        done = self.modules[kernel].launch(kernel, grid=grid, block=(launch.block,), args=[ctypes.string_at(launch.arguments, launch.arguments_bytes)],
                                           lds_dynamic=launch.shared_bytes, quantum=self.order["quantum"], reverse=reverse,
                                           blocks=blocks[::-1] if reverse else blocks)
        count = self.counts.setdefault(kernel, Count())
        count.launches += 1
        count.instructions += done.insts
        count.executed |= set(done.counts)


def both(*tests):
    """Combines several tests into one."""
    def test(bench):
        for each in tests:
            each(bench)
    return test


class Refused(Exception):
    pass


class Library:
    """The library, with the functions of tests/seams/codeobjects_hooks.c."""

    def __init__(self, path):
        self.c = ctypes.CDLL(str(path))
        self.c.ww_error_message.restype = ctypes.c_char_p
        self.c.ww_storage_elements.restype = ctypes.c_int64
        self.c.ww_layout_elements.restype = ctypes.c_int64
        for function in ("ww_storage_elements", "ww_storage_dtype", "ww_storage_release", "ww_quant_destroy", "ww_collection_destroy"):
            getattr(self.c, function).argtypes = [ctypes.c_void_p]


class Device:
    """A device and its objects. Calls return their results as arrays; floats that numpy has no type for are returned as bits."""

    def __init__(self, library, name):
        self.c, self.handle, self.storages, self.executed = library.c, ctypes.c_void_p(), [], name != "cpu"
        self.ok(self.c.ww_device_open(name.encode(), ctypes.byref(self.handle)))

    def ok(self, status):
        if status != 0:
            raise Refused(f"status {status}: {self.c.ww_error_message().decode()}")

    @contextlib.contextmanager
    def units(self, count):
        """Within this, the executed device has this many compute units, and divides its work into more parts; 0: as few as usual."""
        before = self.c.codeobjects_units(self.handle, count) if self.executed and count else None
        try:
            yield
        finally:
            if before is not None:
                self.c.codeobjects_units(self.handle, before)

    def tensor(self, values, type_, strides=None, shape=None, offset=0):
        """A tensor of the array's elements, or of those that the strides select."""
        values = np.ascontiguousarray(values, TYPES[type_])
        storage = ctypes.c_void_p()
        self.ok(self.c.ww_storage_from_host(self.handle, CODES[type_], ctypes.c_int64(values.size), values.ctypes.data_as(ctypes.c_void_p),
                                            ctypes.byref(storage)))
        self.storages.append(storage)
        shape = values.shape if shape is None else shape
        layout = api.ww_layout(rank=len(shape), offset=offset)
        step = 1
        for i in reversed(range(len(shape))):
            layout.shape[i], layout.strides[i] = shape[i], step if strides is None else strides[i]
            step *= shape[i]
        return api.ww_tensor(storage=storage, layout=layout)

    def take(self, tensor):
        """Returns the elements of a tensor and releases it."""
        name = NAMES[self.c.ww_storage_dtype(tensor.storage)]
        values = np.empty(self.c.ww_layout_elements(ctypes.byref(tensor.layout)), TYPES[name])
        try:
            self.ok(self.c.ww_tensor_to_host(ctypes.byref(tensor), values.ctypes.data_as(ctypes.c_void_p)))
        finally:
            self.c.ww_tensor_release(ctypes.byref(tensor))
        return values

    def call(self, function, *arguments, outs=1):
        """Calls `function` with the arguments and `outs` results, and returns these."""
        passed = [ctypes.byref(a) if isinstance(a, ctypes.Structure) else a.ctypes.data_as(ctypes.c_void_p) if isinstance(a, np.ndarray) else a
                  for a in arguments]
        made = [api.ww_tensor() for _ in range(outs)]
        self.ok(getattr(self.c, function)(*passed, *(ctypes.byref(m) for m in made)))
        results = [self.take(m) for m in made]
        return results[0] if outs == 1 else results

    def into(self, out, function, *arguments):
        """Calls `function` with a tensor to write to, and returns all of its storage."""
        self.ok(getattr(self.c, function)(*(ctypes.byref(a) if isinstance(a, ctypes.Structure) else a for a in arguments), ctypes.byref(out)))
        return self.storage_of(out)

    def storage_of(self, tensor):
        """Returns the current contents of a tensor's storage."""
        values = np.empty(self.c.ww_storage_elements(tensor.storage), TYPES[NAMES[self.c.ww_storage_dtype(tensor.storage)]])
        self.ok(self.c.ww_storage_to_host(ctypes.c_void_p(tensor.storage), values.ctypes.data_as(ctypes.c_void_p)))
        return values

    def forget(self):
        for storage in self.storages:
            self.c.ww_storage_release(storage)
        self.storages = []
