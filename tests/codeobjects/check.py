#!/usr/bin/env python3
"""Executes every kernel of one chip's code objects, instruction by instruction, and compares what comes out with the CPU.

    check.py BUILD_DIR CHIP [KERNEL...]      writes BUILD_DIR/codeobjects/CHIP.json; exits 1 if a kernel failed

Each launch is made several times, with the waves of a block (and the blocks) in several orders, since a missing barrier shows
under some of them only. TINYGRAD_PATH must name a checkout of tinygrad, whose emulator does the executing (run_hsaco.py).
"""
import ctypes
import json
import pathlib
import sys
import time

import numpy as np

import canonical
import cases
from machine import Count, Device, Executor, Refused
from run_hsaco import GpuFault, Guarded, Module
from structs import Header, kernels_of

ROOT = canonical.ROOT
# quantum: instructions before the next wave has its turn (0: up to the next barrier); reverse: the last wave and block first
ORDERS = ({"quantum": 0, "reverse": False}, {"quantum": 0, "reverse": True}, {"quantum": 97, "reverse": False}, {"quantum": 13, "reverse": True})


class Failure(Exception):
    pass


class Memory:
    """A piece of the device's memory; its end, to 16 bytes, is followed by a page that nobody may touch."""

    def __init__(self, values):
        self.guarded = Guarded(values.nbytes)
        self.dtype, self.shape, self.nbytes = values.dtype, values.shape, values.nbytes
        self.guarded.np[:self.nbytes] = values.reshape(-1).view(np.uint8)

    def array(self):
        return self.guarded.np[:self.nbytes].view(self.dtype).reshape(self.shape)

    def free(self):
        self.guarded.np = None
        self.guarded.free()


class Setting:
    """What all tests of a chip share: the headers, the library, its CPU, and the device whose kernels are executed."""

    def __init__(self, build, chip):
        kernels_dir = ROOT / "src" / "kernels"
        self.build, self.chip = build, chip
        self.executor = Executor(build, chip)
        self.headers = Header(*(kernels_dir / name for name in ("rows.h", "search.h", "screening.h")))
        pointers_become_addresses(self.headers)
        self.library = canonical.Library(build / "libwarpwave.so")
        self.cpu, self.gpu = Device(self.library, "cpu"), Device(self.library, "rocm:0")
        self.modules = {}

    def module(self, name):
        if name not in self.modules:
            self.modules[name] = Module(str(self.build / "kernels" / f"{name}.{self.chip}.hsaco"))
        return self.modules[name]


class Bench:
    """What a test works with: a kernel that it launches itself, or the library, which launches several."""

    def __init__(self, setting, module, kernel, struct):
        self.executor, self.headers, self.library, self.cpu, self.gpu = setting.executor, setting.headers, setting.library, setting.cpu, setting.gpu
        self.module, self.kernel = module, kernel
        self.struct = setting.headers.structs.get(struct)
        self.pieces, self.checks, self.counts = {}, 0, {}
        self.order = ORDERS[0]

    def memory(self, values):
        piece = Memory(np.ascontiguousarray(values))
        self.pieces[piece.guarded.addr] = piece
        return piece

    def memory_of(self, structs):
        """Structs in the device's memory, one behind the other: their fields may be pieces of memory."""
        return self.memory(np.frombuffer(b"".join(bytes(struct) for struct in structs), np.uint8))

    def at(self, address):
        return self.pieces[address].array()

    def fail(self, why):
        raise Failure(why)

    def equal(self, what, found, expected):
        found, expected = np.ascontiguousarray(found), np.ascontiguousarray(expected, dtype=np.asarray(found).dtype)
        same = found.view(np.uint8) == expected.view(np.uint8) if found.shape == expected.shape else None
        self.checks += 1
        if same is None or not same.all():
            where = np.argwhere(found != expected)[:1].tolist() if same is not None else (found.shape, expected.shape)
            self.fail(f"{what} differ at {where}")

    def same(self, what, make):
        """Has the CPU and the executed device do the same; what comes out, one array or several, or the refusal, must be the same, too."""
        expected, found = self._done(self.cpu, make), self._done(self.gpu, make)
        if self.executor.wrong is not None:
            raise self.executor.wrong
        if isinstance(expected, Refused) != isinstance(found, Refused):
            self.fail(f"{what}: {found if isinstance(found, Refused) else expected} on one device only")
        if isinstance(expected, Refused):
            return
        for one, other in zip(*((whole if isinstance(whole, list) else [whole]) for whole in (found, expected)), strict=True):
            for array, wanted in zip(one, other, strict=True) if isinstance(one, list) else ((one, other),):
                self.equal(what, array, wanted)

    @staticmethod
    def _done(device, make):
        try:
            return make(device)
        except Refused as refused:
            return refused
        finally:
            device.forget()

    def launch(self, grid, block, shared=0, **fields):
        """Launches the kernel, with its struct made of `fields` and so many bytes of dynamic shared memory, in this round's order
        of waves."""
        arguments = self.struct(**fields)
        size = self.module.kernels[self.kernel][".args"][0][".size"]
        if size != ctypes.sizeof(self.struct):
            self.fail(f"the kernel takes {size} bytes, the header's struct has {ctypes.sizeof(self.struct)}")
        grid = (grid,) if isinstance(grid, int) else grid
        blocks = [(x, y, 0) for y in range(grid[1] if len(grid) > 1 else 1) for x in range(grid[0])]
        done = self.module.launch(self.kernel, grid=grid, block=(block,), args=[bytes(arguments)], lds_dynamic=shared, quantum=self.order["quantum"],
                                  reverse=self.order["reverse"], blocks=blocks[::-1] if self.order["reverse"] else blocks)
        count = self.counts.setdefault(self.kernel, Count())
        count.launches += 1
        count.instructions += done.insts
        count.executed |= set(done.counts)

    def run(self, test):
        self.executor.counts, self.executor.wrong = self.counts, None
        for self.order in ORDERS:
            self.executor.order = self.order
            try:
                test(self)
            finally:
                for piece in self.pieces.values():
                    piece.free()
                self.pieces = {}


def pointers_become_addresses(headers):
    """Lets a struct's pointer field take a Memory, so that tests need not spell out addresses."""
    def make(struct):
        plain = struct.__init__

        def init(self, **fields):
            plain(self, **{name: value.guarded.addr if isinstance(value, Memory) else value for name, value in fields.items()})
        struct.__init__ = init
    for struct in headers.structs.values():
        make(struct)


def check(setting, test, kernels):
    """Runs one test and says what came of each kernel that it is for: (module, kernel, struct)."""
    bench = Bench(setting, setting.module(kernels[0][0]), kernels[0][1], kernels[0][2])
    status, why, begin = "passed", "", time.monotonic()
    try:
        if test is None:
            raise Failure("tests/codeobjects/cases.py has no test of it")
        bench.run(test)
    except (Failure, GpuFault, AssertionError, Refused) as failure:
        status, why = "failed", f"{bench.order}: {failure}"
    except NotImplementedError as missing:
        status, why = "not executed", str(missing).split("\n")[0]
    seconds = round(time.monotonic() - begin, 1)
    for module, kernel, _ in kernels:
        count, code = bench.counts.get(kernel, Count()), setting.module(module)
        result = {"wave": code.kernels[kernel][".wavefront_size"], "status": status, "why": why}
        if status == "passed" and count.launches == 0:
            result.update(status="failed", why="its test does not launch it")
        beyond = sorted({text.split(": ", 1)[1] for text in code.check(kernel)})
        result.update(launches=count.launches, checks=bench.checks, wave_instructions=count.instructions, reached=len(count.executed),
                      instructions=code.instructions(kernel), beyond=beyond, seconds=seconds)
        yield kernel, result


def by_test(kernels, chip):
    """The kernels that one test is for, together, in the order of kernels.def; without those that the chip has no code for."""
    together = {}
    for module, kernel, struct in kernels:
        if not cases.left_out(kernel, chip):
            test = cases.TESTS.get(kernel)
            together.setdefault(test or kernel, (test, []))[1].append((module, kernel, struct))
    return together.values()


def main():
    build, chip, wanted = pathlib.Path(sys.argv[1]).resolve(), sys.argv[2], sys.argv[3:]
    setting, results = Setting(build, chip), {}
    every = kernels_of(ROOT / "src/kernels/kernels.def")
    for test, kernels in by_test([entry for entry in every if not wanted or entry[1] in wanted], chip):
        for kernel, told in check(setting, test, kernels):
            results[kernel] = told
            print(f"{told['status']:12} {chip:8} {kernel:28} wave{told['wave']}: {told['launches']} launches, {told['wave_instructions']} instructions by "
                  f"waves, {told['reached']} of {told['instructions']} reached, {told['seconds']} s {told['why']}", flush=True)
    out = build / "codeobjects"
    out.mkdir(exist_ok=True)
    if not wanted:
        (out / f"{chip}.json").write_text(json.dumps(results, indent=1), encoding="utf-8")
    sys.exit(any(result["status"] == "failed" for result in results.values()))


if __name__ == "__main__":
    main()
