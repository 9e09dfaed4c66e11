#!/usr/bin/env python3
"""Runs clang-tidy over the tracked C files that a build compiles, as many at a time as there are cores, and says how far it is.

scripts/tidy.py BUILD_DIR [--states N] [--every-form]
  --states N     how many states of a function the static analyzer looks at; without it 50000, and the tests are checked without the
                 analyzer: they run under the sanitizers
  --every-form   a file that is compiled several times, with other definitions, is checked each time, not once

A file that was found clean is not checked again while its text and all that it includes, the options and clang-tidy are the same: the folder
$XDG_CACHE_HOME/warpwave/tidy (~/.cache) has a name for each such state. LINT_CACHE=no does without. CLANG_TIDY names another clang-tidy.
"""
import argparse
import concurrent.futures
import functools
import hashlib
import json
import os
import pathlib
import re
import shlex
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
TIDY = os.environ.get("CLANG_TIDY", "clang-tidy-19")
NOISE = re.compile(r"^(\d+ warnings?( and \d+ errors?)? generated\.|Suppressed \d+ warnings.*|Use -header-filter.*|\[\d+/\d+\] Processing file .*)$")
DAYS_KEPT = 30


def cache_folder():
    if os.environ.get("LINT_CACHE") == "no":
        return None
    folder = pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache") / "warpwave" / "tidy"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for old in folder.iterdir():
            if old.stat().st_mtime < time.time() - DAYS_KEPT * 86400:
                old.unlink(missing_ok=True)
    except OSError:
        return None
    return folder


def compiled(build, every_form):
    """The commands of the build for each tracked file: the first, or all that differ in more than their output."""
    tracked = subprocess.run(["git", "ls-files", "-z", "*.c"], cwd=ROOT, check=True, capture_output=True, text=True).stdout.split("\0")
    wanted = {str(ROOT / path) for path in tracked if path}
    chosen = {}
    for entry in json.loads((build / "compile_commands.json").read_text()):
        if entry["file"] not in wanted:
            continue
        words = shlex.split(entry["command"])
        if "ccache" in words[0]:
            words = words[1:]
        without = [word for word in words if not word.startswith("-Werror")]
        at = without.index("-o")
        without = without[:at] + without[at + 2:]
        forms = chosen.setdefault(entry["file"], {})
        if every_form or not forms:
            forms.setdefault(tuple(without), entry)
    return chosen


def options_for(path, states):
    if states is None and (path.parts[0] in ("tests", "bench") or path.parts[:2] in (("testing", "standin"), ("testing", "inject"))):
        return ["--checks=-clang-analyzer-*"]
    return [f"--extra-arg={word}" for word in ("-Xclang", "-analyzer-config", "-Xclang", f"max-nodes={states or 50000}")]


@functools.cache
def digest(path):
    return hashlib.sha256(pathlib.Path(path).read_bytes()).digest()


def state(words, entry, options, version):
    """A name of all that the result depends on; None where the compiler cannot say what is included."""
    rule = subprocess.run(words + ["-M", "-w"], cwd=entry["directory"], capture_output=True, text=True, check=False)
    if rule.returncode != 0:
        return None
    folder = pathlib.Path(entry["file"]).parent
    paths = [str(settings) for above in [folder, *folder.parents] if (settings := above / ".clang-tidy").is_file()]
    paths += [os.path.join(entry["directory"], path) for path in shlex.split(rule.stdout.replace("\\\n", " "))[1:]]
    name = hashlib.sha256("\0".join([version, *options, *words]).replace(str(ROOT), "").encode()) # the same in every checkout
    for path in paths:
        name.update(digest(path))
    return name.hexdigest()


def check(job):
    words, entry, options, version, cache, database = job
    key = state(list(words), entry, options, version) if cache else None
    if key and (cache / key).is_file():
        os.utime(cache / key)
        return True, ""
    done = subprocess.run([TIDY, "-p", str(database), "--quiet", *options, entry["file"]], cwd=ROOT, capture_output=True, text=True, check=False)
    said = "\n".join(line for line in (done.stdout + done.stderr).splitlines() if line and not NOISE.match(line))
    if done.returncode == 0 and not said and key:
        (cache / key).touch()
    return done.returncode == 0 and not said, said


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("--states", type=int)
    parser.add_argument("--every-form", action="store_true")
    wanted = parser.parse_args()
    if not (wanted.build / "compile_commands.json").is_file():
        sys.exit(f"tidy: {wanted.build}/compile_commands.json is not there: run cmake first")
    version = subprocess.run([TIDY, "--version"], check=True, capture_output=True, text=True).stdout
    cache = cache_folder()
    chosen = compiled(wanted.build, wanted.every_form)
    forms = max(len(commands) for commands in chosen.values())
    jobs = []
    for form in range(forms): # clang-tidy checks every command that it finds for a file, so each database has one
        database = (wanted.build / "lint" / str(form)).resolve()
        database.mkdir(parents=True, exist_ok=True)
        entries = {path: list(commands.items())[form] for path, commands in chosen.items() if form < len(commands)}
        (database / "compile_commands.json").write_text(json.dumps([entry for _, entry in entries.values()]))
        for path, (words, entry) in entries.items():
            jobs.append((words, entry, options_for(pathlib.Path(path).relative_to(ROOT), wanted.states), version, cache, database))
    jobs.sort(key=lambda job: -pathlib.Path(job[1]["file"]).stat().st_size)
    failed = 0
    begun = time.monotonic()
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for count, (clean, said) in enumerate(pool.map(check, jobs), 1):
            if not clean:
                failed += 1
                print(said, flush=True)
            if count % 100 == 0 and count < len(jobs):
                print(f"lint: clang-tidy {count} of {len(jobs)} files ({time.monotonic() - begun:.0f} s)", file=sys.stderr, flush=True)
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
