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


class Bench:
    """What a test of one kernel works with."""

    def __init__(self, headers, library, module, kernel, struct):
        self.headers, self.library, self.module, self.kernel = headers, library, module, kernel
        self.struct = headers.structs[struct]
        self.pieces, self.checks = {}, 0
        self.launches, self.instructions, self.executed = 0, 0, set()
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
        self.launches += 1
        self.instructions += done.insts
        self.executed |= set(done.counts)

    def run(self, test):
        for self.order in ORDERS:
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


def check_kernel(headers, library, module, kernel, struct):
    bench = Bench(headers, library, module, kernel, struct)
    result = {"wave": module.kernels[kernel][".wavefront_size"], "status": "passed", "why": ""}
    begin = time.monotonic()
    try:
        if kernel not in cases.TESTS:
            raise Failure("tests/codeobjects/cases.py has no test of it")
        bench.run(cases.TESTS[kernel])
    except (Failure, GpuFault, AssertionError) as failure:
        result.update(status="failed", why=f"{bench.order}: {failure}")
    except NotImplementedError as missing:
        result.update(status="not executed", why=str(missing).split("\n")[0])
    beyond = sorted({text.split(": ", 1)[1] for text in module.check(kernel)})
    result.update(launches=bench.launches, checks=bench.checks, wave_instructions=bench.instructions, reached=len(bench.executed),
                  instructions=module.instructions(kernel), beyond=beyond, seconds=round(time.monotonic() - begin, 1))
    return result


def main():
    build, chip, wanted = pathlib.Path(sys.argv[1]), sys.argv[2], sys.argv[3:]
    kernels_dir = ROOT / "src" / "kernels"
    headers = Header(*(kernels_dir / name for name in ("rows.h", "search.h", "screening.h")))
    pointers_become_addresses(headers)
    library = canonical.Library(build / "libwarpwave.so")
    modules, results = {}, {}
    for name, kernel, struct in kernels_of(kernels_dir / "kernels.def"):
        if wanted and kernel not in wanted:
            continue
        if name not in modules:
            modules[name] = Module(str(build / "kernels" / f"{name}.{chip}.hsaco"))
        results[kernel] = check_kernel(headers, library, modules[name], kernel, struct)
        told = results[kernel]
        print(f"{told['status']:12} {chip:8} {kernel:20} wave{told['wave']}: {told['launches']} launches, {told['wave_instructions']} instructions by waves, "
              f"{told['reached']} of {told['instructions']} reached, {told['seconds']} s {told['why']}", flush=True)
    out = build / "codeobjects"
    out.mkdir(exist_ok=True)
    if not wanted:
        (out / f"{chip}.json").write_text(json.dumps(results, indent=1), encoding="utf-8")
    sys.exit(any(result["status"] == "failed" for result in results.values()))


if __name__ == "__main__":
    main()
