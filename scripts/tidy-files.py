#!/usr/bin/env python3
"""Prints, separated by NUL, the tracked C files that a build compiles, for which clang-tidy has flags.

scripts/tidy-files.py BUILD_DIR"""
import json
import pathlib
import subprocess
import sys

root = pathlib.Path(__file__).resolve().parent.parent
tracked = subprocess.run(["git", "ls-files", "-z", "*.c"], cwd=root, check=True, capture_output=True, text=True).stdout.split("\0")
compiled = {entry["file"] for entry in json.loads((pathlib.Path(sys.argv[1]) / "compile_commands.json").read_text())}
sys.stdout.write("".join(f"{path}\0" for path in tracked if path and str(root / path) in compiled))
