#!/usr/bin/env python3
"""Writes tests/model/transformers/embedder_cases.json: embeddings and scores of small models with random weights, by the transformers package.

make_embedder_cases.py BUILD [NAME...], with torch, transformers and gguf installed; without names, all models. The test program writes the models as GGUF files; this puts the
weights where transformers has them, and keeps every fourth number of the embeddings of texts of some lengths, or the score.
"""
import json
import os
import pathlib
import subprocess
import sys
import tempfile

import gguf
import numpy
import torch
import transformers as hf

VOCABULARY, EACH, LENGTHS = 96, 4, (24, 300)

BERT = {"attn_q": "attention.self.query", "attn_k": "attention.self.key", "attn_v": "attention.self.value", "attn_output": "attention.output.dense",
        "attn_output_norm": "attention.output.LayerNorm", "ffn_up": "intermediate.dense", "ffn_down": "output.dense", "layer_output_norm": "output.LayerNorm"}
BERT_ONCE = {"token_embd": "embeddings.word_embeddings", "position_embd": "embeddings.position_embeddings", "token_types": "embeddings.token_type_embeddings",
             "token_embd_norm": "embeddings.LayerNorm"}
MODERN = {"attn_norm": "attn_norm", "attn_qkv": "attn.Wqkv", "attn_output": "attn.Wo", "ffn_norm": "mlp_norm", "ffn_up": "mlp.Wi", "ffn_down": "mlp.Wo"}
MODERN_ONCE = {"token_embd": "embeddings.tok_embeddings", "token_embd_norm": "embeddings.norm", "output_norm": "final_norm"}
MPNET = {**BERT, **{f"attn_{part}": f"attention.attn.{part}" for part in "qkv"}, "attn_output": "attention.attn.o", "attn_output_norm": "attention.LayerNorm"}
DECODER = {"attn_norm": "input_layernorm", "ffn_norm": "post_attention_layernorm", "attn_q": "self_attn.q_proj", "attn_k": "self_attn.k_proj",
           "attn_v": "self_attn.v_proj", "attn_output": "self_attn.o_proj", "attn_q_norm": "self_attn.q_norm", "attn_k_norm": "self_attn.k_norm",
           "ffn_gate": "mlp.gate_proj", "ffn_up": "mlp.up_proj", "ffn_down": "mlp.down_proj"}
GEMMA = {**DECODER, "ffn_norm": "pre_feedforward_layernorm", "post_attention_norm": "post_attention_layernorm", "post_ffw_norm": "post_feedforward_layernorm"}
DECODER_ONCE = {"token_embd": "embed_tokens", "output_norm": "norm"}


class Model:
    def __init__(self, path):
        reader = gguf.GGUFReader(path)
        self.name = path.stem
        self.keys = {key: field.contents() for key, field in reader.fields.items()}
        self.architecture = self.keys["general.architecture"]
        self.tensors = {t.name: torch.from_numpy(numpy.array(t.data, dtype=numpy.float64)) for t in reader.tensors}

    def key(self, name, default=None):
        return self.keys.get(f"{self.architecture}.{name}", default)

    def sizes(self):
        return {"vocab_size": VOCABULARY, "hidden_size": self.key("embedding_length"), "intermediate_size": self.key("feed_forward_length"),
                "num_hidden_layers": self.key("block_count"), "num_attention_heads": self.key("attention.head_count"), "attn_implementation": "eager",
                "pad_token_id": 1, "bos_token_id": 0, "eos_token_id": 2}

    def ranks(self):
        return self.key("pooling_type") == 4


def renamed(m, once, each, layers, prefix=""):
    """The tensors under the names that transformers has."""
    out = {}
    for name, weight in m.tensors.items():
        parts = name.split(".")
        if parts[0] == "blk" and parts[2] in each:
            out[f"{prefix}{layers}.{parts[1]}.{each[parts[2]]}.{parts[3]}"] = weight
        elif parts[0] in once:
            out[f"{prefix}{once[parts[0]]}.{parts[1]}"] = weight
    return out


def load(model, state):
    missing, unexpected = model.load_state_dict(state, strict=False)
    missing = [name for name in missing if "rotary" not in name and "position_ids" not in name and "lm_head" not in name]
    if missing or unexpected:
        sys.exit(f"missing {missing}, unexpected {unexpected}")
    return model.eval()


def bert(m):
    roberta = "roberta" in m.name
    sizes = {**m.sizes(), "type_vocab_size": 2, "max_position_embeddings": m.key("context_length") + 2 * roberta, "layer_norm_eps": m.key("attention.layer_norm_epsilon"),
             "num_labels": 1}
    config = (hf.XLMRobertaConfig if roberta else hf.BertConfig)(**sizes)
    prefix = ("roberta." if roberta else "bert.") if m.ranks() else ""
    state = renamed(m, BERT_ONCE, BERT, "encoder.layer", prefix)
    if roberta:  # two rows in front that no token has
        name = prefix + "embeddings.position_embeddings.weight"
        state[name] = torch.cat([torch.full((2, state[name].shape[1]), 7.0, dtype=torch.double), state[name]])
    if m.ranks():
        dense, out = ("classifier.dense", "classifier.out_proj") if roberta else ("bert.pooler.dense", "classifier")
        state.update({f"{dense}.weight": m.tensors["cls.weight"], f"{dense}.bias": m.tensors["cls.bias"], f"{out}.weight": m.tensors["cls.output.weight"],
                      f"{out}.bias": m.tensors["cls.output.bias"]})
        kind = hf.XLMRobertaForSequenceClassification if roberta else hf.BertForSequenceClassification
        model = load(kind(config).double(), state)
    else:
        model = load((hf.XLMRobertaModel if roberta else hf.BertModel)(config, add_pooling_layer=False).double(), state)

    def run(ids):
        count = ids.shape[1]
        places = torch.arange(count)[None] + (2 if roberta else 0)
        types = (torch.arange(count)[None] >= count // 2).long() if m.name == "bert-rank" else torch.zeros_like(ids)
        out = model(ids, position_ids=places, token_type_ids=types)
        return out.logits[0, 0] if m.ranks() else out.last_hidden_state[0]
    return run


def modern(m):
    mean = bool(m.keys.get("warpwave.rank_mean", False))
    window = m.key("attention.sliding_window", 0)
    rope = {"full_attention": {"rope_type": "default", "rope_theta": m.key("rope.freq_base")}, "sliding_attention": {"rope_type": "default", "rope_theta": 10000.0}}
    config = hf.ModernBertConfig(**{**m.sizes(), "local_attention": window or 4096, "global_attn_every_n_layers": 3, "rope_parameters": rope,
                                    "max_position_embeddings": m.key("context_length"), "norm_eps": m.key("attention.layer_norm_epsilon"), "num_labels": 1,
                                    "classifier_pooling": "mean" if mean else "cls", "layer_types": None if window else ["full_attention"] * m.key("block_count")})
    state = renamed(m, MODERN_ONCE, MODERN, "layers", "model." if m.ranks() else "")
    if m.ranks():
        state.update({"head.dense.weight": m.tensors["cls.weight"], "head.norm.weight": m.tensors["cls.norm.weight"],
                      "classifier.weight": m.tensors["cls.output.weight"], "classifier.bias": m.tensors["cls.output.bias"]})
    model = load((hf.ModernBertForSequenceClassification if m.ranks() else hf.ModernBertModel)(config).double(), state)
    return lambda ids: model(ids).logits[0, 0] if m.ranks() else model(ids).last_hidden_state[0]


def jina(m):
    """The package has no such class: the formulas, with one matrix of distances for all heads."""
    heads, size, layers, eps = m.key("attention.head_count"), m.key("attention.key_length"), m.key("block_count"), m.key("attention.layer_norm_epsilon")
    w = m.tensors

    def slopes(count):
        if count & (count - 1) == 0:
            return [2.0 ** (-8.0 * (h + 1) / count) for h in range(count)]
        power = 2 ** (count.bit_length() - 1)
        return slopes(power) + slopes(2 * power)[::2][:count - power]

    def linear(x, name):
        return x @ w[f"{name}.weight"].T + w.get(f"{name}.bias", 0.0)

    def norm(x, name):
        return torch.nn.functional.layer_norm(x, x.shape[-1:], w[f"{name}.weight"], w[f"{name}.bias"], eps)

    def attention(x, at):
        q, k, v = (linear(x, f"{at}.attn_{part}") for part in "qkv")
        if f"{at}.attn_q_norm.weight" in w:
            q, k = norm(q, f"{at}.attn_q_norm"), norm(k, f"{at}.attn_k_norm")
        q, k, v = (part.reshape(-1, heads, size).transpose(0, 1) for part in (q, k, v))
        places = torch.arange(x.shape[0], dtype=torch.double)
        distances = (places[:, None] - places[None, :]).abs()
        scores = q @ k.transpose(1, 2) / size ** 0.5 - torch.tensor(slopes(heads), dtype=torch.double)[:, None, None] * distances
        return linear((scores.softmax(-1) @ v).transpose(0, 1).reshape(-1, heads * size), f"{at}.attn_output")

    def network(x, at):
        up = linear(x, f"{at}.ffn_up")
        gate, up = (linear(x, f"{at}.ffn_gate"), up) if f"{at}.ffn_gate.weight" in w else up.chunk(2, -1)
        return linear(torch.nn.functional.gelu(gate) * up, f"{at}.ffn_down")

    def run(ids):
        x = norm(w["token_embd.weight"][ids[0]] + w["token_types.weight"][0], "token_embd_norm")
        for at in (f"blk.{i}" for i in range(layers)):
            y = norm(x + attention(x, at), f"{at}.attn_output_norm")
            if f"{at}.attn_norm_2.weight" in w:
                y = norm(x + y, f"{at}.attn_norm_2")
            x = norm(y + network(y, at), f"{at}.layer_output_norm")
        return x
    return run


def gemma(m):
    rope = {"full_attention": {"rope_type": "default", "rope_theta": m.key("rope.freq_base")}, "sliding_attention": {"rope_type": "default", "rope_theta": 10000.0}}
    layers = m.key("block_count")
    config = hf.Gemma3TextConfig(**{**m.sizes(), "num_key_value_heads": m.key("attention.head_count_kv"), "head_dim": m.key("attention.key_length"),
                                    "query_pre_attn_scalar": m.key("attention.key_length"), "rms_norm_eps": m.key("attention.layer_norm_rms_epsilon"),
                                    "max_position_embeddings": m.key("context_length"), "sliding_window": m.key("attention.sliding_window"),
                                    "use_bidirectional_attention": True, "rope_parameters": rope,
                                    "layer_types": ["full_attention" if i % 6 == 5 else "sliding_attention" for i in range(layers)]})
    state = {name: weight - 1.0 if "norm" in name else weight for name, weight in renamed(m, DECODER_ONCE, GEMMA, "layers").items()}
    model = load(hf.Gemma3TextModel(config).double(), state)
    return lambda ids: model(ids).last_hidden_state[0]


def mpnet(m):
    config = hf.MPNetConfig(**{**m.sizes(), "max_position_embeddings": m.key("context_length") + 2, "layer_norm_eps": m.key("attention.layer_norm_epsilon"),
                               "relative_attention_num_buckets": 32})
    state = renamed(m, {**BERT_ONCE, "attn_rel_b": "encoder.relative_attention_bias"}, MPNET, "encoder.layer")
    name = "embeddings.position_embeddings.weight"
    state[name] = torch.cat([torch.full((2, state[name].shape[1]), 7.0, dtype=torch.double), state[name]])
    model = load(hf.MPNetModel(config, add_pooling_layer=False).double(), state)
    return lambda ids: model(ids, position_ids=torch.arange(ids.shape[1])[None] + 2).last_hidden_state[0]


def model2vec(m):
    """The package looks rows up and takes their mean; result() does the second."""
    return lambda ids: m.tensors["token_embd.weight"][ids[0]]


def sees_all(m):
    """A decoder whose tokens see the whole text."""
    names = {"llama": (hf.LlamaConfig, hf.LlamaModel), "qwen2": (hf.Qwen2Config, hf.Qwen2Model), "qwen3": (hf.Qwen3Config, hf.Qwen3Model)}
    kind, body = names[m.architecture]
    heads, keys = m.key("attention.head_count"), m.key("attention.head_count_kv")
    config = kind(**{**m.sizes(), "num_key_value_heads": keys, "head_dim": m.key("attention.key_length"), "rms_norm_eps": m.key("attention.layer_norm_rms_epsilon"),
                     "max_position_embeddings": m.key("context_length"), "rope_parameters": {"rope_type": "default", "rope_theta": m.key("rope.freq_base")}})
    state = renamed(m, DECODER_ONCE, DECODER, "layers")
    for name, weight in state.items():  # GGUF has neighbours in rope's pairs
        count = heads if "q_proj" in name else keys if "k_proj" in name else 0
        if m.architecture == "llama" and count:
            state[name] = weight.reshape(count, -1, 2, weight.shape[1]).transpose(1, 2).reshape(weight.shape)
    model = load(body(config).double(), state)

    def run(ids):
        mask = torch.zeros(1, 1, ids.shape[1], ids.shape[1], dtype=torch.double)  # added to scores: nothing is hidden
        return model(ids, attention_mask=mask).last_hidden_state[0]
    return run


def qwen3(m):
    config = hf.Qwen3Config(**{**m.sizes(), "num_key_value_heads": m.key("attention.head_count_kv"), "head_dim": m.key("attention.key_length"),
                               "rms_norm_eps": m.key("attention.layer_norm_rms_epsilon"), "max_position_embeddings": m.key("context_length"),
                               "rope_parameters": {"rope_type": "default", "rope_theta": m.key("rope.freq_base")}})
    model = load(hf.Qwen3Model(config).double(), renamed(m, DECODER_ONCE, DECODER, "layers"))
    if not m.ranks():
        return lambda ids: model(ids).last_hidden_state[0]
    yes_no = m.tensors["cls.output.weight"]
    return lambda ids: (yes_no[0] - yes_no[1]) @ model(ids).last_hidden_state[0, -1]


def result(m, out):
    """The score, or the vector that the pooling makes, of length 1."""
    if m.ranks():
        return [round(float(out), 7)]
    pooled = {1: out.mean(0), 2: out[0], 3: out[-1]}[m.key("pooling_type")]
    for name in ("dense_2.weight", "dense_3.weight"):
        if name in m.tensors:
            pooled = m.tensors[name] @ pooled
    return [round(x, 7) for x in (pooled / pooled.norm())[::EACH].tolist()]


def main():
    path, chosen = pathlib.Path(__file__).with_name("embedder_cases.json"), sys.argv[2:]
    cases = json.loads(path.read_text()) if chosen else {}
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([pathlib.Path(sys.argv[1]) / "tests/test_model_embedders"], env={**os.environ, "WARPWAVE_WRITE_MODELS": folder}, check=True)
        for written in sorted(pathlib.Path(folder).glob("*.gguf")):
            m = Model(written)
            if chosen and m.name not in chosen:
                continue
            run = sees_all(m) if m.name.endswith("sees-all") else {
                "bert": bert, "mpnet": mpnet, "model2vec": model2vec, "jina-bert-v2": jina, "modern-bert": modern, "gemma-embedding": gemma, "qwen3": qwen3}[m.architecture](m)
            cases[m.name] = {}
            for count in LENGTHS:
                ids = torch.tensor([[(7 * t * t + 13 * t + 5) % VOCABULARY for t in range(count)]])
                with torch.no_grad():
                    cases[m.name][str(count)] = result(m, run(ids))
            print(m.name, cases[m.name]["24"][:3])
    lines = [f"{json.dumps(name)}: {json.dumps(texts)}" for name, texts in sorted(cases.items())]
    path.write_text("{\n" + ",\n".join(lines) + "\n}\n")


main()
