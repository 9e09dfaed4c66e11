#!/usr/bin/env python3
"""Prints how much of each room the tests reached: lines and branches, as gcov counts them, and the files with the least of them.

    scripts/coverage.py BUILD_DIR [--files N]       a build with --coverage whose tests have run (make check-coverage)

A line or branch of a file that was compiled several times is reached if it was in any of them. Rooms are src/NAME, programs/NAME and mpi; code for
kernels is what the emulator ran.
"""
import argparse
import collections
import concurrent.futures
import json
import os
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent


def gcov(data):
    """What gcov says of one object, as the reports of its files."""
    done = subprocess.run(["gcov", "--json-format", "--stdout", "--branch-probabilities", data.name], cwd=data.parent, capture_output=True, check=False)
    if done.returncode != 0 or not done.stdout.strip():
        return []
    return [file for line in done.stdout.splitlines() if line.startswith(b"{") for file in json.loads(line)["files"]]


def room_of(path):
    parts = path.parts
    return "/".join(parts[:2]) if parts[0] in ("src", "programs") else parts[0]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("--files", type=int, default=20, help="how many of the files with the most unreached lines are named")
    wanted = parser.parse_args()
    objects = sorted(wanted.build.resolve().rglob("*.gcda"))
    if not objects:
        sys.exit(f"coverage: {wanted.build} has no counts: build it with --coverage and run its tests (make check-coverage)")
    lines = collections.defaultdict(lambda: collections.defaultdict(int))
    branches = collections.defaultdict(lambda: collections.defaultdict(int))
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for files in pool.map(gcov, objects):
            for file in files:
                path = (wanted.build.resolve() / file["file"]).resolve()
                if not path.is_relative_to(ROOT) or path.relative_to(ROOT).parts[0] not in ("src", "programs", "mpi"):
                    continue
                path = path.relative_to(ROOT)
                for line in file["lines"]:
                    lines[path][line["line_number"]] += line["count"]
                    for number, branch in enumerate(line["branches"]):
                        branches[path][line["line_number"], number] += branch["count"]
    rooms = collections.defaultdict(lambda: [0, 0, 0, 0])
    for path in lines:
        for name in (room_of(path), "all"):
            rooms[name][0] += len(lines[path])
            rooms[name][1] += sum(count > 0 for count in lines[path].values())
            rooms[name][2] += len(branches[path])
            rooms[name][3] += sum(count > 0 for count in branches[path].values())
    print(f"{'room':<24}{'lines':>8}{'reached':>9}{'branches':>10}{'taken':>8}")
    for name in sorted(rooms, key=lambda name: (name == "all", name)):
        count, reached, ways, taken = rooms[name]
        print(f"{name:<24}{count:>8}{100 * reached / max(count, 1):>8.1f}%{ways:>10}{100 * taken / max(ways, 1):>7.1f}%")
    worst = sorted(lines, key=lambda path: -sum(count == 0 for count in lines[path].values()))[:wanted.files]
    print("\nThe most lines that no test reached:")
    for path in worst:
        missed = sorted(number for number, count in lines[path].items() if count == 0)
        if missed:
            print(f"{len(missed):>5}  {path}: {', '.join(map(str, missed[:8]))}{' ...' if len(missed) > 8 else ''}")


if __name__ == "__main__":
    main()
