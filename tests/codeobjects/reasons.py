"""Why no test reaches some instructions of AMD's code objects. report.py counts by these what is left of kernels that are reached by less than four fifths;
a reason that explains nothing any more is named there, and one with a function that is gone is found by check-names."""
import fnmatch
import pathlib
import re
import sys

# What tells the long form of a division in 64 bits, which the compiler puts beside the short one: 2^64 and 2^-32 as floats, nearly.
LONG_DIVISION = re.compile(r"0x5f7ffffc|0x2f800000")

DIVISION = "a division in 64 bits, of which the short form for operands below 2^32 is executed, and the long one needs tensors of more elements than that"

# kernels, functions one of which the instruction comes from, and why
REASONS = [
    ("matmul_fast_f16_* matmul_fast_bf16_nn matmul_fast_bf16_tn matmul_fast_bf16_tt", "fast_put",
     "results in f32 of products of halves: fast products of quantized matrices alone ask for them, and of `matmul_fast_bf16_nt`, whose test they are part of"),
    ("matmul_fast_f32_*", "fast_put", "results of another type than f32, which a product of f32 has not: both are compiled"),
    ("conv_shared_*", "conv_put", "results of other types than the kernel's: the switch over types is compiled whole"),
    ("tensor_*_f64", "bits_at bits_put element_bits", "elements of other types than f64: the switch over types is compiled whole"),
    ("tensor_reduce_rows_half", "canon_max_f32", "maxima in the loop that is for other operations: it is compiled with all of them, and sums and maxima have loops of their own"),
    ("attention_*", "attention_roped put_token",
     "a token's own key and value, and rotation: they come with sessions of a model alone, whose tests run on the emulated devices of `make test`"),
    ("screen_pick* screen_small_batch_1_sample", "exact_pick",
     "samples of more than 256 keys for a k up to 32, which collections of more than 130,000 rows have, and of thousands for a larger k"),
]


def why(kernel, frames, long_division):
    """The reason for one instruction that is not reached: its number, 0 for divisions; None: there is none."""
    if long_division:
        return 0
    functions = {function for _, _, function in frames}
    for number, (kernels, names, _) in enumerate(REASONS, 1):
        if any(fnmatch.fnmatch(kernel, pattern) for pattern in kernels.split()) and not functions.isdisjoint(names.split()):
            return number
    return None


def text(number):
    return DIVISION if number == 0 else REASONS[number - 1][2]


def check(root):
    """Functions that reasons name and the kernels' sources do not have."""
    sources = "\n".join(path.read_text(encoding="utf-8") for room in ("src/kernels", "src/arithmetic") for path in sorted((root / room).rglob("*.[ch]")))
    words = set(re.findall(r"\w+", sources))
    return [name for _, names, _ in REASONS for name in names.split() if name not in words]


if __name__ == "__main__":
    gone = check(pathlib.Path(__file__).resolve().parents[2])
    if gone:
        sys.exit(f"tests/codeobjects/reasons.py names functions that no kernel has: {', '.join(gone)}")
