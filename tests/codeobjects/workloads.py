"""The workloads that performance.py calculates times of. bench/gpu_workloads.c measures the same, by the same keys.

Searches are calculated for a slice of the card: some of its units, with their share of the rows, of the bandwidth and of the cache; the
work of a block is that of the whole card. Their data decides what kernels do, so what a launch leaves behind must be right: the emulated twins
see to that, after the blocks that are counted. What the others compute does not change what they execute."""
import ctypes
import dataclasses

import numpy as np

import quant_cases
import search_cases
from machine import api

ROWS = 1_000_000
ELEMENTS = (8192, 4096)
SORTED = (4096, 4096)
SHORT = (262_144, 128)  # rows
WEIGHTS = (4096, 14336)
SIDE = 4096
CONV = {"images": 16, "channels": 64, "side": 56, "outs": 64, "taps": 3}
BLOCK_BYTES = {"Q4_0": (32, 18), "Q8_0": (32, 34), "Q4_K": (256, 144), "Q6_K": (256, 210)}


@dataclasses.dataclass
class Workload:
    key: str
    title: str
    group: str            # which of the wanted ratios it falls under: "bandwidth", "bytes", "matrix" or ""
    floor: object         # card -> (seconds, what they are for)
    prepare: object       # (device, rows) -> what `run` takes
    run: object
    release: object = None
    sliced: int = 0       # slices: about so many rows; 0: the whole card
    twins: bool = False   # whether later launches need what earlier ones leave
    whole: tuple = ()     # kernels whose work is of the queries, not of the rows: the whole card does it
    kernel: object = ""   # the kernel, or one of several, whose own time the wanted ratio is of, "" for all of the workload


def bytes_floor(count):
    return lambda card: (count / card.memory_bytes, "bytes")


def larger(*floors):
    return lambda card: max((floor(card) for floor in floors), key=lambda f: f[0])


def fma_floor(count):
    return lambda card: (count / (card.fma_a_clock * card.units * card.clock_hz), "f32 operations")


def matrix_floor(count, type_, beside=0.0):
    """beside: vector operations per multiply-add that a kernel must do next to it, at the card's peak of f32: packed or paired instructions do two."""
    def floor(card):
        clocks = count / (card.matrix[type_] * card.simds * card.units)
        return (max(clocks, count * beside / (card.fma_a_clock * card.units)) / card.clock_hz, f"{type_} products")
    return floor


# ---- search ---------------------------------------------------------------------------------------------------------------------

OF_QUERIES = ("search_prepare", "search_merge", "screen_prepare", "screen_pick", "screen_score")


def steps_to_the_whole(dim, share):
    """The k-th best of a slice is far worse than that of a million rows, and the screen would keep many times its share of them. So thresholds are made
    better by as many steps of a float as lie between what a slice's sample gives, the tenth of twelve buckets' best of 32 (gpu/search/screen_plan.c; k is
    10 here), and the best `share` of random rows."""
    rng = np.random.default_rng(8)
    rows, asked = rng.standard_normal((19_200, dim), dtype=np.float32), rng.standard_normal((50, dim), dtype=np.float32)
    distances = np.sqrt((asked * asked).sum(1)[:, None] + (rows * rows).sum(1) - 2 * asked @ rows.T)
    sampled = np.sort(distances.reshape(50, -1, 12, 32).min(3), axis=2)[:, :, 9].mean()
    found = np.array([sampled, np.quantile(distances, share)], np.float32).view(np.int32)
    return int(found[0] - found[1])


def collection_of(dim, queries, screen):
    def prepare(on, rows):
        on.c.codeobjects_screen(on.handle, screen, 0)
        if screen:  # a 32nd part of the rows gives the threshold; of many queries better ones follow, on average as of a sixth of all
            on.c.codeobjects_lower(on.handle, steps_to_the_whole(dim, 10 / (ROWS / 32) if queries == 1 else 10 / (ROWS / 6)))
        data = np.random.default_rng(1).standard_normal((rows, dim), dtype=np.float32)
        return search_cases.Collection(on, "l2", data, screen), data
    return prepare


def search(dim, queries, screen):
    row_bytes = dim if screen else 4 * dim
    floor = bytes_floor(ROWS * row_bytes)
    if queries > 1:
        # a screened pair of rows costs its byte products, and three operations: convert, scale, compare with the bound
        floor = larger(floor, matrix_floor(ROWS * queries * dim, "i8", 3 / dim) if screen else fma_floor(2 * ROWS * queries * dim))

    def run(on, made):
        asked = np.random.default_rng(2).standard_normal((queries, dim), dtype=np.float32)
        made[0].search(asked, 10)
    name = f"{queries} {'query' if queries == 1 else 'queries'}"
    return Workload(f"search-{queries}-{dim}{'-screened' if screen else ''}", f"{name}, 1M x {dim}{', screened' if screen else ''}",
                    "bandwidth" if queries == 1 else "bytes" if screen else "", floor, collection_of(dim, queries, screen), run,
                    lambda on, made: made[0].__exit__(), sliced=(50_000 if dim == 128 else 12_000) if queries == 1 else 3328 if screen else 2048, twins=True, whole=OF_QUERIES if queries > 1 else (),
                    kernel=("screen_batch_keep", "screen_mfma_keep") if screen and queries > 1 else "")


# ---- quantized products -----------------------------------------------------------------------------------------------------------

def quant(type_, columns, math=""):
    """math: "" canonical, "fast" as the library chooses, "bf16" decoded to that and multiplied, whichever is quicker."""
    rows, cols = WEIGHTS
    elements, size = BLOCK_BYTES[type_]
    weight_bytes, macs = rows * cols // elements * size, rows * cols * columns
    # for each result and 32 codes three operations: convert, scale, add; the K formats take two byte products
    products = 2 if elements == 256 else 1
    floor = larger(bytes_floor(weight_bytes), matrix_floor(products * macs, "i8", 3 / 32 / products)) if columns > 8 else bytes_floor(weight_bytes)

    def prepare(on, _):
        blocks = np.resize(np.random.default_rng(3).integers(0, 100, 1 << 20, np.uint8), weight_bytes)
        matrix = quant_cases.Matrix(on, type_, np.broadcast_to(np.float32(0), (rows, cols)), blocks)
        return matrix, on.tensor(np.random.default_rng(4).standard_normal((columns, cols), dtype=np.float32), "f32")

    def run(on, made):
        if not math:
            return on.call("ww_quant_matmul", made[0].handle, made[1])
        on.c.codeobjects_quant_bf16(on.handle, math == "bf16")
        return on.call("ww_quant_multiply", made[0].handle, made[1], api.ww_quant_product(struct_size=ctypes.sizeof(api.ww_quant_product), math=api.WW_MATH_FAST))
    if math:  # codes or bf16, whichever the peak has sooner done
        return Workload(f"quant-{math}-{type_.lower()}-{columns}", f"{type_.lower()}, {math}, {columns} columns, 4096 x 14336", "",
                        lambda card: min(floor(card), matrix_floor(macs, "bf16")(card)), prepare, run, lambda on, made: made[0].__exit__())
    kernel = ("quant_tile_block32" if elements == 32 else "quant_tile_kblock") if columns > 8 else ""
    return Workload(f"quant-{type_.lower()}-{columns}", f"{type_.lower()}, {columns} column{'s' if columns > 1 else ''}, 4096 x 14336",
                    "bytes" if columns > 8 else "bandwidth", floor, prepare, run, lambda on, made: made[0].__exit__(), kernel=kernel)


# ---- tensors ------------------------------------------------------------------------------------------------------------------------

def tensor(key, title, shape, moved, call, others=(), type_="f32"):
    """moved: how often the bytes of the tensor cross the memory. call(on, made)."""
    def prepare(on, _):
        values = np.random.default_rng(5).standard_normal(1 << 20, dtype=np.float32)
        if type_ == "bf16":
            values = (values.view(np.uint32) >> 16).astype(np.uint16)
        return [on.tensor(np.resize(values.astype(np.float16) if type_ == "f16" else values, s), type_) for s in (shape, *others)]
    return Workload(key, f"{title.format(type_)}, {shape[0]} x {shape[1]}", "bandwidth", bytes_floor((4 if type_ == "f32" else 2) * shape[0] * shape[1] * moved),
                    prepare, call)


def unary(name):
    return lambda on, made: on.call("ww_tensor_unary", getattr(api, f"WW_{name}"), made[0])


def binary(name):
    return lambda on, made: on.call("ww_tensor_binary", getattr(api, f"WW_{name}"), made[0], made[1])


def softmax(on, made):
    return on.call("ww_tensor_softmax", made[0], 1)


def layer_norm(on, made):
    return on.call("ww_tensor_layer_norm", *made, ctypes.c_double(1e-5))


def rms_norm(on, made):
    return on.call("ww_tensor_rms_norm", *made, ctypes.c_double(1e-5))


def sort(on, made):
    return on.call("ww_tensor_sort", made[0], ctypes.c_bool(False), outs=2)


def reduced(name):
    return lambda on, made: on.call("ww_tensor_reduce", getattr(api, f"WW_REDUCE_{name}"), made[0], np.array([1], np.int32), 1)


def product(type_, math="fast"):
    def prepare(on, _):
        values = np.resize(np.random.default_rng(6).standard_normal(1 << 18, dtype=np.float32).astype(np.float16), (SIDE, SIDE))
        if type_ == "bf16":
            values = (values.astype(np.float32).view(np.uint32) >> 16).astype(np.uint16)
        return [on.tensor(values, type_), on.tensor(values, type_)]
    key, floor = (f"matmul-{type_}", matrix_floor(SIDE**3, type_)) if math == "fast" else (f"matmul-{type_}-{math}", fma_floor(SIDE**3))
    return Workload(key, f"{math} {type_} product, {SIDE}^3", "matrix", floor, prepare,
                    lambda on, made: on.call("ww_tensor_matmul", *made, getattr(api, f"WW_MATH_{math.upper()}")))


def conv(math):
    c = CONV
    macs = c["images"] * c["outs"] * c["side"] ** 2 * c["channels"] * c["taps"] ** 2

    def prepare(on, _):
        rng, type_ = np.random.default_rng(7), "f32" if math == "canonical" else "f16"
        x = rng.standard_normal((c["images"], c["channels"], c["side"], c["side"]), dtype=np.float32)
        w = rng.standard_normal((c["outs"], c["channels"], c["taps"], c["taps"]), dtype=np.float32)
        how = api.ww_conv(struct_size=ctypes.sizeof(api.ww_conv), groups=1, math=getattr(api, f"WW_MATH_{math.upper()}"))
        for d in range(2):
            how.padding[d], how.stride[d], how.dilation[d] = 1, 1, 1
        return [on.tensor(x, type_), on.tensor(w, type_), how]
    floor = fma_floor(macs) if math == "canonical" else matrix_floor(macs, "f16")
    return Workload(f"conv2d-{math}", f"conv2d {'f32' if math == 'canonical' else 'f16'}, {math}, 16 x 64 x 56 x 56, 3 x 3", "", floor, prepare,
                    lambda on, made: on.call("ww_tensor_conv2d", *made))


WORKLOADS = [search(dim, queries, screen) for queries in (1, 1000) for dim in (128, 768) for screen in (False, True)]
WORKLOADS += [quant(type_, columns) for columns in (1, 8, 512) for type_ in BLOCK_BYTES]
WORKLOADS += [quant(type_, 512, "fast") for type_ in BLOCK_BYTES]
WORKLOADS += [
    tensor("add", "add {}", ELEMENTS, 3, binary("ADD"), (ELEMENTS,)),
    tensor("exp", "exp {}", ELEMENTS, 2, unary("EXP")),
    *(tensor(f"{name}-{type_}", f"{name} {{}}", ELEMENTS, 2, unary(name.upper()), type_=type_) for name in ("exp", "gelu", "log") for type_ in ("f16", "bf16")),
    *(tensor(f"{name}-{type_}", f"{name} {{}}", ELEMENTS, 3, binary(name.upper()), (ELEMENTS,), type_) for name in ("pow", "atan2") for type_ in ("f16", "bf16")),
    tensor("softmax", "softmax {}", ELEMENTS, 2, softmax),
    tensor("softmax-f16", "softmax {}", ELEMENTS, 2, softmax, type_="f16"),
    tensor("softmax-64", "softmax {}", (ROWS, 64), 2, softmax),
    tensor("softmax-f16-128", "softmax {}", SHORT, 2, softmax, type_="f16"),
    tensor("layer_norm", "layer_norm {}", ELEMENTS, 2, layer_norm, 2 * ((ELEMENTS[1],),)),
    tensor("layer_norm-f16", "layer_norm {}", ELEMENTS, 2, layer_norm, 2 * ((ELEMENTS[1],),), "f16"),
    tensor("layer_norm-128", "layer_norm {}", SHORT, 2, layer_norm, 2 * ((SHORT[1],),)),
    tensor("rms_norm-bf16", "rms_norm {}", ELEMENTS, 2, rms_norm, ((ELEMENTS[1],),), "bf16"),
    tensor("sum", "sum of rows {}", ELEMENTS, 1, reduced("SUM")),
    tensor("argmax", "argmax of rows {}", ELEMENTS, 1, reduced("ARGMAX")),
    tensor("sort", "sort of rows {}", SORTED, 3, sort),
    tensor("sort-128", "sort of rows {}", SHORT, 3, sort),
]
for workload in WORKLOADS[-2:]:
    workload.group = ""
WORKLOADS += [product("f16"), product("bf16"), conv("canonical"), conv("fast")]

# Those of the page: what a user waits for. The others are counted by `make check-amd-performance AMD_PERFORMANCE=all`.
PAGE = ["search-1-128", "search-1-128-screened", "search-1-768-screened", "search-1000-128-screened", "search-1000-768-screened",
        "quant-q4_0-1", "quant-q8_0-1", "quant-q4_k-1", "quant-q6_k-1", "quant-q4_0-512", "quant-q4_k-512", "matmul-f16", "conv2d-canonical", "conv2d-fast",
        "add", "softmax-f16", "layer_norm-f16"]

# Counted when they are asked for by name, not for the page: what the choices of src/gpu/quant/quant_plan.c were made by.
ROUTES = [quant(type_, columns, math) for columns in (64, 128, 512, 1024, 2048) for math in ("", "bf16") for type_ in BLOCK_BYTES if math or columns != 512]
ROUTES += [product("f16", "canonical")]  # beside "matmul-f16" with --dot2: what chips without matrix units gain by that (docs/design/kernels.md)
