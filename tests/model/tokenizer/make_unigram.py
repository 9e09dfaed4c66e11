#!/usr/bin/env python3
"""Trains a unigram vocabulary with sentencepiece on WordNet's glosses and on names in the languages of Unicode's CLDR, of more than twenty
scripts, and writes it as the keys of a GGUF file, in the order that XLM-RoBERTa has: make_unigram.py OUT.gguf [VOCABULARY]. Needs sentencepiece and
babel; check-tokenizers then compares the file with sentencepiece. With OUT.json it writes tests/data/model/unigram.json.
"""
import pathlib
import struct
import sys
import tempfile

# A language for each script, besides English.
LANGUAGES = ("ru el ar he hi bn ta te ml kn gu pa th lo my km ka hy am zh ja ko si bo or chr vi tr de fr pl fa ur mr ne".split())


def glosses(folder="/usr/share/wordnet"):
    for name in ("data.noun", "data.verb", "data.adj", "data.adv"):
        with open(pathlib.Path(folder) / name, encoding="latin-1") as file:
            yield from (line.split("|", 1)[1].strip() for line in file if not line.startswith("  ") and "|" in line)


def names():
    """Names of languages, countries, days and currencies, and sentences that are made of them."""
    from babel import Locale
    for language in LANGUAGES:
        locale = Locale.parse(language)
        words = [*locale.territories.values(), *locale.languages.values(), *locale.currencies.values(), *locale.days["format"]["wide"].values()]
        yield from words
        yield from (" ".join(words[i:i + 7]) for i in range(0, len(words), 7))


def text(value):
    data = value.encode()
    return struct.pack("<Q", len(data)) + data


def value_of(value):
    if isinstance(value, bool):
        return struct.pack("<I?", 7, value)
    if isinstance(value, int):
        return struct.pack("<II", 4, value)
    if isinstance(value, str):
        return struct.pack("<I", 8) + text(value)
    if isinstance(value, bytes):
        return struct.pack("<IIQ", 9, 0, len(value)) + value
    if isinstance(value[0], str):
        return struct.pack("<IIQ", 9, 8, len(value)) + b"".join(map(text, value))
    code, kind = ("f", 6) if isinstance(value[0], float) else ("i", 5)
    return struct.pack("<IIQ", 9, kind, len(value)) + struct.pack(f"<{len(value)}{code}", *value)


def keys_of(proto):
    """The pieces behind <s>, <pad>, </s>, <unk>, as XLM-RoBERTa numbers them."""
    pieces = [p for p in proto.pieces if p.type not in (2, 3)]
    special = [("<s>", 3), ("<pad>", 3), ("</s>", 3), ("<unk>", 2)]
    return {"general.architecture": "bert", "tokenizer.ggml.model": "t5", "tokenizer.ggml.pre": "default",
            "tokenizer.ggml.tokens": [name for name, _ in special] + [p.piece for p in pieces],
            "tokenizer.ggml.scores": [0.0] * 4 + [p.score for p in pieces],
            "tokenizer.ggml.token_type": [kind for _, kind in special] + [p.type for p in pieces],
            "tokenizer.ggml.bos_token_id": 0, "tokenizer.ggml.padding_token_id": 1, "tokenizer.ggml.eos_token_id": 2, "tokenizer.ggml.unknown_token_id": 3,
            "tokenizer.ggml.add_bos_token": True, "tokenizer.ggml.add_eos_token": True,
            "tokenizer.ggml.add_space_prefix": proto.normalizer_spec.add_dummy_prefix,
            "tokenizer.ggml.remove_extra_whitespaces": proto.normalizer_spec.remove_extra_whitespaces,
            "tokenizer.ggml.precompiled_charsmap": proto.normalizer_spec.precompiled_charsmap}


def train(lines, vocabulary, **options):
    import sentencepiece
    from sentencepiece import sentencepiece_model_pb2 as protocol
    with tempfile.TemporaryDirectory() as folder:
        corpus = pathlib.Path(folder, "corpus.txt")
        corpus.write_text("\n".join(lines), encoding="utf-8")
        sentencepiece.SentencePieceTrainer.train(input=str(corpus), model_prefix=f"{folder}/m", model_type="unigram", vocab_size=vocabulary,
                                                 num_threads=2, minloglevel=2, **options)
        proto = protocol.ModelProto()
        proto.ParseFromString(pathlib.Path(folder, "m.model").read_bytes())
    return proto


def write_gguf(path, keys):
    head = struct.pack("<4sIQQ", b"GGUF", 3, 0, len(keys)) + b"".join(text(key) + value_of(value) for key, value in keys.items())
    pathlib.Path(path).write_bytes(head + b"\0" * (-len(head) % 32))


# A small map: what it changes is in the cases.
RULES = {"\uff21": "A", "\uff42": "b", "\u00a0": " ", "\t": " ", "\u3000": " ", "\u2026": "...", "\ufb01": "fi", "e\u0301": "\u00e9", "\x01": "", "\u00bd": "1 2"}


def write_cases(path):
    """A small vocabulary, and what sentencepiece makes of texts with it, for the quick test of tokenizers."""
    import json
    import sentencepiece
    lines = [*list(glosses())[::40], *list(names())[::9]]
    with tempfile.TemporaryDirectory() as folder:
        rules = pathlib.Path(folder, "rules.tsv")
        codes = lambda some: " ".join(f"{ord(c):04X}" for c in some)
        rules.write_text("".join(f"{codes(a)}\t{codes(b)}\n" for a, b in RULES.items()))
        proto = train(lines, 1200, normalization_rule_tsv=str(rules), character_coverage=0.98)
    keys = keys_of(proto)
    given = sentencepiece.SentencePieceProcessor(model_proto=proto.SerializeToString())
    number = {piece: i for i, piece in enumerate(keys["tokenizer.ggml.tokens"])}
    texts = ["", " ", "  a   dog ", "\u2026.", "1888806 5555", "\uff21\uff42\u00bd", "e\u0301\u00a0\u3000x\ty", "\ufb01n\x01 z", "\x01", "\u2581 a\u2581b", "\U0001f355\U0001f355 a",
             *list(glosses())[7::3500], *list(names())[5::400]]
    ids = lambda text: [0, *(number.get(piece, 3) for piece in given.encode(text, out_type=str)), 2]
    data = {"tokens": keys["tokenizer.ggml.tokens"], "scores": keys["tokenizer.ggml.scores"], "kinds": keys["tokenizer.ggml.token_type"],
            "charsmap": keys["tokenizer.ggml.precompiled_charsmap"].hex(), "cases": [[text, ids(text)] for text in texts]}
    pathlib.Path(path).write_text(json.dumps(data, ensure_ascii=False, separators=(",", ":")) + "\n", encoding="utf-8")


if __name__ == "__main__":
    if sys.argv[1].endswith(".json"):
        sys.exit(write_cases(sys.argv[1]))
    every = [line for i, line in enumerate(glosses()) if i % 4 == 0]  # training is slow; what is compared is all of them
    write_gguf(sys.argv[1], keys_of(train([*every, *names()], int((sys.argv[2:] or ["16000"])[0]), character_coverage=0.9995)))
