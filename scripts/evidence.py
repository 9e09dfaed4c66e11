#!/usr/bin/env python3
"""The pages of docs/evidence carry the commit that they were made from.

    scripts/evidence.py stamp PAGE     writes that line into docs/evidence/PAGE.md; the make targets that write pages run this
    scripts/evidence.py lines          writes the lines of parity-lines.tsv into parity.md, and what runs where into README.md
    scripts/evidence.py check          fails if a page has no such line, or if these lines are others; warns of pages whose sources have changed a lot
"""
import csv
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
EVIDENCE = ROOT / "docs" / "evidence"
COMMITS_MAX = 100  # a page is called old if more commits than this have changed its sources
# Page: the make target that writes it, and the sources that its contents depend on.
PAGES = {
    "accuracy": ("check-accuracy", "src/arithmetic bench/tensor/ulp.c"),
    "amd-performance": ("check-amd-performance", "src/kernels src/gpu src/arithmetic cmake/Kernels.cmake tests/codeobjects"),
    "codeobjects": ("check-codeobjects", "src/kernels src/gpu src/arithmetic cmake/Kernels.cmake tests/codeobjects"),
    "parity": ("check-parity", "src tests/device/test_cross_backend.c"),
}
LINES = "## Lines to compare\n"
WHERE, WHERE_END = "<!-- runs: scripts/evidence.py -->", "<!-- end -->"
AMD = re.compile(r"(?:gfx\w+(?:, gfx\w+)*: emulated; )?[\w-]+ other targets: compiled")  # scripts/kernels/code_evidence.py writes these words
LINE = re.compile(r"^Made by `make ([\w-]+)` at commit ([0-9a-f]{8,40}) of (\d{4}-\d\d-\d\d)\b.*$", flags=re.M)


def git(*arguments):
    """The output of git, or None if it fails: there is no git, no repository or no such commit."""
    try:
        done = subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=False)
    except FileNotFoundError:
        return None
    return done.stdout.strip() if done.returncode == 0 else None


def stamp(page):
    target, sources = PAGES[page]
    path = EVIDENCE / f"{page}.md"
    found = git("log", "-1", "--abbrev=8", "--format=%h %cs")
    if found is None:
        sys.exit(f"evidence: {path} needs the commit that it was made from, and this is no clone")
    commit, date = found.split()
    changed = ", with changes that were not committed" if git("status", "--porcelain", "--", *sources.split()) else ""
    line = f"Made by `make {target}` at commit {commit} of {date}{changed}. Do not edit. For people who check what other pages claim."
    heading, _, rest = LINE.sub("", path.read_text(encoding="utf-8")).partition("\n")
    path.write_text(f"{heading}\n\n{line}\n\n{rest.lstrip()}", encoding="utf-8")


def parity_rows():
    """The table of parity-lines.tsv; its first row has the names of the columns."""
    return [line.split("\t") for line in (EVIDENCE / "parity-lines.tsv").read_text(encoding="utf-8").splitlines() if not line.startswith("#")]


def lines_section():
    """The section of parity.md that parity-lines.tsv stands for."""
    names, *rows = parity_rows()
    words = dict(zip(names[4:], rows[0][4:]))
    text = [LINES, "`warpwave bench --parity` computes a fixed set of searches, tensors, products and the logits of a small model, and prints a digest of the bits",
            "of each. Every machine in the table prints the same four words, except where it says otherwise:", "",
            "    " + "  ".join(f"{name} {word}" for name, word in words.items()), "",
            "If you own a card that is not here, compare yours by eye, and send them with `warpwave devices`. *run*: on that machine; the kernels of emulated",
            "devices are compiled for the host.", "", "| machine | devices | how | date |", "|---|---|---|---|"]
    groups = {}
    for machine, device, how, date, *told in rows:
        other = "".join(f"; **{name} {word}**" for name, word, known in zip(names[4:], told, words.values()) if word != known)
        groups.setdefault((machine, how + other, date), []).append(device)
    text += [f"| {machine} | {'; '.join(devices)} | {how} | {date} |" for (machine, how, date), devices in groups.items()]
    return "\n".join(text) + "\n"


def with_lines(page):
    """The page with that section at its end, in place of the one it has."""
    return page.split(LINES)[0].rstrip() + "\n\n" + lines_section()


# ---- what runs where ----------------------------------------------------------------------------------------------------------


def runs(device):
    """What parity-lines.tsv says was run on hardware: for each machine the devices whose names begin like this one, and the last date."""
    found, (names, *rows) = {}, parity_rows()
    for row in (dict(zip(names, row)) for row in rows):
        if row["how"] == "run" and row["device"].startswith(device):
            devices, date = found.get(row["machine"], ([], ""))
            found[row["machine"]] = [*devices, row["device"]], max(date, row["date"])
    return found


def gpu_line(device, listed):
    """The GPUs that were run, each with its chip as parity.md has it, and the chips of the list that are on none of them."""
    page, said, ran = (EVIDENCE / "parity.md").read_text(encoding="utf-8"), [], set()
    for machine, (_, date) in runs(device).items():
        name = machine.split(",")[0]
        chip = re.search(rf"run on hardware: {re.escape(name)}, (\w+),", page)
        chips = [one for one in listed if chip and one in (chip[1], chip[1] + "a")]
        ran.update(chips)
        said.append(f"run on {name}{f' ({chips[0]})' if chips else ''}, {date}")
    return said, [one for one in listed if one not in ran]


def timed(machine):
    """The last date of bench/results on a machine whose name begins like this."""
    dates = [row[-3] for path in (ROOT / "bench/results").glob("*.csv") if path.stem != "notes"
             for row in csv.reader(path.read_text(encoding="utf-8").splitlines()) if len(row) > 4 and row[-4].startswith(machine)]
    return max(dates, default=None)


def where_lines(readme):
    """The lines of README that say what runs where. The words on AMD's chips are those that are in README."""
    nvidia, amd = (re.search(rf'^{vendor}="([^"]*)"', (ROOT / "scripts/kernels/chips.sh").read_text(encoding="utf-8"), flags=re.M)[1].split()
                   for vendor in ("nvidia", "amd"))
    for machine, (devices, date) in runs("cpu").items():
        name, architecture = machine.rsplit(", ", 1)
        yield f"- {architecture}: run on {name} ({', '.join(device.removeprefix('cpu, ') for device in devices)}), {date}."
    date = timed("Neoverse-V1")
    if date:
        yield f"- ARM64: run on Neoverse-V1 (scalar, neon with SDOT and i8mm), {date}."
    said, compiled = gpu_line("cuda", nvidia)
    yield f"- NVIDIA: {'; '.join(said + [', '.join(compiled) + ': compiled'])}. Models: random weights only."
    said, _ = gpu_line("rocm", amd)
    words = AMD.search(readme)
    yield f"- AMD: {'; '.join(said + [words[0] if words else 'nothing is known'])}. Host code: run on a stand-in."
    yield "- SQL, servers, PostgreSQL, MPI, Qdrant's and OpenAI's clients: run on these CPUs."


def with_where(readme):
    """README with those lines in place of the ones it has."""
    before, begin, rest = readme.partition(WHERE)
    _, end, after = rest.partition(WHERE_END)
    return f"{before}{begin}\n" + "\n".join(where_lines(readme)) + f"\n{end}{after}" if end else None


def check():
    wrong = [f"docs/evidence/{path.name}: scripts/evidence.py does not know this page" for path in sorted(EVIDENCE.glob("*.md")) if path.stem not in PAGES]
    parity = (EVIDENCE / "parity.md").read_text(encoding="utf-8")
    if parity != with_lines(parity):
        wrong.append("docs/evidence/parity.md has other lines than parity-lines.tsv: run scripts/evidence.py lines")
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    if readme != with_where(readme):
        wrong.append("README.md says other things of what runs where than the evidence: run scripts/evidence.py lines")
    for page, (target, sources) in PAGES.items():
        path = EVIDENCE / f"{page}.md"
        line = LINE.search(path.read_text(encoding="utf-8")) if path.exists() else None
        if not line or line.group(1) != target:
            wrong.append(f"docs/evidence/{page}.md: no line 'Made by `make {target}` at commit ... of ...'")
            continue
        commits = git("rev-list", "--count", f"{line.group(2)}..HEAD", "--", *sources.split())
        if commits is None:
            print(f"evidence: {page}.md: commit {line.group(2)} is not in this clone, so its age is unknown")
        elif int(commits) > COMMITS_MAX and page != "codeobjects":  # its table has hashes: scripts/kernels/code_evidence.py check
            print(f"warning: docs/evidence/{page}.md is of {line.group(3)}; its sources had {commits} commits since then: run make {target}")
    print("\n".join(wrong), file=sys.stderr, end="\n" if wrong else "")
    return 1 if wrong else 0


def main():
    if len(sys.argv) == 3 and sys.argv[1] == "stamp" and sys.argv[2] in PAGES:
        stamp(sys.argv[2])
    elif sys.argv[1:] == ["lines"]:
        path = EVIDENCE / "parity.md"
        path.write_text(with_lines(path.read_text(encoding="utf-8")), encoding="utf-8")
        readme = with_where((ROOT / "README.md").read_text(encoding="utf-8"))
        if readme is None:
            sys.exit(f"evidence: README.md lacks the lines {WHERE} and {WHERE_END}")
        (ROOT / "README.md").write_text(readme, encoding="utf-8")
    elif sys.argv[1:] == ["check"]:
        sys.exit(check())
    else:
        sys.exit(__doc__)


if __name__ == "__main__":
    main()
