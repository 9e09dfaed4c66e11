#!/usr/bin/env python3
"""Prints what a test run came to: a line for each test that was skipped, with the reason, and then "N passed, N failed, N skipped".

    scripts/test-summary.py BUILD_DIR ...

Reads ctest's log of the last run in each folder. The tests inside a cmocka program are counted one by one; any other program is one test. A
test that cannot run prints `SKIP: why`. A program that passed and left out a part prints the same, and the part counts as skipped. Programs
that took more than 10 seconds are named first: they should get smaller, or move to tests/long.cmake.
"""
import collections
import pathlib
import re
import sys

SECONDS_MAX = 10
NO_REASON = "it gives no reason"


def programs(log):
    """Yields the name, the output, ctest's verdict and the seconds of each program."""
    for part in re.split(r"^\d+/\d+ Testing: ", log, flags=re.M)[1:]:
        name, _, rest = part.partition("\n")
        verdict = re.search(r"^Test (Passed|Failed|Skipped|Not Run|Timeout)", rest, flags=re.M)
        seconds = re.search(r"^Test time = +([0-9.]+) sec", rest, flags=re.M)
        output = rest.partition("Output:\n")[2].partition("<end of output>")[0]
        yield name, output, verdict.group(1) if verdict else "Failed", float(seconds.group(1)) if seconds else 0.0


def count(name, output, verdict, tally):
    """Adds a program to the tally and returns its skips, each as a line."""
    skips = []
    reasons = []
    running = None
    ends = collections.Counter()
    for line in output.splitlines():
        if match := re.search(r"SKIP: (.*)", line):
            reasons.append(match.group(1).strip())
        elif match := re.search(r"\[ RUN +\] (\w+)", line):
            running = match.group(1)
        elif running and (match := re.search(rf"\[ +(OK|SKIPPED|FAILED) +\] {running}\b", line)):
            ends[match.group(1)] += 1
            running = None # cmocka lists what was skipped and what failed once more at the end
            if match.group(1) == "SKIPPED":
                skips.append(f"{name}, {line.split()[-1]}: {reasons.pop() if reasons else NO_REASON}")
    skips += [f"{name}: {reason}" for reason in reasons]
    tally["skipped"] += len(skips)
    # ctest's log calls a program that left with SKIP_RETURN_CODE passed; what it printed last was why.
    whole = verdict == "Skipped" or not ends and re.search(r"^SKIP: .*\n*\Z", output, flags=re.M) is not None
    tally["passed"] += ends["OK"] if ends else verdict == "Passed" and not whole
    if verdict not in ("Passed", "Skipped"):
        tally["failed"] += max(ends["FAILED"], 1)
        print(f"FAILED {name}")
    return skips


def main():
    tally = collections.Counter()
    skips = []
    several = len(sys.argv) > 2
    for build in sys.argv[1:]:
        path = pathlib.Path(build) / "Testing" / "Temporary" / "LastTest.log"
        if not path.is_file():
            raise SystemExit(f"test-summary: {path} is not there: the tests of {build} have not run")
        where = f"{build}: " if several else ""
        for name, output, verdict, seconds in programs(path.read_text(encoding="utf-8", errors="replace")):
            skips += [where + line for line in count(name, output, verdict, tally)]
            if seconds > SECONDS_MAX and not several:
                print(f"over {SECONDS_MAX} s: {name} ({seconds:.0f} s)")
    for line in skips:
        print(f"SKIP {line}")
    print(f"{tally['passed']} passed, {tally['failed']} failed, {tally['skipped']} skipped")
    sys.exit(1 if tally["failed"] or not tally["passed"] else 0)


if __name__ == "__main__":
    main()
