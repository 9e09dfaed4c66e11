#!/usr/bin/env python3
"""Writes tests/model/transformers/transformers_cases.json: logits of small decoders with random weights, by the transformers package.

make_transformers_cases.py BUILD, with torch, transformers and gguf installed. The test program writes the models as GGUF files; this makes
a config of each file's metadata, puts the weights where transformers has them, and keeps every eighth logit behind texts of some lengths.
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
import transformers

VOCABULARY, EACH = 96, 8
LENGTHS = {"phi3-factors": [12, 40], "mistral3": [12, 60], "gemma2": [24, 300], "gpt-oss": [24, 300], "qwen3moe": [24, 300]}

LAYER = {
    "attn_norm": "input_layernorm", "ffn_norm": "post_attention_layernorm", "attn_q": "self_attn.q_proj", "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj", "attn_output": "self_attn.o_proj", "attn_q_norm": "self_attn.q_norm", "attn_k_norm": "self_attn.k_norm",
    "ffn_gate": "mlp.gate_proj", "ffn_up": "mlp.up_proj", "ffn_down": "mlp.down_proj", "attn_qkv": "self_attn.qkv_proj",
    "ffn_gate_inp": "mlp.gate",
}
POST_NORMS = {"post_attention_norm": "post_attention_layernorm", "post_ffw_norm": "post_feedforward_layernorm", "ffn_norm": "pre_feedforward_layernorm"}
CLASSES = {
    "llama": "Llama", "qwen2": "Qwen2", "qwen3": "Qwen3", "gemma2": "Gemma2", "phi3": "Phi3", "granite": "Granite", "olmo2": "Olmo2",
    "olmo3": "Olmo3", "smollm3": "SmolLM3", "mistral3": "Ministral3", "qwen3moe": "Qwen3Moe", "gpt-oss": "GptOss",
}


class Model:
    def __init__(self, path):
        reader = gguf.GGUFReader(path)
        self.name = path.stem
        self.keys = {key: field.contents() for key, field in reader.fields.items()}
        self.architecture = self.keys["general.architecture"]
        self.tensors = {t.name: torch.from_numpy(numpy.array(t.data, dtype=numpy.float64)) for t in reader.tensors}

    def key(self, name, default=None):
        return self.keys.get(f"{self.architecture}.{name}", default)


def rope_of(m):
    rope = {"rope_type": "default", "rope_theta": m.key("rope.freq_base")}
    if m.key("rope.scaling.type") == "yarn":
        rope.update(rope_type="yarn", factor=m.key("rope.scaling.factor"), original_max_position_embeddings=m.key("rope.scaling.original_context_length"),
                    beta_fast=32.0, beta_slow=1.0)
    if m.name == "mistral3":
        rope.update(mscale=1.0, mscale_all_dim=1.0, llama_4_scaling_beta=m.key("attention.temperature_scale"))
    if m.name == "gpt-oss":
        rope["truncate"] = False
    if "rope_factors_long.weight" in m.tensors:
        rope.update(rope_type="longrope", factor=4.0, original_max_position_embeddings=m.key("rope.scaling.original_context_length"),
                    attention_factor=m.key("rope.scaling.attn_factor"), short_factor=m.tensors["rope_factors_short.weight"].tolist(),
                    long_factor=m.tensors["rope_factors_long.weight"].tolist())
    return rope


def config_of(m):
    layers, window = m.key("block_count"), m.key("attention.sliding_window")
    settings = {
        "vocab_size": VOCABULARY, "hidden_size": m.key("embedding_length"), "intermediate_size": m.key("feed_forward_length"),
        "num_hidden_layers": layers, "num_attention_heads": m.key("attention.head_count"), "num_key_value_heads": m.key("attention.head_count_kv"),
        "head_dim": m.key("attention.key_length"), "rms_norm_eps": m.key("attention.layer_norm_rms_epsilon"), "max_position_embeddings": m.key("context_length"),
        "tie_word_embeddings": False, "rope_parameters": rope_of(m), "attn_implementation": "eager", "experts_implementation": "eager", "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2,
        "sliding_window": window,
    }
    pattern = {"gemma2": 2, "gpt-oss": 2, "olmo3": 4}.get(m.name)
    if pattern:
        settings["layer_types"] = ["full_attention" if i % pattern == pattern - 1 else "sliding_attention" for i in range(layers)]
    if m.name == "gemma2":
        settings.update(attn_logit_softcapping=m.key("attn_logit_softcapping"), final_logit_softcapping=m.key("final_logit_softcapping"),
                        query_pre_attn_scalar=m.key("attention.key_length"), hidden_activation="gelu_pytorch_tanh")
    if m.name == "phi3-factors":
        settings["original_max_position_embeddings"] = m.key("rope.scaling.original_context_length")
    if m.name == "olmo3":
        settings["rope_parameters"] = {"sliding_attention": {"rope_type": "default", "rope_theta": m.key("rope.freq_base")}, "full_attention": rope_of(m)}
    if m.name == "granite":
        settings.update(embedding_multiplier=m.key("embedding_scale"), residual_multiplier=m.key("residual_scale"),
                        attention_multiplier=m.key("attention.scale"), logits_scaling=m.key("logit_scale"))
    if m.name == "smollm3":
        settings.update(no_rope_layers=[int((i + 1) % 4 != 0) for i in range(layers)], use_sliding_window=False)
    if m.name == "qwen3moe":
        settings.update(num_experts=m.key("expert_count"), num_experts_per_tok=m.key("expert_used_count"), norm_topk_prob=True,
                        moe_intermediate_size=m.key("expert_feed_forward_length"), decoder_sparse_step=1, mlp_only_layers=[])
    if m.name == "gpt-oss":
        settings.update(num_local_experts=m.key("expert_count"), num_experts_per_tok=m.key("expert_used_count"),
                        intermediate_size=m.key("expert_feed_forward_length"))
    name = CLASSES["phi3" if m.architecture == "phi3" else m.name]
    return getattr(transformers, name + "Config")(**settings), getattr(transformers, name + "ForCausalLM")


def halves(weight, heads):
    """Rows of a head from the order of pairs, as llama has them in files, to that of halves."""
    return weight.reshape(heads, -1, 2, *weight.shape[1:]).transpose(1, 2).reshape(weight.shape)


def names_of(m, name):
    """Where transformers has a tensor of the file."""
    if not name.startswith("blk."):
        return {"token_embd.weight": "model.embed_tokens.weight", "output_norm.weight": "model.norm.weight", "output.weight": "lm_head.weight"}.get(name)
    _, layer, what, ending = name.split(".")
    names = {**LAYER, **(POST_NORMS if m.architecture in ("gemma2", "olmo2") else {})}
    if m.architecture == "phi3":
        names = {**names, "ffn_up": "mlp.gate_up_proj"}
    if m.architecture == "gpt-oss":
        names = {**names, "post_attention_norm": "post_attention_layernorm", "attn_sinks": "self_attn.sinks", "ffn_gate_inp": "mlp.router"}
        if what == "attn_sinks":
            return f"model.layers.{layer}.self_attn.sinks"
    return f"model.layers.{layer}.{names[what]}.{ending}" if what in names else None


def experts_of(m, layer):
    """All experts of a layer as transformers keeps them: gate and up in one tensor, of gpt-oss alternating and transposed."""
    t = {name: m.tensors[f"blk.{layer}.ffn_{name}"] for name in ("gate_exps.weight", "up_exps.weight", "down_exps.weight")}
    base = f"model.layers.{layer}.mlp.experts."
    if m.architecture == "qwen3moe":
        return {base + "gate_up_proj": torch.cat([t["gate_exps.weight"], t["up_exps.weight"]], 1), base + "down_proj": t["down_exps.weight"]}
    both = torch.stack([t["gate_exps.weight"], t["up_exps.weight"]], 2).flatten(1, 2)
    biases = torch.stack([m.tensors[f"blk.{layer}.ffn_{n}_exps.bias"] for n in ("gate", "up")], 2).flatten(1, 2)
    return {base + "gate_up_proj": both.transpose(1, 2), base + "down_proj": t["down_exps.weight"].transpose(1, 2), base + "gate_up_proj_bias": biases,
            base + "down_proj_bias": m.tensors[f"blk.{layer}.ffn_down_exps.bias"]}


def build(m):
    config, kind = config_of(m)
    model = kind(config).double().eval()
    state = {}
    for name, weight in m.tensors.items():
        to = names_of(m, name)
        if m.architecture in ("llama", "granite", "smollm3", "mistral3") and (".attn_q.weight" in name or ".attn_k.weight" in name):
            weight = halves(weight, config.num_attention_heads if ".attn_q." in name else config.num_key_value_heads)
        if m.architecture == "gemma2" and "norm" in name:
            weight = weight - 1.0
        if to:
            state[to] = weight
    for layer in range(config.num_hidden_layers if m.key("expert_count") else 0):
        state.update(experts_of(m, layer))
    missing, unexpected = model.load_state_dict(state, strict=False)
    missing = [name for name in missing if "rotary" not in name]
    if missing or unexpected:
        sys.exit(f"{m.name}: missing {missing}, unexpected {unexpected}")
    return model


def main():
    build_folder = pathlib.Path(sys.argv[1])
    cases = {}
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([build_folder / "tests/test_model_transformers"], env={**os.environ, "WARPWAVE_WRITE_MODELS": folder}, check=True)
        for path in sorted(pathlib.Path(folder).glob("*.gguf")):
            m = Model(path)
            model = build(m)
            cases[m.name] = {}
            for count in LENGTHS.get(m.name, [24]):
                ids = torch.tensor([[(7 * t * t + 13 * t + 5) % VOCABULARY for t in range(count)]])
                with torch.no_grad():
                    logits = model(ids).logits[0, -1]
                cases[m.name][str(count)] = [round(x, 7) for x in logits[::EACH].tolist()]
            print(m.name, cases[m.name]["24" if "24" in cases[m.name] else "12"][:3])
    path = pathlib.Path(__file__).with_name("transformers_cases.json")
    lines = [f"{json.dumps(name)}: {json.dumps(texts)}" for name, texts in sorted(cases.items())]
    path.write_text("{\n" + ",\n".join(lines) + "\n}\n")


main()
