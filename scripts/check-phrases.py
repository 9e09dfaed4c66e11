#!/usr/bin/env python3
"""Finds the phrases of scripts/phrases.txt in documents, headers, sources, tests and benchmarks. Prints each as FILE:LINE: phrase: what to write
instead, and exits 1 if there is one."""
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
COVERED = re.compile(r"(.*\.md|include/.*|(?:src|tests|bench|examples|tools|python|programs|mpi|testing)/.*\.(?:c|h|def))$")
# A space in a phrase matches any white space, and the end of a line inside a comment.
SPACE = r"(?:\\s+\\*?\\s*)"


def phrases():
    for line in (ROOT / "scripts/phrases.txt").read_text(encoding="utf-8").splitlines():
        if line and not line.startswith("#"):
            pattern, better = line.split("\t")
            yield literals(pattern), re.compile(re.sub(r"(?<!^) ", SPACE, pattern), flags=re.I), better


def literals(pattern):
    """Words that every match contains, in lower case: looking for them takes a hundredth of the time of the expression."""
    plain = re.sub(r"\(\?<[!=].*?\)", " ", pattern)
    plain = re.sub(r"\(.*\)|\[.*?\]|\\.|.[?*+{][^ ]*|[|^$.]", " ", plain)
    return plain.lower().split()


def main():
    listed = subprocess.run(["git", "ls-files", "-co", "--exclude-standard"], cwd=ROOT, check=True, capture_output=True, text=True).stdout.splitlines()
    known, found = list(phrases()), 0
    for path in sorted(filter(COVERED.match, listed)):
        if not (ROOT / path).exists():
            continue
        text = (ROOT / path).read_text(encoding="utf-8")
        lower = text.lower()
        for words, pattern, better in known:
            if not all(word in lower for word in words):
                continue
            for match in pattern.finditer(text):
                found += 1
                said = re.sub(r"\s+\*?\s*", " ", match.group())
                print(f"{path}:{text.count(chr(10), 0, match.start()) + 1}: \"{said}\": write {better}", file=sys.stderr)
    sys.exit(1 if found else 0)


if __name__ == "__main__":
    main()
