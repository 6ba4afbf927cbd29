"""Writes random checkpoints of the K3 family in the Hugging Face layout: config.json, shards and index.

Every value comes from one seeded numpy generator and every byte is written here, so that a recipe gives
the same files on every machine.
"""
import json
import re
import struct

import numpy as np

BLOCK = 32  # columns that share an MXFP4 scale


def bf16_bits(a):
    """fp32 -> bf16 as uint16, to nearest even."""
    bits = np.ascontiguousarray(a, "<f4").view("<u4")
    return ((bits + 0x7FFF + (bits >> 16 & 1)) >> 16).astype("<u2")


def write_safetensors(path, tensors):
    """tensors: name -> (dtype, shape, bytes), written in the order of the dict."""
    head, at = {"__metadata__": {"format": "pt"}}, 0
    for name, (dtype, shape, data) in tensors.items():
        head[name] = {"dtype": dtype, "shape": list(shape), "data_offsets": [at, at + len(data)]}
        at += len(data)
    text = json.dumps(head, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as f:
        f.write(struct.pack("<Q", len(text)) + text + b"".join(t[2] for t in tensors.values()))


class Recipe:
    """How a checkpoint's weights differ from the defaults of Weights.

    gains: (regex of names, factor or function(rng, shape) -> factor) pairs, the first match counts.
    scale_bytes: function(name) -> (lowest, highest) E8M0 byte of an expert matrix.
    a_log: function(n_heads) -> values; a_log_shape: stored shape, zero padded.
    change: function(name, array) -> array, the last word on any fp32 array before it is rounded.
    """

    def __init__(self, gains=(), scale_bytes=lambda name: (121, 123), a_log=None, a_log_shape=None,
                 dt_bias=3.0, router_bias=0.2, bf16_vectors=False, packed=True, change=None):
        self.gains, self.scale_bytes, self.a_log, self.a_log_shape = gains, scale_bytes, a_log, a_log_shape
        self.dt_bias, self.router_bias = dt_bias, router_bias
        self.bf16_vectors, self.packed, self.change = bf16_vectors, packed, change


class Weights:
    """The tensors of one random checkpoint: layers[L] and globals, name -> (dtype, shape, bytes)."""

    def __init__(self, config, recipe, seed):
        self.c, self.r = config.get("text_config", config), recipe
        self.prefix = "language_model." if "text_config" in config else ""
        self.rng = np.random.Generator(np.random.PCG64(seed))
        self.group, self.out = "", {}
        c, hidden = self.c, self.c["hidden_size"]
        self.layers = []
        for layer in range(c["num_hidden_layers"]):
            self.begin(f"model.layers.{layer}.")
            self.layer(layer)
            self.layers.append(self.sorted())
        self.begin("")
        self.matrix("model.embed_tokens.weight", c["vocab_size"], hidden, std=1.0)
        if not config.get("tie_word_embeddings"):
            self.matrix("lm_head.weight", c["vocab_size"], hidden, std=2.5 / hidden ** 0.5)
        self.norm("model.norm.weight", hidden)
        if c.get("attn_res_block_size"):
            self.attn_res("model.output_attn_res")
        self.globals = self.sorted()

    def begin(self, group):
        self.group, self.out = self.prefix + group, {}

    def sorted(self):
        """F32, then BF16, then U8, each by name, as the safetensors library writes them."""
        order = {"F32": 0, "BF16": 1, "U8": 2}
        return dict(sorted(self.out.items(), key=lambda kv: (order[kv[1][0]], kv[0])))

    def put(self, name, a, dtype):
        name = self.group + name
        for pattern, gain in self.r.gains:
            if re.search(pattern, name):
                a = a * (gain(self.rng, a.shape) if callable(gain) else gain)
                break
        a = a.astype("<f4")
        if self.r.change:
            a = self.r.change(name, a)
        bits = bf16_bits(a) if dtype == "BF16" else a
        self.out[name] = (dtype, a.shape, bits.tobytes())

    def matrix(self, name, rows, cols, std=None):
        std = cols ** -0.5 if std is None else std
        self.put(name, self.rng.standard_normal((rows, cols)) * std, "BF16")

    def vector(self, name, a):
        self.put(name, a, "BF16" if self.r.bf16_vectors else "F32")

    def norm(self, name, n):
        self.put(name, 1 + 0.2 * self.rng.standard_normal(n), "BF16")

    def attn_res(self, name):
        hidden = self.c["hidden_size"]
        self.norm(name + "_norm.weight", hidden)
        self.matrix(name + "_proj.weight", 1, hidden, std=1.5 / hidden ** 0.5)

    def layer(self, layer):
        c, hidden = self.c, self.c["hidden_size"]
        self.norm("input_layernorm.weight", hidden)
        self.norm("post_attention_layernorm.weight", hidden)
        if c.get("attn_res_block_size"):
            self.attn_res("self_attention_res")
            self.attn_res("mlp_res")
        if layer + 1 in c["linear_attn_config"]["kda_layers"]:
            self.kda()
        else:
            self.mla()
        moe = c.get("num_experts") and layer >= c["first_k_dense_replace"] and layer % c.get("moe_layer_freq", 1) == 0
        self.moe() if moe else self.mlp("mlp.", c["intermediate_size"])

    def kda(self):
        la, hidden, p = self.c["linear_attn_config"], self.c["hidden_size"], "self_attn."
        heads, dim, taps = la["num_heads"], la["head_dim"], la["short_conv_kernel_size"]
        width = heads * dim
        for n in "qkv":
            self.matrix(f"{p}{n}_proj.weight", width, hidden)
            self.vector(f"{p}{n}_conv1d.weight", self.rng.standard_normal((width, 1, taps)) * 0.5)
        if la.get("use_full_rank_gate"):
            self.matrix(p + "g_proj.weight", width, hidden)
        else:
            self.matrix(p + "g_a_proj.weight", dim, hidden)
            self.matrix(p + "g_b_proj.weight", width, dim)
        self.matrix(p + "o_proj.weight", hidden, width)
        self.matrix(p + "f_a_proj.weight", dim, hidden)
        self.matrix(p + "f_b_proj.weight", width, dim)
        self.matrix(p + "b_proj.weight", heads, hidden)
        values = self.r.a_log(heads) if self.r.a_log else self.rng.uniform(-1, 1, heads)
        shape = self.r.a_log_shape or (heads,)
        padded = np.zeros(int(np.prod(shape)))
        padded[:heads] = values
        self.put(p + "A_log", padded.reshape(shape), "F32")
        self.put(p + "dt_bias", self.rng.uniform(-self.r.dt_bias, self.r.dt_bias, width), "F32")
        self.vector(p + "o_norm.weight", 1 + 0.2 * self.rng.standard_normal(dim))

    def mla(self):
        c, hidden, p = self.c, self.c["hidden_size"], "self_attn."
        heads, nope, rope, v = (c[k] for k in ("num_attention_heads", "qk_nope_head_dim", "qk_rope_head_dim", "v_head_dim"))
        if c.get("q_lora_rank"):
            self.matrix(p + "q_a_proj.weight", c["q_lora_rank"], hidden)
            self.norm(p + "q_a_layernorm.weight", c["q_lora_rank"])
            self.matrix(p + "q_b_proj.weight", heads * (nope + rope), c["q_lora_rank"])
        else:
            self.matrix(p + "q_proj.weight", heads * (nope + rope), hidden)
        self.matrix(p + "kv_a_proj_with_mqa.weight", c["kv_lora_rank"] + rope, hidden)
        self.norm(p + "kv_a_layernorm.weight", c["kv_lora_rank"])
        self.matrix(p + "kv_b_proj.weight", heads * (nope + v), c["kv_lora_rank"])
        if c.get("mla_use_output_gate"):
            self.matrix(p + "g_proj.weight", heads * v, hidden)
        self.matrix(p + "o_proj.weight", hidden, heads * v)

    def mlp(self, p, width):
        hidden = self.c["hidden_size"]
        self.matrix(p + "gate_proj.weight", width, hidden)
        self.matrix(p + "up_proj.weight", width, hidden)
        self.matrix(p + "down_proj.weight", hidden, width)

    def moe(self):
        c, hidden, p = self.c, self.c["hidden_size"], "block_sparse_moe."
        n, inner, latent = c["num_experts"], c["moe_intermediate_size"], c.get("routed_expert_hidden_size")
        self.matrix(p + "gate.weight", n, hidden, std=1.5 / hidden ** 0.5)
        self.put(p + "gate.e_score_correction_bias", self.rng.uniform(-self.r.router_bias, self.r.router_bias, n), "F32")
        if latent:
            self.matrix(p + "routed_expert_down_proj.weight", latent, hidden)
            if c.get("latent_moe_use_norm"):
                self.norm(p + "routed_expert_norm.weight", latent)
            self.matrix(p + "routed_expert_up_proj.weight", hidden, latent)
        if c.get("num_shared_experts"):
            self.mlp(p + "shared_experts.", c["num_shared_experts"] * inner)
        for e in range(n):
            for piece, rows, cols in (("w1", inner, latent or hidden), ("w2", latent or hidden, inner),
                                      ("w3", inner, latent or hidden)):
                self.expert_matrix(f"{p}experts.{e}.{piece}.weight", rows, cols)

    def expert_matrix(self, name, rows, cols):
        if not self.r.packed:
            return self.matrix(name, rows, cols)
        low, high = self.r.scale_bytes(self.group + name)
        codes = self.rng.integers(0, 256, (rows, cols // 2), "u1")
        scales = self.rng.integers(low, high + 1, (rows, cols // BLOCK)).astype("u1")
        self.out[self.group + name + "_packed"] = ("U8", codes.shape, codes.tobytes())
        self.out[self.group + name + "_scale"] = ("U8", scales.shape, scales.tobytes())


def write_checkpoint(directory, config, recipe, seed, n_shards=2):
    """config.json, n_shards shards of whole layers (the last ends with the globals) and their index."""
    weights = Weights(config, recipe, seed)
    directory.mkdir(parents=True, exist_ok=True)
    n = len(weights.layers)
    files, shards = {}, [{} for _ in range(n_shards)]
    for layer, tensors in enumerate(weights.layers):
        shards[layer * n_shards // n].update(tensors)
    shards[-1].update(weights.globals)
    for i, tensors in enumerate(shards):
        file = f"model-{i + 1:05}-of-{n_shards:05}.safetensors"
        write_safetensors(directory / file, tensors)
        files.update({name: file for name in tensors})
    total = sum(len(t[2]) for shard in shards for t in shard.values())
    index = {"metadata": {"total_size": total}, "weight_map": dict(sorted(files.items()))}
    (directory / "model.safetensors.index.json").write_text(json.dumps(index, separators=(",", ":")) + "\n")
    (directory / "config.json").write_text(json.dumps(config, indent=1) + "\n")
