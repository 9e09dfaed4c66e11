#!/usr/bin/env python3
"""Calculates how fast the kernels of a chip can be, by executing blocks of them and counting:

    performance.py BUILD_DIR CHIP [all|KEY...]   writes BUILD_DIR/performance/CHIP.json: the workloads of the page, or all, or KEY, those of ROUTES
                                                 among them. What is there and was counted from the same machine code in the same way stays.
    performance.py --dot2 BUILD_DIR CHIP KEY...   the same with fast products of f16 as chips without matrix units have them; writes nothing

performance_page.py makes docs/evidence/amd-performance.md of that. TINYGRAD_PATH must name a checkout of tinygrad, as for check.py."""
import ctypes
import hashlib
import json
import os
import pathlib
import subprocess
import sys
import time

import calculate
import counting
from cards import CARDS
from machine import ROOT, Device, Executor, Library, Refused
from run_hsaco import GpuFault, Module
from structs import code_of, is_stale, kernels_of
from workloads import PAGE, ROUTES, ROWS, WORKLOADS

SAMPLED = 4
GROUPED = ("quant_gemv_",)  # up to GROUP of their blocks share rows, one after the other, and the last of them does more
GROUP = 8
BARRIERS = 16  # blocks of several waves that a unit can have
SHARED_WORK = ("search_one",)  # their blocks take what is next when they are ready: all of them are executed


def resident_blocks(table):
    """For each kernel and chip, the threads of its largest block, and how many such blocks a unit holds: columns of the resources check."""
    found = {}
    for line in table.read_text(encoding="utf-8").splitlines()[1:]:
        parts = line.split()
        found[parts[0], parts[1]] = int(parts[-3]), int(parts[-1])
    return found


def sampled(grid, count, group=1):
    """Blocks from all over the grid, including the first and the last. With groups: half as many groups, with all of their blocks."""
    if group > 1:
        groups = sampled(grid // group, (count + 1) // 2) if count < grid and grid >= 2 * group else range(-(-grid // group))
        return [n for g in groups for n in range(g * group, min((g + 1) * group, grid))]
    if grid <= count:
        return list(range(grid))
    return sorted({i * (grid - 1) // max(1, count - 1) for i in range(count)})


class CountingExecutor(Executor):
    """Counts some blocks of each launch. With twins, the stand-in's emulator then runs the whole launch on the original memory."""

    def __init__(self, build, chip, card, dot2=False):
        super().__init__(build, chip)
        os.environ["WARPWAVE_ROCBLAS_LIBRARY"] = "/nonexistent/librocblas.so"
        self.card, self.residents, self.chip = card, resident_blocks(build / "kernels/resources.txt"), chip
        self.mode, self.blocks, self.launches, self.disassembled = "skip", SAMPLED, [], {}
        if dot2:
            path = self.by_dot2(build, chip)
            for tool in ([build / "kernels/check-kernels", path, ROOT / "src/kernels/kernels.def", ROOT / "scripts/kernels/kernels-allowed"],
                         [ROOT / "scripts/kernels/kernel-resources.sh", path.with_suffix(".resources"), f"{path}.txt"]):
                subprocess.run(tool, check=True)
            self.residents.update(resident_blocks(path.with_suffix(".resources")))
            self.disassembled.update((kernel, list(counting.disassembled(path.read_bytes()))) for kernel in self.modules)
        self.c.standin_emulate.restype = self.c.standin_on_device.restype = ctypes.c_bool

    def run(self, launch):
        if self.mode == "skip":
            return
        if self.mode == "count":
            self.launches.append(self._count(launch))
        if self.mode == "count on a copy":
            self.launches.append(self._count_on_a_copy(launch))
            assert self.c.standin_emulate(ctypes.byref(launch)), "the emulated twin failed"

    def _count(self, launch):
        kernel = ctypes.string_at(launch.kernel).decode()
        image = ctypes.string_at(launch.image, launch.image_bytes)
        if kernel not in self.modules:
            self.modules[kernel] = Module(image)
            self.disassembled[kernel] = list(counting.disassembled(image))
        module = self.modules[kernel]
        grid, shared_work, group = launch.grid_x * launch.grid_y, kernel.startswith(SHARED_WORK), GROUP if kernel.startswith(GROUPED) else 1
        counter = counting.Counter(module, self.disassembled[kernel], self.card, group)
        chosen = [(n % launch.grid_x, n // launch.grid_x, 0) for n in sampled(grid, grid if shared_work else self.blocks, group)]
        stats = module.launch(kernel, grid=(launch.grid_x, launch.grid_y), block=(launch.block,),
                              args=[ctypes.string_at(launch.arguments, launch.arguments_bytes)], lds_dynamic=launch.shared_bytes, blocks=chosen, counter=counter)
        wave = module.kernels[kernel][".wavefront_size"]
        counted = counter.result(stats, wave, self._pieces(), shared_work)
        return {"kernel": kernel, "grid": grid, "block": launch.block, "waves": -(-launch.block // wave), "wave": wave,
                "resident": self._resident(kernel, launch, module), "counted": counted}

    def _pieces(self):
        return list(counting.pieces_now(lambda address: self.c.standin_on_device(ctypes.c_void_p(address), ctypes.c_size_t(1))))

    def _resident(self, kernel, launch, module):
        """From the resources check; more if the launch has smaller blocks, and not more than shared memory and barriers allow."""
        threads, blocks = self.residents[kernel, self.chip]
        shared = module.kernels[kernel][".group_segment_fixed_size"] + launch.shared_bytes
        wave = module.kernels[kernel][".wavefront_size"]
        if launch.block < threads:
            blocks = blocks * -(-threads // wave) // -(-launch.block // wave)
            blocks = min(blocks, BARRIERS) if launch.block > wave else blocks
        if shared:
            blocks = min(blocks, self.card.lds_bytes // shared)
        return max(1, blocks)

    def _count_on_a_copy(self, launch):
        """Restores the memory afterwards."""
        pieces = [(begin, ctypes.string_at(begin, end - begin)) for begin, end in self._pieces()]
        try:
            return self._count(launch)
        finally:
            for begin, before in pieces:
                ctypes.memmove(begin, before, len(before))


class Setting:
    def __init__(self, build, chip, dot2=False):
        self.build, self.chip, self.card = build, chip, CARDS[chip]
        self.executor = CountingExecutor(build, chip, self.card, dot2)
        self.library = Library(build / "standin/libwarpwave_codeobjects.so")

    def device(self, units):
        self.executor.c.standin_configure(f"chips={self.chip};units={units};memory=12GiB".encode())
        return Device(self.library, "rocm:0")

    def launches(self, workload, blocks=SAMPLED):
        """What the workload launches, counted, each with the card or slice of it that it is counted for, and how often that slice's work is all
        of it: a slice of one unit may have fewer rows than its share."""
        units = max(1, round(self.card.units * workload.sliced / ROWS)) if workload.sliced else self.card.units
        card, rows, times = self.card, ROWS, 1.0
        if workload.sliced:
            card, rows = card.slice(units), min(ROWS * units // card.units, workload.sliced)
            times = ROWS * units / self.card.units / rows
        executor = self.executor
        on = self.device(units)
        executor.blocks, executor.launches, executor.wrong = blocks, [], None
        try:
            if workload.twins:
                with executor.asleep():
                    made = workload.prepare(on, rows)
            else:
                executor.mode = "skip"
                made = workload.prepare(on, rows)
                workload.run(on, made)
            executor.mode = "count on a copy" if workload.twins else "count"
            workload.run(on, made)
            if executor.wrong is not None:
                raise executor.wrong
        finally:
            executor.mode = "skip"
        if workload.release:
            workload.release(on, made)
        on.forget()
        self.library.c.ww_device_close(on.handle)
        for launch in executor.launches:
            of_the_queries = launch["kernel"] in workload.whole
            launch["card"], launch["times"] = (self.card, 1.0) if of_the_queries else (card, times)
        return executor.launches


def modules_now(build, chip, launches):
    module_of = {kernel: module for module, kernel in kernels_of(ROOT)[0]}
    return {launch["kernel"]: code_of(build, module_of[launch["kernel"]], chip) for launch in launches}


def calculated(setting, workload):
    begin = time.monotonic()
    launches = setting.launches(workload)
    told = calculate.summed(launches)
    if workload.kernel:
        own = [launch for launch in launches if launch["kernel"].startswith(workload.kernel)]
        if own:
            told["own"] = calculate.summed(own)
    told["floor"], told["floor_of"] = workload.floor(setting.card)
    told["code"] = modules_now(setting.build, setting.chip, launches)
    told["counting_seconds"] = round(time.monotonic() - begin, 1)
    told["all"] = [{"kernel": launch["kernel"], "grid": launch["grid"], "seconds": max(calculate.launch_time(launch).values())} for launch in launches]
    return told


def way_of_counting(build, card):
    """A hash of what a count depends on besides the machine code."""
    here = pathlib.Path(__file__).parent
    resources = [line for line in (build / "kernels/resources.txt").read_text(encoding="utf-8").splitlines() if f" {card.chip} " in line]
    files = [here / name for name in ("count.h", "emuloop.c", "counting.py", "calculate.py", "performance.py", "workloads.py")]
    return hashlib.sha256(b"".join(file.read_bytes() for file in files) + repr((card, resources)).encode()).hexdigest()[:16]


def main():
    dot2 = sys.argv[1] == "--dot2"
    build, chip, *wanted = sys.argv[1 + dot2:]
    build = pathlib.Path(build).resolve()
    out = build / "performance" / f"{chip}.json"
    out.parent.mkdir(exist_ok=True)
    results = json.loads(out.read_text(encoding="utf-8")) if out.exists() else {}
    modules, way = {kernel: module for module, kernel in kernels_of(ROOT)[0]}, way_of_counting(build, CARDS[chip])
    results = {key: told for key, told in results.items() if told["way"] == way and not is_stale(build, chip, told, modules)}
    setting, failed = Setting(build, chip, dot2), False
    for workload in WORKLOADS + ROUTES:
        if workload.key not in (wanted or PAGE) and not (wanted == ["all"] and workload in WORKLOADS):
            continue
        if workload.key in results and not dot2:
            print(f"{chip:8} {workload.key:26} counted before from the same code", flush=True)
            continue
        try:
            told = results[workload.key] = {**calculated(setting, workload), "way": way}
        except (GpuFault, NotImplementedError, AssertionError, Refused, MemoryError) as wrong:
            print(f"{chip} {workload.key}: failed: {wrong}", flush=True)
            failed = True
            continue
        print(f"{chip:8} {workload.key:26} {1e3 * told['seconds']:9.4f} ms calculated, {1e3 * told['floor']:9.4f} ms floor, {told['floor'] / told['seconds']:4.0%}"
              f" {told['kernel']}: {told['pipe']}, coalescing {told['coalescing']:.0%}, conflicts {told['conflicts']:.0%}, "
              f"{told['counting_seconds']} s", flush=True)
        if not dot2:
            out.write_text(json.dumps(results, indent=1), encoding="utf-8")
    sys.exit(failed)


if __name__ == "__main__":
    main()
