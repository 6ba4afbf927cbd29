"""The odd checkpoints of tests/odd: for each, its config, the recipe of its weights, and what its goldens
must have met on the way (checks of the reference's own numbers, so that no variant is odd in name only).
"""
import numpy as np

from checkpoint_writer import Recipe


def linear_attn(n_layers, full, heads, head_dim, taps=4, **more):
    """full: 1-based MLA layers."""
    return {"full_attn_layers": full, "kda_layers": [i for i in range(1, n_layers + 1) if i not in full],
            "num_heads": heads, "head_dim": head_dim, "short_conv_kernel_size": taps, **more}


def k3(n_layers, hidden, vocab, **text):
    """A K3 config: nested, with K3's own gate, activation and attention; `text` adds and replaces keys."""
    base = {"model_type": "kimi_linear", "hidden_size": hidden, "num_hidden_layers": n_layers,
            "vocab_size": vocab, "max_position_embeddings": 4096, "rms_norm_eps": 1e-5, "hidden_act": "situ",
            "activation_situ_beta": 4.0, "activation_situ_linear_beta": 25.0, "intermediate_size": 88,
            "first_k_dense_replace": 1, "moe_layer_freq": 1, "num_attention_heads": 2, "kv_lora_rank": 24,
            "q_lora_rank": 24, "qk_nope_head_dim": 12, "qk_rope_head_dim": 4, "v_head_dim": 10,
            "mla_use_nope": True, "mla_use_output_gate": True, "attn_res_block_size": 3, "num_experts": 8,
            "num_experts_per_token": 2, "num_shared_experts": 2, "moe_intermediate_size": 32,
            "routed_expert_hidden_size": 32, "latent_moe_use_norm": True, "moe_router_activation_func": "sigmoid",
            "moe_renormalize": True, "routed_scaling_factor": 1.0, "num_expert_group": 1, "topk_group": 1}
    base.update(text)
    base["num_key_value_heads"] = base["num_attention_heads"]
    return {"model_type": "kimi_k3", "eos_token_id": 2, "tie_word_embeddings": False,
            "text_config": {k: v for k, v in base.items() if v is not None}}


def flat(config):
    """The same model without text_config, as Kimi-Linear writes it: names have no prefix."""
    return {**{k: v for k, v in config.items() if k != "text_config"}, **config["text_config"]}


K3_GATE = {"gate_lower_bound": -5.0, "use_full_rank_gate": True}


class Variant:
    def __init__(self, name, config, recipe, seed, check=None, qkv_norm_eps=None, n_shards=2):
        self.name, self.config, self.recipe, self.seed = name, config, recipe, seed
        self.check, self.qkv_norm_eps, self.n_shards = check, qkv_norm_eps, n_shards


# --- checks: called with the trace of the long prompt, {name: tensor} ---------------------------------
def bias_changes_most_choices(trace, text):
    for name, scores in trace.items():
        if name.startswith("scores."):
            layer = name.split(".")[1]
            plain = scores.topk(text["num_experts_per_token"], -1).indices.sort(-1).values
            chosen = trace[f"router_ids.{layer}"].sort(-1).values
            changed = (plain != chosen).any(-1).double().mean()
            assert changed > 0.9, f"the bias changes the choice of {changed:.2f} of the rows of layer {layer}"


def ties_decide(trace, text):
    """Rows whose last chosen and first refused expert score exactly alike, the lower id chosen."""
    rows = 0
    for name, biased in trace.items():
        if name.startswith("biased."):
            k = text["num_experts_per_token"]
            ids = np.argsort(-biased.numpy(), axis=-1, kind="stable")
            values = np.take_along_axis(biased.numpy(), ids, -1)
            tied = values[:, k - 1] == values[:, k]
            assert (ids[tied, k - 1] < ids[tied, k]).all()
            rows += int(tied.sum())
    assert rows >= 20, f"only {rows} rows are decided by a tie"


def glu_spans(trace, text):
    g, u = trace["glu_in"].abs().T
    assert 900 < g.max() < 5000 and 900 < u.max() < 5000, (g.max(), u.max())
    for x in (g, u):
        assert (x < 1e-3).double().mean() > 0.01 and (x > 100).double().mean() > 0.03


def groups_decide(trace, text):
    """Group masking refuses experts that the plain choice would take."""
    for name, scores in trace.items():
        if name.startswith("scores."):
            layer = name.split(".")[1]
            masked = trace[f"biased.{layer}"].isinf()
            best = scores.topk(text["num_experts_per_token"], -1).indices
            assert masked.gather(1, best).any(-1).double().mean() > 0.3


def all_of(*checks):
    return lambda trace, text: [check(trace, text) for check in checks]


# --- weights ------------------------------------------------------------------------------------------
def twin_experts(name, a):
    """Expert e + half routes exactly as expert e, for three experts in four."""
    if "block_sparse_moe.gate" in name:
        half = len(a) // 2
        a[half:half + half * 3 // 4] = a[:half * 3 // 4]
    return a


def row_spread(low, high):
    """A factor a row, log-uniform from 10^low to 10^high."""
    return lambda rng, shape: 10 ** rng.uniform(low, high, (shape[0], 1))


def far_scales(name):
    """Bytes that the factor of down_proj (FAR_DOWN) brings back to ordinary sizes; 0 and 224 occur."""
    layer = int(name.split(".layers.")[1].split(".")[0])
    if ".w2." in name:
        return (112, 123)
    return (0, 4) if layer % 2 == 0 else (217, 224)


FAR_DOWN = [(r"layers\.[0246]\..*routed_expert_down_proj", 2.0 ** 120),
            (r"layers\.[1357]\..*routed_expert_down_proj", 2.0 ** -100)]

KIMI_LINEAR = {
    "model_type": "kimi_linear", "eos_token_id": 2, "hidden_size": 40, "num_hidden_layers": 5, "vocab_size": 131,
    "intermediate_size": 90, "rms_norm_eps": 1e-5, "hidden_act": "silu", "num_attention_heads": 4,
    "num_key_value_heads": 4, "q_lora_rank": None, "kv_lora_rank": 20, "qk_nope_head_dim": 12,
    "qk_rope_head_dim": 6, "v_head_dim": 12, "mla_use_nope": True, "num_experts": 6, "num_experts_per_token": 2,
    "num_shared_experts": 1, "moe_intermediate_size": 22, "first_k_dense_replace": 1, "moe_layer_freq": 1,
    "moe_router_activation_func": "sigmoid", "moe_renormalize": True, "routed_scaling_factor": 2.446,
    "use_grouped_topk": True, "num_expert_group": 1, "topk_group": 1, "tie_word_embeddings": False,
    "model_max_length": 4096, "linear_attn_config": linear_attn(5, [4, 5], heads=3, head_dim=16)}

VARIANTS = [
    # Kimi-Linear: flat config, no prefix, softplus gate, low-rank output gate, bf16 experts at full width.
    Variant("kimi-linear", KIMI_LINEAR,
            Recipe(a_log_shape=(1, 1, 3, 1), bf16_vectors=True, packed=False), seed=101),
    # Heads unlike head_dim, A_log stored longer than the heads and widely spread; MLA on AttnRes boundaries
    # (layer 3, and layer 6, which is the last).
    Variant("wide-heads",
            k3(7, 24, 149, num_experts=6, num_attention_heads=3, num_experts_per_token=3,
               linear_attn_config=linear_attn(7, [4, 7], heads=5, head_dim=16, **K3_GATE)),
            Recipe(a_log=lambda n: np.linspace(-4, 2.5, n), a_log_shape=(128,), dt_bias=6.0), seed=202),
    # Latents so small that the eps of their norms shows; head_dim no multiple of 16; one AttnRes block that
    # never ends; a latent without norm; no shared experts; two taps.
    Variant("small-latents",
            k3(5, 48, 97, q_lora_rank=8, kv_lora_rank=8, attn_res_block_size=12, num_shared_experts=0,
               latent_moe_use_norm=None, num_attention_heads=3,
               linear_attn_config=linear_attn(5, [2, 4, 5], heads=2, head_dim=24, taps=2, **K3_GATE)),
            Recipe(gains=[(r"(q_a_proj|kv_a_proj_with_mqa)", 0.01)]), seed=303, qkv_norm_eps=1e-6),
    # MXFP4 scale bytes from 0 to 224; every expert chosen; no dense layer; the last AttnRes block (of three)
    # is incomplete; one KDA head.
    Variant("far-scales",
            k3(8, 40, 113, num_shared_experts=1, num_experts=3, num_experts_per_token=3, routed_expert_hidden_size=64,
               first_k_dense_replace=0,
               linear_attn_config=linear_attn(8, [4, 8], heads=1, head_dim=32, **K3_GATE)),
            Recipe(gains=FAR_DOWN, scale_bytes=far_scales), seed=404),
    # 896 experts, top-16, a bias that changes most choices, twins that score alike; one MoE layer of three; flat.
    Variant("many-experts",
            flat(k3(3, 40, 101, num_experts=896, num_experts_per_token=16, moe_layer_freq=2, attn_res_block_size=2,
               linear_attn_config=linear_attn(3, [2], heads=3, head_dim=8, **K3_GATE))),
            Recipe(router_bias=0.4, change=twin_experts), seed=505,
            check=all_of(bias_changes_most_choices, ties_decide)),
    # |gate| and |up| from 1e-4 to above 1000 in dense, shared and routed MLPs; weights not renormalised.
    Variant("steep-situ",
            k3(3, 48, 121, attn_res_block_size=2, moe_renormalize=False, routed_scaling_factor=0.7,
               num_shared_experts=1,
               linear_attn_config=linear_attn(3, [3], heads=3, head_dim=16, **K3_GATE)),
            Recipe(gains=[(r"(mlp|shared_experts)\.(gate|up)_proj", row_spread(-4, 2.8)),
                          (r"(mlp|shared_experts)\.down_proj", 0.02)],
                   scale_bytes=lambda name: (117, 119) if ".w2." in name else (108, 126)),
            seed=606, check=glu_spans),
    # A softmax router that chooses among the two best of four groups; K3 without AttnRes and without a latent;
    # `up` not squashed; two dense layers first; head tied to the embedding; low-rank gate with a bound.
    Variant("grouped-softmax",
            k3(5, 32, 139, num_experts=12, num_experts_per_token=4, num_expert_group=4, topk_group=2,
               moe_router_activation_func="softmax", routed_scaling_factor=1.5, attn_res_block_size=None,
               routed_expert_hidden_size=None, latent_moe_use_norm=None, activation_situ_linear_beta=None,
               activation_situ_beta=1.5, first_k_dense_replace=2, num_shared_experts=1,
               mla_use_output_gate=False,
               linear_attn_config=linear_attn(5, [1, 4], heads=3, head_dim=12, taps=3, gate_lower_bound=-2.5)),
            Recipe(router_bias=0.01, gains=[("embed_tokens", 0.4)]), seed=707, check=groups_decide),
    # No experts at all and no KDA layer; no KDA state to keep.
    Variant("dense-mla",
            k3(2, 24, 61, num_experts=None, num_experts_per_token=None, attn_res_block_size=1,
               linear_attn_config=linear_attn(2, [1, 2], heads=1, head_dim=8)),
            Recipe(), seed=808, n_shards=1),
    # No experts and no MLA layer; no pages to keep; 17 taps, more than the rows of most passes.
    Variant("dense-kda",
            k3(2, 24, 67, num_experts=None, num_experts_per_token=None, attn_res_block_size=None,
               linear_attn_config=linear_attn(2, [], heads=7, head_dim=8, taps=17, gate_lower_bound=-5.0)),
            Recipe(), seed=909, n_shards=1),
]
VARIANTS[6].config["tie_word_embeddings"] = True
