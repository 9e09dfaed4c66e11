"""The screen (src/kernels/screen.h) in numpy, to the bit where the header fixes the bits, and in double precision where it only bounds
them: codes, scales and residuals of rows; the sample's guesses; which rows a threshold must keep and which it must not."""
import ctypes

import numpy as np

from canonical import COSINE, DOT, KEY_WORST, L2, make_keys, packed_first, runs_of

f32 = np.float32
SMALLEST, VANISHED, UNDERFLOW = f32(2.0**-100), f32(2.0**-64), f32(2.0**-110)
NORM_LEAST, NORM_MOST = f32(2.0**-40), f32(2.0**60)
BUCKET_ROWS = 32

_fmaf = ctypes.CDLL("libm.so.6").fmaf
_fmaf.restype, _fmaf.argtypes = ctypes.c_float, [ctypes.c_float] * 3


def fma(a, b, c):
    """Element by element, rounded once: numpy has none."""
    a, b, c = np.broadcast_arrays(f32(a), f32(b), f32(c))
    return np.array([_fmaf(x, y, z) for x, y, z in zip(a.reshape(-1).tolist(), b.reshape(-1).tolist(), c.reshape(-1).tolist())], f32).reshape(a.shape)


def slack(dim):
    return f32(runs_of(dim) + 64) * f32(2.0**-23)


class Coded:
    """Rows as the screen stores them. `codes` is in the elements' own order, padded; `stored` in the device's."""

    def __init__(self, library, rows):
        count, dim = rows.shape
        padded = np.zeros((count, runs_of(dim) * 64), f32)
        padded[:, :dim] = rows
        largest = np.abs(padded).max(axis=1, initial=0)
        small = largest < SMALLEST
        safe = np.where(small, f32(1), largest)
        self.scales = np.where(small, f32(0), safe / f32(127))
        inverse = np.where(small, f32(0), f32(127) / safe)
        magic = f32(1.5 * 2**23)
        scaled = (padded * inverse[:, None]).astype(f32)
        self.codes = (scaled + magic).astype(f32).view(np.int32) - magic.view(np.int32)
        # Where a code is not 0 the element is no smaller than half the scale, so that double precision holds the difference exactly.
        rests = (padded.astype(np.float64) - self.scales[:, None].astype(np.float64) * self.codes).astype(f32)
        self.residuals = fma(library.norms(rests), f32(1) + slack(dim), VANISHED)
        self.norms = library.norms(rows)
        self.stored = np.ascontiguousarray(self.codes.astype(np.int8)[:, code_order(runs_of(dim))])


def code_order(runs):
    """The element that stands at each place of a row's codes."""
    run = [packed_first(group) + behind for group in range(16) for behind in (0, 32, 16, 48)]
    return np.concatenate([np.array(run) + 64 * r for r in range(runs)])


def guesses(metric, rows, queries):
    """The sample's estimate of every row for every query, [query, row]."""
    products = (queries.codes.astype(np.int64) @ rows.codes.T.astype(np.int64)).astype(f32)
    if metric == COSINE:
        factor = np.where(rows.norms > 0, rows.scales / np.where(rows.norms > 0, rows.norms, f32(1)), f32(0))
    else:
        factor = rows.scales
    more = f32(-0.5) * rows.norms * rows.norms if metric == L2 else np.zeros_like(rows.norms)
    return fma(products * queries.scales[:, None], factor, more)


def sample_keys(metric, rows, queries, admitted, sampled):
    """What a sample must leave: the key of the best of each 32 rows, [query, bucket]. `sampled`: numbers of the words."""
    keys = make_keys(DOT, guesses(metric, rows, queries), np.arange(len(rows.norms))[None, :])
    keys[:, ~admitted] = KEY_WORST
    whole = np.full((len(keys), -(-keys.shape[1] // 64) * 64), KEY_WORST)
    whole[:, :keys.shape[1]] = keys
    return whole.reshape(len(keys), -1, BUCKET_ROWS).min(axis=2).reshape(len(keys), -1, 2)[:, sampled].reshape(len(keys), -1)


def values(metric, dim, rows, queries, thresholds):
    """The bound's value less its limit h in double precision, and how far roundings may move it: [query, row] each. NaN where the
    limit keeps everything."""
    wide = np.float64
    s, norm, rest = wide(slack(dim)), queries.norms.astype(wide)[:, None], queries.residuals.astype(wide)[:, None]
    reach = norm * (1 + s) + wide(VANISHED) + rest
    tiny = reach * 2.0**-62 + wide(UNDERFLOW)
    t = thresholds.astype(wide)[:, None]
    a, b, g = reach * (1 + s), (rest + s * reach) * (1 + s), 0.0
    x_scale, x_rest, x_norm = (v.astype(wide)[None, :] for v in (rows.scales, rows.residuals, rows.norms))
    with np.errstate(all="ignore"):
        if metric == DOT:
            h = t - (tiny + s * np.abs(t))
        elif metric == COSINE:
            b, h = b - norm * (t - s * np.abs(t) - 2.0**-100), -tiny
        else:
            g = -0.5 * (1 - 2 * s)
            h = 0.5 * (1 - 2 * s) * norm * norm - (0.5 * (1 + 2 * s) * t * t + tiny)
        products = queries.codes.astype(np.int64) @ rows.codes.T.astype(np.int64)
        terms = [products * queries.scales.astype(wide)[:, None] * x_scale, a * x_rest, b * x_norm, g * x_norm * x_norm, -h]
        closed = ~((norm >= wide(NORM_LEAST)) & (norm < wide(NORM_MOST))) | ~np.isfinite(t)
        return np.where(closed, np.nan, sum(terms)), 2.0**-18 * sum(np.abs(term) for term in terms) + 2.0**-120
