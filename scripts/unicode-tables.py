#!/usr/bin/env python3
"""Writes src/model/tokenizer/unicode_tables.h: which characters are punctuation, controls and marks in the version of Unicode that the published
tokenizers were made with (8.0). It asks the Python package `tokenizers`, whose tables those are, about every character.

    scripts/unicode-tables.py > src/model/tokenizer/unicode_tables.h
"""
from tokenizers import normalizers, pre_tokenizers

PER_LINE = 7
IOTA = "\u0345"  # the mark that normal form D puts behind all others


def ranges(holds):
    """The characters outside ASCII that the function is true for, as pairs of the first and the last."""
    found = []
    for c in range(0x80, 0x110000):
        if not 0xD800 <= c < 0xE000 and holds(chr(c)):
            if found and found[-1][1] == c - 1:
                found[-1][1] = c
            else:
                found.append([c, c])
    return found


def table(name, found):
    listed = [f"{{0x{first:X}, 0x{last:X}}}" for first, last in found]
    lines = [", ".join(listed[i:i + PER_LINE]) for i in range(0, len(listed), PER_LINE)]
    return f"static const character_range {name}[] = {{\n    " + ",\n    ".join(lines) + "};\n"


def main():
    split, form_d = pre_tokenizers.BertPreTokenizer(), normalizers.NFD()

    def bert(**options):
        return normalizers.BertNormalizer(**{"clean_text": False, "handle_chinese_chars": False, "strip_accents": False, "lowercase": False, **options})

    clean, strip = bert(clean_text=True), bert(strip_accents=True)
    print("/* Characters of Unicode 8.0, which the tokenizers of published models know; made by scripts/unicode-tables.py. */\n"
          "#ifndef WW_MODEL_TOKENIZER_UNICODE_TABLES_H\n#define WW_MODEL_TOKENIZER_UNICODE_TABLES_H\n\n#include <stdint.h>\n\n"
          "typedef struct character_range {\n    uint32_t first, last;\n} character_range;\n\n/* clang-format off */")
    print("/* Categories P*, outside ASCII. */")
    print(table("PUNCTUATION", ranges(lambda c: [piece for piece, _ in split.pre_tokenize_str(f"a{c}b")] == ["a", c, "b"])))
    print("/* Categories Cc, Cf and Co, outside ASCII. */")
    print(table("CONTROLS", ranges(lambda c: clean.normalize_str(f"a{c}b") == "ab")))
    print("/* Category Mn. */")
    print(table("MARKS", ranges(lambda c: strip.normalize_str("a" + c) == "a")))
    print("/* Characters with a combining class, but U+0345. */")
    print(table("COMBINING", ranges(lambda c: form_d.normalize_str("a" + IOTA + c) == form_d.normalize_str("a" + c) + IOTA and c != IOTA)))
    print("/* clang-format on */\n#endif")


main()
