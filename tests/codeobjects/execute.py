#!/usr/bin/env python3
"""Executes kernels on AMD's emulated chips, on all cores at once, and keeps the results: the evidence that docs/evidence/codeobjects.tsv holds.

    execute.py [--short] [--all] [--test] [--jobs N] BUILD_DIR CHIP [CHIP...] [-- KERNEL...]
    execute.py --dot2 BUILD_DIR CHIP [CHIP...]      fast products of f16 as chips without matrix units have them, compiled for these

Executes the kernels whose machine code the table does not have as passed; with --all every one, with KERNELs only these. --short runs the small cases,
--test writes nothing.
A kernel that was compiled again to the same machine code keeps its line, which gets the hash of the source as it is now. Every result is written
at once, so a run that was stopped goes on where it was. The rest of each result (which instructions were reached) is kept in
BUILD_DIR/codeobjects/CHIP.json. Exits with 1 if a kernel failed.
"""
import argparse
import json
import pathlib
import subprocess
import sys
import threading
import time

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.path.insert(0, str(ROOT / "scripts/kernels"))

import code_evidence as evidence  # noqa: E402
from code_objects import CodeObject  # noqa: E402

UNKNOWN_SECONDS = 60.0  # a test that was not timed before


class Run:
    """What is to be executed, and where results go. One thread at a time writes."""

    def __init__(self, build, chips, options):
        self.build, self.options, self.lock, self.failed = build, options, threading.Lock(), []
        self.tree = evidence.tree(build)
        self.table = evidence.read_table()
        self.compiler = evidence.compiler_of(build)
        self.test_of = json.loads(subprocess.run([sys.executable, str(HERE / "check.py"), "--groups"], check=True, capture_output=True, text=True).stdout)
        self.hashes = {chip: self._hashes(chip) for chip in chips}
        self.results = {chip: self._kept(chip) for chip in chips}
        if not options.kernels:
            self.table = {key: row for key, row in self.table.items() if key in self.tree}  # kernels that are gone
        self.queues = {chip: self._queue(chip) for chip in chips}
        self.write()

    def write(self):
        if not self.options.test:
            evidence.write_table(self.table)

    def path(self, chip):
        return self.build / "codeobjects" / f"{chip}.json"

    def _kept(self, chip):
        return json.loads(self.path(chip).read_text(encoding="utf-8")) if self.path(chip).exists() else {}

    def _hashes(self, chip):
        modules = {module for (of, _), (module, _) in self.tree.items() if of == chip}
        found = {}
        for module in modules:
            code = CodeObject((self.build / "kernels" / f"{module}.{chip}.hsaco").read_bytes())
            found.update((kernel, code.hash_of(kernel)) for kernel in code.kernels)
        return found

    def _wanted(self, chip, kernel):
        if self.options.kernels:
            return kernel in self.options.kernels
        row = self.table.get((chip, kernel))
        if self.options.all or row is None or row["result"] != "passed" or row["code"] != self.hashes[chip][kernel]:
            return True
        row["source"], row["compiler"] = self.tree[chip, kernel][1], self.compiler  # the same machine code
        return not self.options.short and row["cases"] != "full"

    def _queue(self, chip):
        """Tests, the longest last, each as the list of its kernels that are wanted."""
        groups = {}
        for (of, kernel) in self.tree:
            if of == chip and self._wanted(chip, kernel):
                groups.setdefault(self.test_of.get(kernel, kernel), []).append(kernel)
        before = self.results[chip]
        return sorted(groups.values(), key=lambda kernels: max(before.get(kernel, {}).get("seconds", UNKNOWN_SECONDS) for kernel in kernels))

    def keep(self, chip, told):
        with self.lock:
            for kernel, result in told.items():
                module, source = self.tree[chip, kernel]
                if result["status"] == "passed" and result["hash"] != self.hashes[chip][kernel]:
                    result.update(status="failed", why="the library has other machine code than the folder of kernels: build it again")
                self.results[chip][kernel] = result
                self.table[chip, kernel] = {
                    "chip": chip, "module": module, "kernel": kernel, "source": source, "code": self.hashes[chip][kernel], "compiler": self.compiler,
                    "cases": result["cases"], "launches": result["launches"], "comparisons": result["checks"], "instructions": result["instructions"],
                    "reached": result["reached"], "result": result["status"]}
                if result["status"] != "passed":
                    self.failed.append(f"{chip} {kernel}: {result['why']}")
                print(f"{result['status']:12} {chip:8} {kernel:28} wave{result['wave']}: {result['launches']} launches, {result['wave_instructions']} instructions "
                      f"by waves, {result['reached']} of {result['instructions']} reached, {result['seconds']} s {result['why']}", flush=True)
            if not self.options.test:
                self.path(chip).write_text(json.dumps(self.results[chip]), encoding="utf-8")
            self.write()

    def take(self, chip):
        with self.lock:
            return self.queues[chip].pop() if self.queues[chip] else None

    def busiest(self, workers):
        """The chip with most tests left for each worker that is on it."""
        with self.lock:
            left = {chip: len(tests) / (1 + workers[chip]) for chip, tests in self.queues.items() if tests}
        return max(left, key=left.get) if left else None


def work(run, chip):
    """One process for one chip: instructions that it has translated serve all its tests."""
    command = [sys.executable, str(HERE / "check.py"), *(["--short"] if run.options.short else []), str(run.build), chip]
    log = run.build / "codeobjects" / f"log-{chip}-{threading.get_ident()}"
    with log.open("w", encoding="utf-8") as errors, subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors, text=True) as process:
        while kernels := run.take(chip):
            try:
                print(*kernels, file=process.stdin, flush=True)
                answer = process.stdout.readline()
            except BrokenPipeError:
                answer = ""
            if not answer:
                with run.lock:
                    run.failed.append(f"{chip} {' '.join(kernels)}: the process ended: {log.read_text(encoding='utf-8')[-2000:]}")
                break
            run.keep(chip, json.loads(answer))
        process.stdin.close()


def execute(run):
    workers, lock = dict.fromkeys(run.queues, 0), threading.Lock()

    def worker():
        while True:
            with lock:
                chip = run.busiest(workers)
                if chip is None:
                    return
                workers[chip] += 1
            work(run, chip)
            with lock:
                workers[chip] -= 1

    threads = [threading.Thread(target=worker) for _ in range(run.options.jobs)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def by_dot2(build, chip):
    """Executes the form of matmul_fast_f16 for chips without matrix units; BUILD_DIR/codeobjects/dot2/CHIP.json gets the result."""
    answer = subprocess.run([sys.executable, str(HERE / "check.py"), "--dot2", str(build), chip], check=True, input="matmul_fast_f16\n", stdout=subprocess.PIPE,
                            text=True).stdout
    (build / "codeobjects/dot2" / f"{chip}.json").write_text(answer, encoding="utf-8")
    passed = all(result["status"] == "passed" for result in json.loads(answer).values())
    print(f"{'passed' if passed else 'failed':12} {chip:8} matmul_fast_f16 by v_dot2_f32_f16", flush=True)
    return passed


def main():
    arguments, kernels = sys.argv[1:], []
    if "--" in arguments:
        arguments, kernels = arguments[:arguments.index("--")], arguments[arguments.index("--") + 1:]
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("--short", action="store_true")
    parser.add_argument("--all", action="store_true")
    parser.add_argument("--test", action="store_true")
    parser.add_argument("--dot2", action="store_true")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("chips", nargs="+")
    options = parser.parse_args(arguments)
    options.kernels, options.build = kernels, options.build.resolve()
    if options.dot2:
        sys.exit(not all([by_dot2(options.build, chip) for chip in options.chips]))
    begin = time.monotonic()
    (options.build / "codeobjects").mkdir(exist_ok=True)
    run = Run(options.build, options.chips, options)
    wanted = {chip: sum(map(len, tests)) for chip, tests in run.queues.items()}
    print(f"code objects: {', '.join(f'{count} kernels for {chip}' for chip, count in wanted.items())} to execute", flush=True)
    execute(run)
    print(f"code objects: {sum(wanted.values()) - len(run.failed)} executed in {time.monotonic() - begin:.0f} s", flush=True)
    print("\n".join(run.failed), file=sys.stderr, end="\n" if run.failed else "")
    sys.exit(bool(run.failed))


if __name__ == "__main__":
    main()
