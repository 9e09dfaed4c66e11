#!/usr/bin/env python3
"""Saves small models with random weights by the transformers package, opens the folders, and compares embeddings, scores and tokens.

check_folders.py UNIGRAM.gguf, with torch, transformers, tokenizers and gguf installed, the warpwave package on the path, and a vocabulary that
tests/model/tokenizer/make_unigram.py has made. Run by `make check-tokenizers`.
"""
import base64
import json
import pathlib
import sys
import tempfile

import gguf
import numpy
import safetensors.torch
import torch
import transformers as hf

import warpwave

SIZES = {"hidden_size": 64, "intermediate_size": 96, "num_hidden_layers": 3, "num_attention_heads": 2, "attn_implementation": "eager", "num_labels": 1}
TEXTS = ["a small animal that stores nuts", "  Straße  und ﬁn…  ", "東京 Москва", "x" * 40]


def unigram(path):
    """tokenizer.json as XLM-RoBERTa has it, of the keys of a file."""
    keys = {key: field.contents() for key, field in gguf.GGUFReader(path).fields.items() if key.startswith("tokenizer.")}
    tokens, scores = keys["tokenizer.ggml.tokens"], keys["tokenizer.ggml.scores"]
    charsmap = base64.b64encode(bytes(keys["tokenizer.ggml.precompiled_charsmap"])).decode()
    added = [{"id": i, "content": tokens[i], "single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": True} for i in range(4)]
    special = {name: {"id": name, "ids": [tokens.index(name)], "tokens": [name]} for name in ("<s>", "</s>")}
    token, text = lambda name: {"SpecialToken": {"id": name, "type_id": 0}}, lambda name: {"Sequence": {"id": name, "type_id": 0}}
    return len(tokens), {
        "version": "1.0", "truncation": None, "padding": None, "added_tokens": added, "normalizer": {"type": "Precompiled", "precompiled_charsmap": charsmap},
        "pre_tokenizer": {"type": "Sequence", "pretokenizers": [{"type": "WhitespaceSplit"}, {"type": "Metaspace", "replacement": "\u2581", "prepend_scheme": "always", "split": True}]},
        "post_processor": {"type": "TemplateProcessing", "single": [token("<s>"), text("A"), token("</s>")],
                           "pair": [token("<s>"), text("A"), token("</s>"), token("</s>"), text("B"), token("</s>")], "special_tokens": special},
        "decoder": None, "model": {"type": "Unigram", "unk_id": 3, "vocab": [[piece, float(score)] for piece, score in zip(tokens, scores)], "byte_fallback": False}}


def save(folder, model, tokenizer, pooling):
    model.save_pretrained(folder)
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(config))
    (folder / "tokenizer.json").write_text(json.dumps(tokenizer))
    (folder / "special_tokens_map.json").write_text(json.dumps({"bos_token": "<s>", "eos_token": "</s>", "cls_token": "<s>", "sep_token": "</s>", "unk_token": "<unk>", "pad_token": "<pad>"}))
    if pooling:
        (folder / "1_Pooling").mkdir()
        (folder / "1_Pooling/config.json").write_text(json.dumps({f"pooling_mode_{pooling}": True}))


def near(what, mine, theirs):
    off = float(numpy.abs(numpy.asarray(mine, numpy.float64) - numpy.asarray(theirs, numpy.float64)).max())
    print(f"{what}: largest difference {off:.1e}", flush=True)
    if not off < 2e-5:
        sys.exit(f"{what}: {mine} is not {theirs}")


def embedded(model, ids, pooling):
    out = model(torch.tensor([ids])).last_hidden_state[0].double()
    pooled = out.mean(0) if pooling == "mean_tokens" else out[0]
    return pooled / pooled.norm()


def check(name, model, vocabulary, tokenizer, pooling):
    model = model.eval()
    with tempfile.TemporaryDirectory() as parent, torch.no_grad():
        folder = pathlib.Path(parent, name)
        folder.mkdir()
        save(folder, model, tokenizer, pooling)
        ours = warpwave.Model(folder, device="cpu", precise=True)
        from tokenizers import Tokenizer
        theirs = Tokenizer.from_file(str(folder / "tokenizer.json"))
        for text in TEXTS:
            ids = theirs.encode(text).ids
            assert ours.tokenize(text) == ids, (name, text, ours.tokenize(text), ids)
            if pooling:
                near(f"{name} {text[:20]!r}", ours.embed(text), embedded(model, ids, pooling))
            else:
                pair = theirs.encode("what is it?", text).ids
                near(f"{name} {text[:20]!r}", ours.rerank("what is it?", [text]), [model(torch.tensor([pair])).logits[0, 0]])


def gemma(vocabulary, tokenizer):
    """EmbeddingGemma with its two dense layers; the tokenizer is not Gemma's, which changes nothing here."""
    config = hf.Gemma3TextConfig(**SIZES, vocab_size=vocabulary, num_key_value_heads=1, head_dim=32, query_pre_attn_scalar=32, sliding_window=8,
                                 use_bidirectional_attention=True, max_position_embeddings=512, pad_token_id=1, bos_token_id=0, eos_token_id=2)
    model = hf.Gemma3TextModel(config).eval()
    dense = [torch.randn(128, 64) / 8, torch.randn(64, 128) / 11]
    with tempfile.TemporaryDirectory() as parent, torch.no_grad():
        folder = pathlib.Path(parent, "gemma")
        folder.mkdir()
        save(folder, model, tokenizer, "mean_tokens")
        written = json.loads((folder / "config.json").read_text())
        written["sliding_window"] = 8  # transformers keeps half of it, and one
        (folder / "config.json").write_text(json.dumps(written))
        for i, weight in enumerate(dense):
            inside = folder / f"{i + 2}_Dense"
            inside.mkdir()
            safetensors.torch.save_file({"linear.weight": weight.contiguous()}, inside / "model.safetensors")
            (inside / "config.json").write_text(json.dumps({"activation_function": "torch.nn.modules.linear.Identity", "bias": False}))
        ours = warpwave.Model(folder, device="cpu", precise=True)
        for text in TEXTS:
            pooled = model(torch.tensor([ours.tokenize(text)])).last_hidden_state[0].mean(0)
            pooled = dense[1] @ (dense[0] @ pooled)
            near(f"gemma-embedding {text[:20]!r}", ours.embed(text), pooled / pooled.norm())


def main():
    torch.manual_seed(5)
    vocabulary, tokenizer = unigram(sys.argv[1])
    ids = {"vocab_size": vocabulary, "pad_token_id": 1, "bos_token_id": 0, "eos_token_id": 2}
    roberta = hf.XLMRobertaConfig(**SIZES, **ids, max_position_embeddings=514, type_vocab_size=1)
    modern = hf.ModernBertConfig(**SIZES, **ids, max_position_embeddings=512, local_attention=8, cls_token_id=0, sep_token_id=2)
    check("xlm-roberta", hf.XLMRobertaModel(roberta, add_pooling_layer=False), vocabulary, tokenizer, "mean_tokens")
    check("xlm-roberta reranker", hf.XLMRobertaForSequenceClassification(roberta), vocabulary, tokenizer, None)
    check("modern-bert", hf.ModernBertModel(modern), vocabulary, tokenizer, "cls_token")
    modern.classifier_pooling = "mean"
    check("modern-bert reranker", hf.ModernBertForSequenceClassification(modern), vocabulary, tokenizer, None)
    gemma(vocabulary, tokenizer)


main()
