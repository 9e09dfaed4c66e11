"""Why no test reaches some instructions of AMD's code objects. report.py counts by these what is left of kernels that are reached by less than four fifths;
a reason that explains nothing any more is named there, and one with a function that is gone is found by check-names."""
import fnmatch
import pathlib
import re
import sys

# What tells the long form of a division in 64 bits, which the compiler puts beside the short one: 2^64 and 2^-32 as floats, nearly.
LONG_DIVISION = re.compile(r"0x5f7ffffc|0x2f800000")

# Where a way begins or ends: branches, and comparisons, constants and masks for them.
BRANCHES = re.compile(r"s_(branch|cbranch_\w+|cmpk?_\w+|cselect_b\d+|bitcmp\d_b\d+|(and|or|xor|andn2|orn2|and_not1|or_not1|not)_b(32|64)|"
                      r"mov_b(32|64) \S+, (-?\d+|0x[0-9a-f]+)$|nop|waitcnt|wait_\w+|delay_alu|clause)\b")

DIVISION = "a division in 64 bits, of which the short form for operands below 2^32 is executed, and the long one needs tensors of more elements than that"
WAYS = ("branches between ways, with comparisons and masks for them and nothing that is computed, in the form that the compiler gives to nested conditions: of types, "
        "operations or sizes that do not come there")
GENERAL = {"division": DIVISION, "branches": WAYS}

# Kernels; where the instruction comes from, one of these; and why no test gets there. `f` is a function that was inlined somewhere on the way, `^f` the innermost one,
# `f<g` f in g without others between, and `f@file` as far as its code is that file's.
REASONS = [
    ("conv_shared_*", "conv_put", "results of other types than the kernel's: the switch over types is compiled whole"),
    ("tensor_*_f64", "^bits_at ^bits_put ^element_bits ^element_put", "elements of other types than f64: the switch over types is compiled whole"),
    ("tensor_binary_f32 tensor_cast_f32 tensor_reduce_arg_f32", "^bits_at ^bits_put", "elements of 64 bits, which the kinds of 32 have not: the switch over sizes is compiled whole"),
    ("tensor_*_i64 tensor_sort_row*", "^bits_to_i64", "elements of i8, which these operations refuse: the switch over types is compiled whole"),
    ("tensor_index_check tensor_gather tensor_scatter", "^bits_to_i64 ^gather_id bits_at<element_bits bits_at<tensor_scatter",
     "ids of other types than u8, u32 and i64, which are refused: the switch over types is compiled whole"),
    ("tensor_random", "f32_to_bits<random_floats bits_put<random_floats ^random_floats@tensor_random.c ^random_floats@elements.h",
     "the fourth of the last numbers, which are written one by one where there are three or fewer, and branches around it: the loop over four is compiled whole"),
    ("tensor_gather", "place_of<element_put", "results that do not lie side by side: those of gather and index_select do, and are copied where a caller wants them otherwise"),
    ("tensor_reduce_rows_half", "join_unit<join_row ^join_row", "sums and maxima in the loop that is for other operations: it is compiled with all of them, and these have loops of their own"),
    ("tensor_reduce_rows_half", "put_f32", "results of other types than halves and what is between two rounds: the switch over types is compiled whole"),
    ("tensor_reduce_arg_*", "^reduce_place", "rows of several dimensions: argmin and argmax take one, and the code is that of other reductions"),
    ("tensor_sort_row*", "sort_key_16<sort_key_of<sort_word<sort_rows ^bits_at<sort_bring ^bits_put<sort_write ^sort_key_of",
     "upper halves of keys of 16 bits, which have none, and elements of 64 bits, which another kernel sorts: the switches over types are compiled whole"),
    ("matmul_f64_64 matmul_i8_64 conv_f64_64", "side_bring_of side_bring window_bring_of window_bring",
     "elements of other types than the kernel's one: kernels of f32 have two ways, for f32 and for halves, and their code is that of these"),
    ("matmul_f64_64 matmul_i8_64", "chunk_end", "the last of four results that are not all there: as many are written one by one as in kernels whose results cannot be written by fours"),
    ("screen_pick screen_small_batch_1_sample", "exact_pick",
     "samples of more than 256 keys for a k up to 32, which collections of more than 130,000 rows have, and of thousands for a larger k"),
]


def is_from(pattern, frames):
    """Whether a pattern matches the functions that an instruction comes from, innermost first."""
    wanted = [part.partition("@")[::2] for part in pattern.lstrip("^").split("<")]
    places = range(1 if pattern.startswith("^") else len(frames))
    return any(len(frames) >= at + len(wanted) and all(function == name and file in ("", where) for (name, file), (where, _, function) in zip(wanted, frames[at:]))
               for at in places)


def why(kernel, frames, kind):
    """The number of the reason why one instruction is not reached; None if there is none. kind: one of GENERAL, or None."""
    if kind == "division":
        return 0
    for number, (kernels, patterns, _) in enumerate(REASONS, len(GENERAL)):
        if any(fnmatch.fnmatch(kernel, pattern) for pattern in kernels.split()) and any(is_from(pattern, frames) for pattern in patterns.split()):
            return number
    return 1 if kind == "branches" else None


TEXTS = [*GENERAL.values(), *(text for _, _, text in REASONS)]
NUMBERS = range(len(TEXTS))


def text(number):
    return TEXTS[number]


def check(root):
    """The functions that reasons name and the kernels' sources do not have."""
    sources = "\n".join(path.read_text(encoding="utf-8") for room in ("src/kernels", "src/arithmetic") for path in sorted((root / room).rglob("*.[ch]")))
    words = set(re.findall(r"\w+", sources))
    return [name for _, patterns, _ in REASONS for pattern in patterns.split() for name in re.findall(r"(?:^|[\^<])(\w+)", pattern) if name not in words]


if __name__ == "__main__":
    gone = check(pathlib.Path(__file__).resolve().parents[2])
    if gone:
        sys.exit(f"tests/codeobjects/reasons.py names functions that no kernel has: {', '.join(gone)}")
    print("\n".join(pattern for kernels, _, _ in REASONS for pattern in kernels.split()))  # check-names looks whether there are such kernels
