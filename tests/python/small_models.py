"""Small models with random weights, written as GGUF files byte by byte."""
from __future__ import annotations

import pathlib
import struct
from typing import Any

import numpy as np

WIDTH, HIDDEN = 64, 96


def _text(value: str) -> bytes:
    data = value.encode()
    return struct.pack("<Q", len(data)) + data


def _value(value: Any) -> bytes:
    if isinstance(value, str):
        return struct.pack("<I", 8) + _text(value)
    if isinstance(value, float):
        return struct.pack("<If", 6, value)
    if isinstance(value, list) and value and isinstance(value[0], int):
        return struct.pack("<IIQ", 9, 5, len(value)) + struct.pack(f"<{len(value)}i", *value)
    if isinstance(value, list):
        return struct.pack("<IIQ", 9, 8, len(value)) + b"".join(_text(item) for item in value)
    return struct.pack("<II", 4, value)


def write_gguf(path: pathlib.Path, keys: dict[str, Any], tensors: dict[str, np.ndarray]) -> None:
    head = struct.pack("<4sIQQ", b"GGUF", 3, len(tensors), len(keys))
    head += b"".join(_text(key) + _value(value) for key, value in keys.items())
    offset = 0
    for name, array in tensors.items():
        head += _text(name) + struct.pack("<I", array.ndim) + b"".join(struct.pack("<Q", size) for size in reversed(array.shape)) + struct.pack("<IQ", 0, offset)
        offset += -(-array.nbytes // 32) * 32
    with open(path, "wb") as file:
        file.write(head + b"\0" * (-len(head) % 32))
        for array in tensors.values():
            file.write(array.astype("<f4").tobytes() + b"\0" * (-array.nbytes % 32))


def _alphabet() -> list[str]:
    """How byte-level vocabularies write the 256 bytes."""
    shown = [*range(33, 127), *range(161, 173), *range(174, 256)]
    other = iter(range(256, 512))
    return [chr(byte) if byte in shown else chr(next(other)) for byte in range(256)]


CHATML = "{% for message in messages %}<|im_start|>{{ message['role'] }}\n{{ message['content'] }}<|im_end|>\n{% endfor %}<|im_start|>assistant\n"


def write_decoder(path: pathlib.Path, context: int = 64, template: str = "") -> None:
    """A decoder of one layer over bytes, one merge and an end."""
    rng = np.random.default_rng(3)
    matrix = lambda rows, cols: (rng.standard_normal((rows, cols)) / np.sqrt(cols)).astype(np.float32)
    keys = {"general.architecture": "llama", "general.license": "mit", "llama.block_count": 1, "llama.context_length": context, "llama.embedding_length": WIDTH,
            "llama.feed_forward_length": HIDDEN, "llama.attention.head_count": 2, "llama.attention.layer_norm_rms_epsilon": 1e-5,
            "tokenizer.ggml.model": "gpt2", "tokenizer.ggml.pre": "gpt-2", "tokenizer.ggml.tokens": [*_alphabet(), "<end>"],
            "tokenizer.ggml.token_type": [1] * 256 + [3], "tokenizer.ggml.merges": ["a b"], "tokenizer.ggml.eos_token_id": 256}
    if template:
        keys["tokenizer.chat_template"] = template
    keys["tokenizer.ggml.tokens"].append("ab")
    keys["tokenizer.ggml.token_type"].append(1)
    tensors = {"token_embd.weight": matrix(258, WIDTH), "output_norm.weight": np.ones(WIDTH, np.float32)}
    for name, rows, cols in (("attn_q", WIDTH, WIDTH), ("attn_k", WIDTH, WIDTH), ("attn_v", WIDTH, WIDTH), ("attn_output", WIDTH, WIDTH), ("ffn_gate", HIDDEN, WIDTH),
                             ("ffn_up", HIDDEN, WIDTH), ("ffn_down", WIDTH, HIDDEN)):
        tensors[f"blk.0.{name}.weight"] = matrix(rows, cols)
    for name in ("attn_norm", "ffn_norm"):
        tensors[f"blk.0.{name}.weight"] = np.ones(WIDTH, np.float32)
    write_gguf(path, keys, tensors)


def write_encoder(path: pathlib.Path, seed: int = 4, context: int = 16, ranks: bool = False, prompts: dict[str, str] | None = None) -> None:
    """An encoder of one layer that knows the words a, fox, dog and an s behind a word; one that embeds, or one that reranks."""
    rng = np.random.default_rng(seed)
    matrix = lambda rows, cols: (rng.standard_normal((rows, cols)) / np.sqrt(cols)).astype(np.float32)
    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "\u2581a", "\u2581fox", "\u2581dog", "s"]
    keys = {"general.architecture": "bert", "bert.block_count": 1, "bert.context_length": context, "bert.embedding_length": WIDTH, "bert.feed_forward_length": HIDDEN,
            "bert.attention.head_count": 2, "bert.attention.layer_norm_epsilon": 1e-12, "bert.pooling_type": 4 if ranks else 1, "tokenizer.ggml.model": "bert",
            "tokenizer.ggml.tokens": words, "tokenizer.ggml.token_type": [3] * 5 + [1] * 4, "tokenizer.ggml.unknown_token_id": 1, "tokenizer.ggml.padding_token_id": 0,
            "tokenizer.ggml.cls_token_id": 2, "tokenizer.ggml.seperator_token_id": 3, "tokenizer.ggml.bos_token_id": 2, "tokenizer.ggml.eos_token_id": 3}
    keys |= {f"warpwave.prompt.{name}": text for name, text in (prompts or {}).items()}
    vector = lambda size: (0.1 * rng.standard_normal(size)).astype(np.float32)
    tensors = {"token_embd.weight": matrix(len(words), WIDTH), "position_embd.weight": matrix(context, WIDTH), "token_types.weight": matrix(2, WIDTH)}
    for name in ("token_embd_norm", "blk.0.attn_output_norm", "blk.0.layer_output_norm"):
        tensors |= {f"{name}.weight": np.ones(WIDTH, np.float32), f"{name}.bias": vector(WIDTH)}
    for name, rows, cols in (("attn_q", WIDTH, WIDTH), ("attn_k", WIDTH, WIDTH), ("attn_v", WIDTH, WIDTH), ("attn_output", WIDTH, WIDTH), ("ffn_up", HIDDEN, WIDTH),
                             ("ffn_down", WIDTH, HIDDEN)):
        tensors |= {f"blk.0.{name}.weight": matrix(rows, cols), f"blk.0.{name}.bias": vector(rows)}
    if ranks:
        tensors |= {"cls.weight": matrix(WIDTH, WIDTH), "cls.bias": vector(WIDTH), "cls.output.weight": matrix(1, WIDTH), "cls.output.bias": vector(1)}
    write_gguf(path, keys, tensors)
