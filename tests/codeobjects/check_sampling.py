#!/usr/bin/env python3
"""Checks that counting some blocks of a launch and multiplying tells what counting all of them does:   check_sampling.py BUILD_DIR CHIP

A quantized product, a softmax and a matrix product, small enough to be executed whole. Exits 1 if a time, the instructions or the bytes are more
than a twentieth apart."""
import ctypes
import pathlib
import sys

import numpy as np

import calculate
import quant_cases
from machine import api
from performance import Setting
from workloads import Workload

TOLERANCE = 0.05
ALL = 1 << 30


def product(on, _):
    values = np.random.default_rng(1).standard_normal((640, 512)).astype(np.float32)
    return quant_cases.Matrix(on, "Q8_0", values, np.zeros(640 * 512 // 32 * 34, np.uint8)), on.tensor(values[:1], "f32")


def tensors(*shapes):
    return lambda on, _: [on.tensor(np.random.default_rng(2).standard_normal(shape).astype(np.float32), "f32") for shape in shapes]


SMALL = [
    Workload("quant", "", "", None, product, lambda on, made: on.call("ww_quant_matmul", made[0].handle, made[1]), lambda on, made: made[0].__exit__()),
    Workload("softmax", "", "", None, tensors((64, 1024)), lambda on, made: on.call("ww_tensor_softmax", made[0], 1)),
    Workload("matmul", "", "", None, tensors((320, 64), (64, 320)), lambda on, made: on.call("ww_tensor_matmul", *made, api.WW_MATH_CANONICAL)),
    Workload("sum", "", "", None, tensors((96, 4096)), lambda on, made: on.call(
        "ww_tensor_reduce", api.WW_REDUCE_SUM, made[0], np.array([1], np.int32), ctypes.c_int(1))),
]


def told(launch):
    counted, scale = launch["counted"], launch["grid"] / launch["counted"]["blocks"]
    return {"seconds": max(calculate.launch_time(launch).values()), "instructions": scale * sum(counted["instructions"].values()),
            "bytes": calculate.memory_bytes(counted, launch["grid"]), "LDS clocks": scale * counted["lds_cycles"]}


def main():
    setting, wrong = Setting(pathlib.Path(sys.argv[1]).resolve(), sys.argv[2]), 0
    for workload in SMALL:
        some, every = setting.launches(workload, 4), setting.launches(workload, ALL)
        for one, whole in zip(some, every, strict=True):
            assert whole["counted"]["blocks"] == whole["grid"]
            for what, value in told(whole).items():
                sample = told(one)[what]
                if abs(sample - value) > TOLERANCE * value:
                    print(f"{workload.key}, {one['kernel']}: {what} by {one['counted']['blocks']} of {one['grid']} blocks {sample:g}, by all {value:g}")
                    wrong += 1
    print(f"sampling on {sys.argv[2]}: {'wrong' if wrong else 'some blocks tell what all of them do'}")
    sys.exit(wrong > 0)


if __name__ == "__main__":
    main()
