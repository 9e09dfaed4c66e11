#!/usr/bin/env python3
"""Writes BUILD_DIR/docs/faults.md: how many faults of each kind the tests inject, counted while they run.

    scripts/fault-report.py BUILD_DIR

Runs the test programs that inject faults (those with `faults` in their name, and a few others), each of which adds what it has
injected to the file that WARPWAVE_FAULT_COUNTS names.
"""
import collections
import concurrent.futures
import os
import pathlib
import platform
import subprocess
import sys
import tempfile

COMMANDS = ("test_faults_command", "test_faults_model_command")  # these inject into the command, the others into the library
OTHERS = ("test_gguf", "test_files_arrays", "test_key_list", "test_threads_pool", "test_tensor_files", "test_own_kernel")
EXPECTED = {
    "open": "a file that cannot be opened (EMFILE)",
    "read": "a read that fails (EIO)",
    "short-read": "a read of half the bytes; must succeed",
    "write": "a write that fails (ENOSPC)",
    "short-write": "a write of half the bytes; must succeed",
    "interrupt": "a read or write that a signal interrupts (EINTR); must succeed",
    "sync": "a sync to disk that fails (EIO)",
    "rename": "a rename that fails (EACCES)",
    "thread": "a thread that cannot be created (EAGAIN)",
    "map": "a file that the system does not map (ENODEV); must succeed",
    "populate": "a page of a mapped file that cannot be read (EIO)",
    "allocation": "an allocation that fails",
    "call of a backend": "a call of a backend that fails, before or after its work",
    "call of a GPU's driver": "a driver call that fails, or a device that is lost",
    "call of ROCm": "a call of the stand-in for ROCm that fails",
    "full device": "a report to /dev/full",
    "closed standard output": "a report to a closed standard output",
    "closed pipe": "a report or a file to a pipe without a reader",
    "limit of a file's size": "a file at its size limit (RLIMIT_FSIZE)",
    "limit of memory": "the command with too little memory (RLIMIT_AS)",
    "environment": "an environment variable with an invalid value",
    "download": "a download that fails, brings nothing or is killed",
    "interruption of the command": "Ctrl-C while the command waits",
}


def programs(build):
    tests = pathlib.Path(build) / "tests"
    found = sorted(p for p in tests.glob("test_*") if "faults" in p.name and os.access(p, os.X_OK) and p.is_file())
    return found + [tests / name for name in OTHERS if (tests / name).is_file()]


def run_one(program, path):
    """Runs a program that writes its counts to the file `path`; returns what it reports as skipped."""
    done = subprocess.run([str(program)], env=dict(os.environ, WARPWAVE_FAULT_COUNTS=str(path), WARPWAVE_TEST_LONG="1"), capture_output=True, text=True,
                          errors="replace", check=False)
    if done.returncode != 0:
        sys.exit(f"fault-report: {program.name} failed:\n{done.stdout}{done.stderr}")
    return [f"{program.name}: {line[6:]}" for line in done.stdout.splitlines() if line.startswith("SKIP: ")]


def run(build):
    """The counts of each program: {program: {kind: count}}, and those that say they skip. As many programs at once as there are cores."""
    counts = collections.defaultdict(collections.Counter)
    with tempfile.TemporaryDirectory() as folder:
        files = {program: pathlib.Path(folder) / program.name for program in programs(build)}
        with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
            skipped = [line for lines in pool.map(run_one, files.keys(), files.values()) for line in lines]
        for path in files.values():
            for line in path.read_text(encoding="utf-8").splitlines() if path.exists() else []:
                program, kind, count = line.split("|")
                counts[program][kind] += int(count)
    return counts, skipped


def page(counts, skipped):
    total = collections.Counter()
    for kinds in counts.values():
        total.update(kinds)
    unknown = sorted(set(total) - set(EXPECTED))
    if unknown:
        sys.exit(f"fault-report: no words for {', '.join(unknown)}")
    lines = ["# Faults", "",
             "**Every injected fault ended as it must**: the library returned a status and a message, leaked nothing and left its data unchanged; the",
             "command exited with a code other than 0 and a reason and kept the old file, or did all of its work. `make check-faults` counts the faults while",
             "the tests run and writes this page only if all of them pass.", "",
             f"Machine: {platform.machine()}. The numbers of allocations and threads depend on the machine.", "",
             "| kind | what fails | in the library | in the command |", "|---|---|---:|---:|"]
    for kind, what in EXPECTED.items():
        command = sum(counts[program][kind] for program in COMMANDS)
        lines.append(f"| {kind} | {what} | {total[kind] - command:,} | {command:,} |")
    lines += ["", f"In all: {sum(total.values()):,}.", ""] + [f"Not run: {line}" for line in sorted(set(skipped))]
    return "\n".join(lines).rstrip() + "\n"


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    text = page(*run(sys.argv[1]))
    target = pathlib.Path(sys.argv[1]) / "docs" / "faults.md"
    target.parent.mkdir(exist_ok=True)
    target.write_text(text, encoding="utf-8")
    print(f"fault-report: wrote {target}")


if __name__ == "__main__":
    main()
