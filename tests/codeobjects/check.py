#!/usr/bin/env python3
"""Executes kernels of one chip's code objects, instruction by instruction, and compares what comes out with the CPU.

    check.py [--short] [--dot2] BUILD_DIR CHIP      for each line of standard input, kernels of one test: a line of JSON with the result of each
    check.py --groups                               a number for each kernel; kernels of one test have the same
    --short: without the cases that are there for more of the code; --dot2: the form of fast products for chips without matrix units

A test is calls of the library, on its CPU and on its ROCm backend, whose kernels are executed here (machine.py). It is run several
times, with the waves of a block (and the blocks) in several orders, since a missing barrier shows under some of them only.
TINYGRAD_PATH must name a checkout of tinygrad, whose emulator does the executing (run_hsaco.py). execute.py calls this.
"""
import json
import pathlib
import sys
import time

import numpy as np

import cases
from machine import ROOT, Count, Device, Executor, Library, Refused
from run_hsaco import GpuFault, Module
from structs import code_of, kernels_of

# quantum: instructions before the next wave has its turn (0: up to the next barrier); reverse: the last wave and block first
ORDERS = ({"quantum": 0, "reverse": False}, {"quantum": 0, "reverse": True}, {"quantum": 97, "reverse": False}, {"quantum": 13, "reverse": True})


class Failure(Exception):
    pass


class Setting:
    """What all tests of a chip share: the library's CPU, the device whose kernels are executed, and the code objects."""

    def __init__(self, build, chip, short=False, dot2=False):
        self.build, self.chip, self.modules, self.short = build, chip, {}, short
        self.executor = Executor(build, chip)
        if dot2:
            self.modules["matmul_fast"] = Module(str(self.executor.by_dot2(build, chip)))
        library = Library(build / "standin/libwarpwave_codeobjects.so")
        self.cpu, self.gpu = Device(library, "cpu"), Device(library, "rocm:0")

    def module(self, name):
        if name not in self.modules:
            self.modules[name] = Module(str(self.build / "kernels" / f"{name}.{self.chip}.hsaco"))
        return self.modules[name]


class Bench:
    """What a test uses."""

    def __init__(self, setting):
        self.executor, self.cpu, self.gpu = setting.executor, setting.cpu, setting.gpu
        self.checks, self.counts, self.order, self.short = 0, {}, ORDERS[0], setting.short

    @property
    def first(self):
        """Whether this is the first order of waves. Cases that cover more code, not other orders, only run in this one."""
        return self.order is ORDERS[0] and not self.short

    def fail(self, why):
        raise Failure(why)

    def equal(self, what, found, expected):
        found, expected = np.ascontiguousarray(found), np.ascontiguousarray(expected)
        self.checks += 1
        if found.shape != expected.shape or found.dtype != expected.dtype:
            self.fail(f"{what}: {found.dtype} {found.shape}, not {expected.dtype} {expected.shape}")
        bits = f"u{found.itemsize}"
        wrong = np.argwhere(found.view(bits) != expected.view(bits))
        if len(wrong):
            at = tuple(wrong[0])
            self.fail(f"{what}: {len(wrong)} of {found.size} differ, the first at {wrong[0].tolist()}: {found[at]!r}, not {expected[at]!r}")

    def same(self, what, make):
        """Does the same on the CPU and the executed device; the result, one array or several, or the refusal, must be the same."""
        self._compare(what, self._done(self.cpu, make), self._done(self.gpu, make))

    def same_as_twins(self, what, make):
        """The same for results that need not have the CPU's bits: they must equal those of the kernels' emulated twins on the same device."""
        with self.executor.asleep():
            expected = self._done(self.gpu, make)
        self._compare(what, expected, self._done(self.gpu, make))

    def near(self, what, make, expected, bound):
        """For fast products: results within a bound of the exact ones, element by element."""
        found = self._done(self.gpu, make)
        if self.executor.wrong is not None:
            raise self.executor.wrong
        if isinstance(found, Refused):
            self.fail(f"{what}: {found}")
        self.checks += 1
        off = np.abs(found.astype(np.float64).reshape(expected.shape) - expected)
        if not (off <= bound).all():
            at = np.unravel_index(np.argmax(off - bound), off.shape)
            self.fail(f"{what}: off by {off[at]:g} at {[int(i) for i in at]}; the bound is {np.broadcast_to(bound, off.shape)[at]:g}")

    def _compare(self, what, expected, found):
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

    def run(self, test):
        self.executor.counts, self.executor.wrong = self.counts, None
        for self.order in ORDERS:
            self.executor.order = self.order
            test(self)


def check(setting, test, kernels):
    """Runs one test and returns the outcome for each of its kernels, which are (module, kernel)."""
    bench = Bench(setting)
    status, why, begin = "passed", "", time.monotonic()
    try:
        if test is None:
            raise Failure("tests/codeobjects has no test of it")
        bench.run(test)
    except (Failure, GpuFault, AssertionError, Refused) as failure:
        status, why = "failed", f"{bench.order}: {failure}"
    except NotImplementedError as missing:
        status, why = "not executed", str(missing).split("\n")[0]
    seconds = round(time.monotonic() - begin, 1)
    for module, kernel in kernels:
        count, code = bench.counts.get(kernel, Count()), setting.module(module)
        result = {"wave": code.kernels[kernel][".wavefront_size"], "status": status, "why": why, "code": code_of(setting.build, module, setting.chip),
                  "cases": "small" if setting.short else "full"}
        if status == "passed" and count.launches == 0:
            result.update(status="failed", why="its test does not launch it")
        result["hash"] = setting.executor.hashes.get(kernel, "")
        beyond = sorted({text.split(": ", 1)[1] for text in code.check(kernel)})
        result.update(launches=count.launches, checks=bench.checks, wave_instructions=count.instructions, reached=len(count.executed),
                      instructions=code.instructions(kernel), beyond=beyond, seconds=seconds, executed=sorted(count.executed))
        yield kernel, result


def main():
    if sys.argv[1:] == ["--groups"]:
        print(json.dumps({kernel: id(test) for kernel, test in cases.TESTS.items()}))
        return
    options = {"--short", "--dot2"} & set(sys.argv[1:])
    build, chip = [argument for argument in sys.argv[1:] if argument not in options]
    setting = Setting(pathlib.Path(build).resolve(), chip, "--short" in options, "--dot2" in options)
    modules = {kernel: module for module, kernel in kernels_of(ROOT, chip)[0]}
    answers, sys.stdout = sys.stdout, sys.stderr  # the emulator prints
    for line in sys.stdin:
        kernels = [(modules[kernel], kernel) for kernel in line.split()]
        print(json.dumps(dict(check(setting, cases.TESTS.get(kernels[0][1]), kernels))), file=answers, flush=True)


if __name__ == "__main__":
    main()
