#!/usr/bin/env python3
"""Writes a snapshot in K3's format that fits in memory as GGUF, for llama.cpp as an outside oracle.

  PYTHONPATH=LLAMA_CPP/gguf-py to_gguf.py MODEL_DIR OUT.gguf mxfp4|fp32

The matrices are widened to fp32 (exact). The experts stay MXFP4, their nibbles reordered, or become
fp32 too (also exact): then llama.cpp does not round their inputs to 8 bits.
"""
import base64
import json
import pathlib
import struct
import sys

import gguf
import numpy as np

MODEL = "language_model.model."
E2M1 = np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6, -0.0, -0.5, -1, -1.5, -2, -3, -4, -6], np.float32)


class Snapshot:
    """Tensors of a safetensors snapshot by name."""

    def __init__(self, folder):
        self.folder = folder
        index = json.loads((folder / "model.safetensors.index.json").read_text())
        self.shard_of = index["weight_map"]
        self.headers = {}

    def raw(self, name):
        """The bytes, dtype and shape of a tensor."""
        path = self.folder / self.shard_of[name]
        with open(path, "rb") as file:
            if path not in self.headers:
                size = struct.unpack("<Q", file.read(8))[0]
                self.headers[path] = (json.loads(file.read(size)), 8 + size)
            header, payload = self.headers[path]
            begin, end = header[name]["data_offsets"]
            file.seek(payload + begin)
            return file.read(end - begin), header[name]["dtype"], header[name]["shape"]

    def fp32(self, name):
        data, dtype, shape = self.raw(name)
        if dtype == "BF16":
            values = (np.frombuffer(data, np.uint16).astype(np.uint32) << 16).view(np.float32)
        elif dtype == "F32":
            values = np.frombuffer(data, np.float32)
        else:
            raise ValueError(f"{name}: dtype {dtype}")
        return values.reshape(shape)

    def flat(self, name):
        return self.fp32(name).ravel()

    def u8(self, name):
        data, _, shape = self.raw(name)
        return np.frombuffer(data, np.uint8).reshape(shape)


class Converter:
    def __init__(self, folder, out, experts):
        self.folder = folder
        self.experts = experts
        self.config = json.loads((folder / "config.json").read_text())
        self.text = self.config["text_config"]
        self.linear = self.text["linear_attn_config"]
        self.mla_layers = {i - 1 for i in self.linear["full_attn_layers"]}
        self.snapshot = Snapshot(folder)
        self.writer = gguf.GGUFWriter(out, "kimi-k3")

    def run(self):
        self.write_shape()
        self.write_attention_shape()
        self.write_expert_shape()
        self.write_vocabulary()
        self.put("token_embd.weight", self.snapshot.fp32(MODEL + "embed_tokens.weight"))
        self.put("output_norm.weight", self.snapshot.fp32(MODEL + "norm.weight"))
        self.put("output.weight", self.snapshot.fp32("language_model.lm_head.weight"))
        self.put("output_res_score.weight", self.res_score(MODEL + "output_attn_res"))
        for layer in range(self.text["num_hidden_layers"]):
            self.write_layer(layer)
        self.writer.write_header_to_file()
        self.writer.write_kv_data_to_file()
        self.writer.write_tensors_to_file()
        self.writer.close()

    def write_shape(self):
        w, c = self.writer, self.text
        layers = c["num_hidden_layers"]
        w.add_context_length(c["max_position_embeddings"])
        w.add_embedding_length(c["hidden_size"])
        w.add_block_count(layers)
        w.add_feed_forward_length(c["intermediate_size"])
        w.add_head_count(c["num_attention_heads"])
        w.add_head_count_kv([1 if i in self.mla_layers else 0 for i in range(layers)])
        w.add_layer_norm_rms_eps(c["rms_norm_eps"])
        w.add_vocab_size(c["vocab_size"])
        w.add_attn_res_block_size(c["attn_res_block_size"])
        w.add_activation_situ_beta(c["activation_situ_beta"])
        w.add_activation_situ_linear_beta(c["activation_situ_linear_beta"])

    def write_attention_shape(self):
        w, c = self.writer, self.text
        w.add_ssm_conv_kernel(self.linear["short_conv_kernel_size"])
        w.add_kda_head_dim(self.linear["head_dim"])
        w.add_kda_gate_lower_bound(self.linear["gate_lower_bound"])
        w.add_q_lora_rank(c["q_lora_rank"])
        w.add_kv_lora_rank(c["kv_lora_rank"])
        w.add_rope_dimension_count(c["qk_rope_head_dim"])
        w.add_key_length(c["kv_lora_rank"] + c["qk_rope_head_dim"])
        w.add_value_length(c["kv_lora_rank"])
        w.add_key_length_mla(c["qk_nope_head_dim"] + c["qk_rope_head_dim"])
        w.add_value_length_mla(c["v_head_dim"])

    def write_expert_shape(self):
        w, c = self.writer, self.text
        w.add_expert_count(c["num_experts"])
        w.add_expert_used_count(c["num_experts_per_token"])
        w.add_expert_feed_forward_length(c["moe_intermediate_size"])
        w.add_expert_shared_count(c["num_shared_experts"])
        w.add_leading_dense_block_count(c["first_k_dense_replace"])
        w.add_expert_weights_scale(c["routed_scaling_factor"])
        w.add_expert_weights_norm(c["moe_renormalize"])
        w.add_expert_gating_func(gguf.ExpertGatingFuncType.SIGMOID)
        w.add_expert_latent_length(c["routed_expert_hidden_size"])

    def write_vocabulary(self):
        ranks = {}
        for line in (self.folder / "tiktoken.model").read_bytes().splitlines():
            token, rank = line.split()
            ranks[base64.b64decode(token)] = int(rank)
        added = json.loads((self.folder / "tokenizer_config.json").read_text())
        spelling = {int(k): v["content"] for k, v in added["added_tokens_decoder"].items()}
        size = self.text["vocab_size"]
        tokens = [spelling.get(i, f"<|reserved_token_{i}|>") for i in range(size)]
        types = [gguf.TokenType.CONTROL] * size
        merges = []
        for token, rank in sorted(ranks.items(), key=lambda item: item[1]):
            tokens[rank] = printable(token)
            types[rank] = gguf.TokenType.NORMAL
            parts = last_parts(ranks, token, rank)
            if len(parts) == 2:
                merges.append(" ".join(map(printable, parts)))
        w = self.writer
        w.add_tokenizer_model("gpt2")
        w.add_tokenizer_pre("kimi-k2")
        w.add_token_list(tokens)
        w.add_token_types(types)
        w.add_token_merges(merges)
        w.add_eos_token_id(self.config["eos_token_id"])
        w.add_bos_token_id(self.config["bos_token_id"])
        w.add_add_bos_token(False)

    def put(self, name, values):
        self.writer.add_tensor(name, np.ascontiguousarray(values, dtype=np.float32))

    def res_score(self, stem):
        """AttnRes: the norm's weight and the projection act as one vector."""
        return self.snapshot.flat(stem + "_norm.weight") * self.snapshot.flat(stem + "_proj.weight")

    def write_layer(self, layer):
        source, block = f"{MODEL}layers.{layer}.", f"blk.{layer}."
        fp32 = self.snapshot.fp32
        self.put(block + "attn_norm.weight", fp32(source + "input_layernorm.weight"))
        self.put(block + "ffn_norm.weight", fp32(source + "post_attention_layernorm.weight"))
        self.put(block + "attn_res_score.weight", self.res_score(source + "self_attention_res"))
        self.put(block + "ffn_res_score.weight", self.res_score(source + "mlp_res"))
        self.put(block + "attn_output.weight", fp32(source + "self_attn.o_proj.weight"))
        if layer in self.mla_layers:
            self.write_mla(source + "self_attn.", block)
        else:
            self.write_kda(source + "self_attn.", block)
        if layer < self.text["first_k_dense_replace"]:
            for name in ("gate", "up", "down"):
                self.put(block + f"ffn_{name}.weight", fp32(source + f"mlp.{name}_proj.weight"))
        else:
            self.write_moe(source + "block_sparse_moe.", block)

    def write_kda(self, source, block):
        fp32 = self.snapshot.fp32
        for x in "qkv":
            conv = fp32(source + f"{x}_conv1d.weight")
            shape = (1, conv.shape[0], 1, conv.shape[-1])
            self.put(block + f"ssm_conv1d_{x}.weight", conv.reshape(shape))
            self.put(block + f"attn_{x}.weight", fp32(source + f"{x}_proj.weight"))
        for name, ours in (("ssm_f_a", "f_a_proj"), ("ssm_f_b", "f_b_proj"), ("ssm_beta", "b_proj"),
                           ("ssm_g", "g_proj"), ("ssm_norm", "o_norm")):
            self.put(block + name + ".weight", fp32(source + ours + ".weight"))
        decay = self.snapshot.flat(source + "A_log")[:self.linear["num_heads"]]
        self.put(block + "ssm_a", -np.exp(decay))
        self.put(block + "ssm_dt.bias", self.snapshot.flat(source + "dt_bias"))

    def write_mla(self, source, block):
        fp32, c = self.snapshot.fp32, self.text
        for name, ours in (("attn_q_a_norm", "q_a_layernorm"), ("attn_kv_a_norm", "kv_a_layernorm"),
                           ("attn_q_a", "q_a_proj"), ("attn_q_b", "q_b_proj"),
                           ("attn_kv_a_mqa", "kv_a_proj_with_mqa"), ("attn_gate", "g_proj")):
            self.put(block + name + ".weight", fp32(source + ours + ".weight"))
        nope = c["qk_nope_head_dim"]
        shape = (c["num_attention_heads"], nope + c["v_head_dim"], c["kv_lora_rank"])
        kv_b = fp32(source + "kv_b_proj.weight").reshape(shape)
        self.put(block + "attn_k_b.weight", kv_b[:, :nope].transpose(0, 2, 1))
        self.put(block + "attn_v_b.weight", kv_b[:, nope:])

    def write_moe(self, source, block):
        fp32 = self.snapshot.fp32
        self.put(block + "ffn_gate_inp.weight", fp32(source + "gate.weight"))
        self.put(block + "exp_probs_b.bias", fp32(source + "gate.e_score_correction_bias"))
        for name, ours in (("down", "expert_down_proj"), ("up", "expert_up_proj"),
                           ("norm", "expert_norm")):
            self.put(block + f"ffn_routed_{name}.weight", fp32(source + f"routed_{ours}.weight"))
        for name in ("gate", "up", "down"):
            self.put(block + f"ffn_{name}_shexp.weight",
                     fp32(source + f"shared_experts.{name}_proj.weight"))
        for ours, name in (("w1", "gate"), ("w3", "up"), ("w2", "down")):
            self.write_experts(block + f"ffn_{name}_exps.weight",
                               [self.codes(f"{source}experts.{e}.{ours}.")
                                for e in range(self.text["num_experts"])])

    def codes(self, source):
        """The codes [rows, blocks, 32] and scales [rows, blocks] of one expert's matrix."""
        packed = self.snapshot.u8(source + "weight_packed")  # low nibble: even element
        codes = np.stack([packed & 15, packed >> 4], -1).reshape(packed.shape[0], -1, 32)
        return codes, self.snapshot.u8(source + "weight_scale")

    def write_experts(self, name, experts):
        codes, scales = (np.stack(parts) for parts in zip(*experts))
        shape = (*codes.shape[:2], -1)
        if self.experts == "fp32":
            values = np.ldexp(E2M1[codes], scales[..., None].astype(np.int32) - 127)
            self.put(name, values.reshape(shape))
            return
        # Blocks of a scale and 16 bytes, whose low nibbles are elements 0..15 and high 16..31.
        halves = codes[..., :16] | codes[..., 16:] << 4
        blocks = np.concatenate([scales[..., None], halves], -1).reshape(shape)
        self.writer.add_tensor(name, blocks, raw_dtype=gguf.GGMLQuantizationType.MXFP4)


def printable_bytes():
    """The GPT-2 spelling of a byte: itself where it prints, else a character from U+0100 on."""
    plain = [*range(33, 127), *range(161, 173), *range(174, 256)]
    rest = [b for b in range(256) if b not in plain]
    return {b: chr(b) for b in plain} | {b: chr(256 + n) for n, b in enumerate(rest)}


PRINTABLE = printable_bytes()


def printable(token):
    return "".join(PRINTABLE[b] for b in token)


def last_parts(ranks, token, rank):
    """The two parts whose merge makes `token`, by merging with lower ranks only."""
    parts = [bytes([b]) for b in token]
    while len(parts) > 2:
        joined = [(ranks.get(parts[i] + parts[i + 1], rank), i) for i in range(len(parts) - 1)]
        best, i = min(joined)
        if best >= rank:
            break
        parts[i:i + 2] = [parts[i] + parts[i + 1]]
    return parts


if __name__ == "__main__":
    if len(sys.argv) != 4 or sys.argv[3] not in ("mxfp4", "fp32"):
        sys.exit("usage: to_gguf.py MODEL_DIR OUT.gguf mxfp4|fp32")
    Converter(pathlib.Path(sys.argv[1]), sys.argv[2], sys.argv[3]).run()
