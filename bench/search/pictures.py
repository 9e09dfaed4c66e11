"""Pictures of the results as SVG, without a plotting library: lines over batch sizes and bars over sets of rows, both with
logarithmic scales, since what they show spans several powers of ten.
"""
import math
from xml.sax.saxutils import escape

FONT = "font-family='DejaVu Sans, Helvetica, Arial, sans-serif'"
INK, PALE, PAPER = "#333333", "#dddddd", "#ffffff"
PANEL_WIDTH, PANEL_HEIGHT = 360, 300
LEFT, RIGHT, TOP, BOTTOM = 62, 18, 40, 48  # room around the plot of a panel
HEAD = 74  # title and legend


def text(x, y, words, size=12, anchor="start", colour=INK, more=""):
    return f"<text x='{x:.1f}' y='{y:.1f}' font-size='{size}' text-anchor='{anchor}' fill='{colour}' {FONT} {more}>{escape(words)}</text>"


def line(x1, y1, x2, y2, colour=PALE, width=1.0, more=""):
    return f"<line x1='{x1:.1f}' y1='{y1:.1f}' x2='{x2:.1f}' y2='{y2:.1f}' stroke='{colour}' stroke-width='{width}' {more}/>"


def picture(width, height, parts):
    return (f"<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 {width} {height}' width='{width}' height='{height}'>\n"
            f"<rect width='{width}' height='{height}' fill='{PAPER}'/>\n" + "\n".join(parts) + "\n</svg>\n")


def decades(low, high):
    """The powers of ten from the one below `low` to the one above `high`."""
    return [10.0 ** e for e in range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)]


def number(value):
    return f"{value:,.0f}" if value >= 1 else f"{value:g}"


class LogScale:
    def __init__(self, low, high, start, end):
        self.low, self.per_unit, self.start = math.log(low), (end - start) / (math.log(high) - math.log(low)), start

    def __call__(self, value):
        return self.start + (math.log(value) - self.low) * self.per_unit


def legend(names, styles, x, y):
    parts = []
    for kind, name in names.items():
        colour, dash, mark = styles[kind]
        parts.append(line(x, y, x + 26, y, colour, 2.4, f"stroke-dasharray='{dash}'"))
        if mark:
            parts.append(f"<circle cx='{x + 13}' cy='{y}' r='3.4' fill='{colour}'/>")
        parts.append(text(x + 32, y + 4, name))
        x += 42 + 6.3 * len(name)
    return parts


def panel(x, y, title, series, styles, limits):
    """One plot of milliseconds over queries; `series` maps a kind to its points."""
    batches = sorted({q for points in series.values() for q, _ in points})
    left, right, top, bottom = x + LEFT, x + PANEL_WIDTH - RIGHT, y + TOP, y + PANEL_HEIGHT - BOTTOM
    across = LogScale(batches[0], batches[-1], left + 8, right - 8)
    up = LogScale(limits[0], limits[-1], bottom, top)
    parts = [text((left + right) / 2, y + 26, title, 13, "middle", more="font-weight='bold'")]
    for value in limits:
        parts += [line(left, up(value), right, up(value)), text(left - 6, up(value) + 4, number(value), 11, "end")]
    for queries in batches:
        parts += [line(across(queries), bottom, across(queries), bottom + 4, INK),
                  text(across(queries), bottom + 17, str(queries), 11, "middle")]
    parts += [line(left, bottom, right, bottom, INK), line(left, top, left, bottom, INK),
              text((left + right) / 2, bottom + 36, "queries in a batch", 12, "middle"),
              text(x + 14, (top + bottom) / 2, "milliseconds", 12, "middle",
                   more=f"transform='rotate(-90 {x + 14} {(top + bottom) / 2:.1f})'")]
    for kind, points in series.items():
        colour, dash, mark = styles[kind]
        path = " ".join(f"{across(q):.1f},{up(ms):.1f}" for q, ms in points)
        parts.append(f"<polyline points='{path}' fill='none' stroke='{colour}' stroke-width='2.2' stroke-dasharray='{dash}'/>")
        if mark:
            parts += [f"<circle cx='{across(q):.1f}' cy='{up(ms):.1f}' r='3' fill='{colour}'/>" for q, ms in points]
    return parts


def lines_over_batches(title, names, styles, panels, columns):
    """`panels`: (title, {kind: [(queries, milliseconds)]}); all have the same scales, so that they can be compared."""
    values = [ms for _, series in panels for points in series.values() for _, ms in points]
    limits = decades(min(values), max(values))
    rows = (len(panels) + columns - 1) // columns
    parts = [text(20, 30, title, 16, more="font-weight='bold'")] + legend(names, styles, 20, 56)
    for i, (heading, series) in enumerate(panels):
        parts += panel(i % columns * PANEL_WIDTH, HEAD + i // columns * PANEL_HEIGHT, heading, series, styles, limits)
    return picture(columns * PANEL_WIDTH, HEAD + rows * PANEL_HEIGHT, parts)


def bars_over_sets(title, axis, names, colours, bars):
    """`bars`: (label, {kind: share of all rows}); a logarithmic axis of shares up to 1."""
    shares = [share for _, kinds in bars for share in kinds.values() if share > 0]
    limits = decades(min(shares), 1.0)
    left, width, bar, gap = 150, 820, 16, 16
    each = bar * len(names) + gap
    bottom = HEAD + each * len(bars)
    across = LogScale(limits[0], 1.0, left, width - 130)
    parts = [text(20, 30, title, 16, more="font-weight='bold'")]
    x = 20
    for kind, name in names.items():
        parts += [f"<rect x='{x}' y='48' width='14' height='14' fill='{colours[kind]}'/>", text(x + 20, 60, name)]
        x += 44 + 7 * len(name)
    for value in limits:
        parts += [line(across(value), HEAD, across(value), bottom),
                  text(across(value), bottom + 16, f"{value * 100:g}%", 11, "middle")]
    for i, (label, kinds) in enumerate(bars):
        y = HEAD + gap / 2 + i * each
        parts.append(text(left - 10, y + bar * len(names) / 2 + 4, label, 12, "end"))
        for j, kind in enumerate(names):
            share = max(kinds[kind], limits[0])
            parts += [f"<rect x='{left}' y='{y + j * bar:.1f}' width='{max(across(share) - left, 1):.1f}' height='{bar - 2}' "
                      f"fill='{colours[kind]}'/>", text(across(share) + 6, y + j * bar + 11, f"{kinds[kind] * 100:.3g}%", 11)]
    parts += [line(left, HEAD, left, bottom, INK), line(left, bottom, width - 130, bottom, INK),
              text((left + width - 130) / 2, bottom + 36, axis, 12, "middle")]
    return picture(width, bottom + 52, parts)
