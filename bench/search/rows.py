#!/usr/bin/env python3
"""Draws rows.svg, the picture of README, from bench/results/cuvs.csv and index-faiss.csv: time against rows on a GPU beside cuVS, and time against
recall of an index beside FAISS's. bench/run calls it after each run; lint calls it with --check, which only compares.

    python3 bench/search/rows.py [--check]
"""
import csv
import pathlib
import re
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import pictures  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parents[2]
PICTURE = ROOT / "bench/search/rows.svg"
WIDTH, HEIGHT, TOP, BOTTOM = 960, 422, 78, 346
RECALL_MIN = 0.9  # of the settings of an index the fastest with at least this recall is drawn, or the one with the best
HALO = f"stroke='{pictures.PAPER}' stroke-width='4'"  # of words that lie on lines
STYLES = {"Warpwave, exact": "#c2410c", "cuVS brute force": "#6b7280", "cuVS CAGRA": "#2563eb", "cuVS IVF-Flat": "#0f766e",
          "Warpwave, index": "#c2410c", "FAISS IVF": "#6b7280"}


def table(name):
    with open(ROOT / f"bench/results/{name}.csv", encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def of_data(rows, kind):
    """The rows of a data set that begin like `kind`: what is drawn of them, as (milliseconds, recall)."""
    found = [(float(row["ms"]), float(row["recall"])) for row in rows if row["what"].startswith(kind)]
    good = [one for one in found if one[1] >= RECALL_MIN]
    return min(good) if good else max(found, key=lambda one: one[1])


def mark(x, y, colour, real):
    return f"<circle cx='{x:.1f}' cy='{y:.1f}' r='5' fill='{colour if real else pictures.PAPER}' stroke='{colour}' stroke-width='2'/>"


def spread(labels, least=13):
    """Labels (y, ...) moved down as far as needed so that none covers another."""
    placed, last = [], -1e9
    for y, *rest in sorted(labels):
        last = max(y, last + least)
        placed.append((last, *rest))
    return placed


def frame(left, right, title, across, up, ticks_x, ticks_y, axis):
    parts = [pictures.text(left - 46, 62, title, 13, more="font-weight='bold'")]
    for value in ticks_y:
        parts += [pictures.line(left, up(value), right, up(value)), pictures.text(left - 6, up(value) + 4, pictures.number(value), 11, "end")]
    for value, words in ticks_x:
        parts.append(pictures.line(across(value), BOTTOM, across(value), BOTTOM + 4, pictures.INK))
        parts += [pictures.text(across(value), BOTTOM + 17 + 13 * i, word, 11, "middle") for i, word in enumerate(words)]
    return parts + [pictures.line(left, BOTTOM, right, BOTTOM, pictures.INK), pictures.line(left, TOP, left, BOTTOM, pictures.INK),
                    pictures.text((left + right) / 2, BOTTOM + 64, axis, 12, "middle")]


def against_rows():
    sets = {}
    for row in table("cuvs"):
        sets.setdefault(row["data"], []).append(row)
    points = []  # rows, real or generated, words, {kind: (ms, recall)}
    for name, rows in sets.items():
        real, size = (name.split(", ", 1) + [name])[:2] if not name[0].isdigit() else ("", name)
        points.append((int(re.match(r"[\d,]+", size)[0].replace(",", "")), bool(real), [*size.replace(" x ", "|x ").split("|"), real or "generated"],
                       {kind: of_data(rows, kind) for kind in list(STYLES)[:4]}))
    points.sort()
    left, right = 66, 560
    across = pictures.LogScale(points[0][0] * 0.7, points[-1][0] * 1.9, left, right)
    limits = pictures.decades(min(ms for *_, kinds in points for ms, _ in kinds.values()), max(ms for *_, kinds in points for ms, _ in kinds.values()))
    up = pictures.LogScale(limits[0], limits[-1], BOTTOM, TOP)
    parts = frame(left, right, "10,000 queries on an H200: milliseconds (and recall)", across, up, [(rows, words) for rows, _, words, _ in points], limits, "rows")
    generated = [point for point in points if not point[1]]
    for kind in list(STYLES)[:4]:
        path = " ".join(f"{across(rows):.1f},{up(kinds[kind][0]):.1f}" for rows, _, _, kinds in generated)
        parts.append(f"<polyline points='{path}' fill='none' stroke='{STYLES[kind]}' stroke-width='1.5'/>")
    for rows, real, _, kinds in points:
        parts += [mark(across(rows), up(ms), STYLES[kind], real) for kind, (ms, _) in kinds.items()]
        labels = [(up(ms) + 4, f"{ms:g}" + ("" if recall == 1 else f" ({recall:.2f})"), STYLES[kind]) for kind, (ms, recall) in kinds.items()]
        for y, words, colour in spread(labels):
            parts += [pictures.text(across(rows) + 9, y, words, 10.5, colour=shade, more=halo) for shade, halo in ((pictures.PAPER, HALO), (colour, ""))]
    return parts


def against_recall():
    rows = table("index-faiss")
    ours = [(float(row["recall@10"]), float(row["one query"])) for row in rows]
    theirs = [(float(row["FAISS IVF1024,Flat: recall@10"]), float(row["FAISS IVF1024,Flat: one query"])) for row in rows]
    left, right = 634, 940
    across = lambda recall: left + 8 + (recall - 0.6) / 0.4 * (right - left - 16)
    limits = pictures.decades(min(ms for _, ms in ours + theirs), max(ms for _, ms in ours + theirs))
    up = pictures.LogScale(limits[0], limits[-1], BOTTOM, TOP)
    parts = frame(left, right, "One query, GloVe, 398,000 x 50: milliseconds", across, up, [(tenth / 10, [f"{tenth / 10:g}"]) for tenth in range(6, 11)], limits,
                  "recall, two Xeon threads")
    for kind, points in (("Warpwave, index", ours), ("FAISS IVF", theirs)):
        path = " ".join(f"{across(recall):.1f},{up(ms):.1f}" for recall, ms in points)
        parts.append(f"<polyline points='{path}' fill='none' stroke='{STYLES[kind]}' stroke-width='1.5'/>")
        parts += [mark(across(recall), up(ms), STYLES[kind], True) for recall, ms in points]
    parts += [pictures.text(left + 14, TOP + 16, "Warpwave, index", 12, colour=STYLES["Warpwave, index"]), pictures.text(left + 14, TOP + 32, "FAISS IVF1024,Flat", 12, colour=STYLES["FAISS IVF"])]
    return parts


def drawn():
    parts, x = [pictures.text(20, 26, "Time against rows: exact search, and indexes that miss some", 16, more="font-weight='bold'")], 20
    for kind in list(STYLES)[:4]:
        parts.append(pictures.text(x, 44, kind, 12, colour=STYLES[kind]))
        x += 18 + 7 * len(kind)
    parts.append(pictures.text(x, 44, "filled: real data; hollow: generated", 12))
    return pictures.picture(WIDTH, HEIGHT, parts + against_rows() + against_recall())


def main():
    if sys.argv[1:] == ["--check"]:
        if PICTURE.read_text(encoding="utf-8") != drawn():
            sys.exit("bench/search/rows.svg is not what bench/results says: run python3 bench/search/rows.py")
    elif sys.argv[1:]:
        sys.exit(__doc__)
    else:
        PICTURE.write_text(drawn(), encoding="utf-8")


if __name__ == "__main__":
    main()
