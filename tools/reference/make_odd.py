#!/usr/bin/env python3
"""make_odd.py DIRECTORY [NAME...]: writes the odd checkpoints of odd_variants.py with their goldens, each
into DIRECTORY/NAME (tests/odd). Needs torch and numpy; tests need neither.

Goldens are k3ref's arithmetic in fp64 over the files on disk, stored as fp32, and chosen so that no two
correct implementations can differ: a prompt is drawn again until its rollouts have top-2 gaps above GAP,
its choices of experts (and of groups) margins above MARGIN, and an fp32 run differs by less than ERROR_MAX
(random models have rows that blow rounding up). The largest such difference is stored as "fp32_error";
"tolerance" is TOLERANCE_FACTOR times that.
"""
import json
import math
import pathlib
import sys

import numpy as np
import torch

import checkpoint_writer
import k3ref
import odd_variants

GAP = 0.02        # of the two best logits of every greedy step
MARGIN = 2e-6     # between scores whose order matters; equal scores are fine
ERROR_MAX = 1e-4  # of any value, largest values near 10
TOLERANCE_FACTOR = 4
TOLERANCE_MIN = 1e-5
ATTEMPTS = 400
# name, prompt ids, greedy ids, whether all tensors are kept. The long one crosses a tile and an attention
# block (64).
PROMPTS = [("long", 70, 5, True), ("short", 3, 12, True), ("one", 1, 16, False), ("middle", 21, 12, False)]
ABOUT = ("k3ref in fp64 over the files on disk, recurrent KDA, stored as fp32; greedy to the given count; every top-2 gap of a "
         f"rollout is above {GAP}. top5[j] belongs to the logits row that chose greedy[j] (j<4); prompt_top5[j] to the logits row "
         "after prompt token j (j<4). fp32_error: largest difference of an fp32 run from these values. tolerance: largest difference "
         "that golden_test allows. qkv_norm_eps: eps of q_a_layernorm and kv_a_layernorm, 1e-5 if absent.")
INT8 = ("every 2-D BF16 matrix but embed_tokens, *res_proj and block_sparse_moe.gate; q = clamp(rne(w/s), -127, 127), s = fp32 row amax / "
        "127 kept in fp32 (s = 1 for a zero row); dequantised w = q*s; a head tied to the embedding counts as a matrix of its own")


def gap(a):
    """Smallest difference of neighbours in the last axis, equal ones aside; a is sorted downwards."""
    d = a[..., :-1] - a[..., 1:]
    d = d[(d > 0) & d.isfinite()]
    return float(d.min()) if d.numel() else math.inf


def margin(trace, text, ordered):
    """Smallest distance of a choice in `trace` from another: of sets, or of ordered ids too."""
    k, keep, least = text.get("num_experts_per_token"), text.get("topk_group", 1), math.inf
    for name, values in trace.items():
        if name.startswith("biased."):
            top = values.sort(-1, descending=True).values
            least = min(least, gap(top[:, :k + 1] if ordered else top[:, k - 1:k + 1]))
        elif name.startswith("group_scores."):
            least = min(least, gap(values.sort(-1, descending=True).values[:, keep - 1:keep + 1]))
    return least


def joined(trace):
    return {k: torch.cat(v) for k, v in trace.items()}


def tensors_of(ref, trace, logits):
    """What goldens.safetensors holds of one prompt pass."""
    n = ref.c["num_hidden_layers"]
    moe = [L for L in range(n) if ref.is_moe(L)]
    out = {"hidden": torch.stack([trace[f"hidden.{L}"] for L in range(n)]),
           "attn_out": torch.stack([trace[f"attn_out.{L}"] for L in range(n)]), "logits": logits}
    if moe:
        out["router_ids"] = torch.stack([trace[f"router_ids.{L}"] for L in moe])
        out["router_weights"] = torch.stack([trace[f"router_weights.{L}"] for L in moe])
    out.update({k: v for k, v in trace.items() if k.startswith("attnres.")})
    for L, state in ref.S.items():
        out[f"kda_state.{L}"] = state
        out.update({f"conv_state.{L}.{c}": ref.conv[L, c] for c in "qkv"})
    out.update({f"mla_cache.{L}": latent for L, latent in ref.kv.items()})
    return out


def prompt_pass(ref, ids):
    ref.reset()
    ref.trace = {}
    logits = ref.forward(ids)
    trace, ref.trace = joined(ref.trace), None
    return trace, logits


def rollout(ref, ids, n):
    """Greedy ids, logits rows, smallest top-2 gap, and the trace of all passes."""
    ref.trace = {}
    out, rows, least = ref.greedy(ids, n)
    trace, ref.trace = joined(ref.trace), None
    return out, rows, least, trace


def top5(row):
    values, ids = row.topk(5)
    return [[int(i), round(float(v), 6)] for i, v in zip(ids, values)]


def worst(a, b):
    return max(float((a[k].double() - b[k].double()).abs().max()) for k in a)


def up_to_one_digit(x):
    unit = 10.0 ** math.floor(math.log10(x))
    return float(f"{math.ceil(x / unit) * unit:.0e}")


class Maker:
    """The goldens of one checkpoint on disk: doubles[spine] make them, singles[spine] tell their error."""

    def __init__(self, directory, variant):
        self.variant = variant
        config, t, dt = k3ref.load_checkpoint(directory)
        self.text = config.get("text_config", config)
        prefix = "language_model." if "text_config" in config else ""
        quantised = k3ref.int8_spine(t, dt, "k3i8")
        self.n_int8 = len(k3ref.int8_names(t, dt, "k3i8"))
        if config.get("tie_word_embeddings"):  # the head is a matrix of its own in the pack
            quantised[prefix + "lm_head.weight"] = k3ref.int8_rows(t[prefix + "model.embed_tokens.weight"], False)
            self.n_int8 += 1
        spines = {"bf16": t, "int8": quantised}

        def references(dtype):
            return {spine: k3ref.K3Ref(config, {k: v.to(dtype) for k, v in tensors.items()}, prefix, variant.qkv_norm_eps)
                    for spine, tensors in spines.items()}
        self.doubles, self.singles = references(torch.float64), references(torch.float32)

    def try_prompt(self, name, ids, n_greedy, whole):
        """(entry of goldens.json, tensors, trace, fp32 error) of a prompt, or None where rounding decides."""
        entry, error = {"name": name, "kind": "ids", "ids": ids}, 0.0
        for spine, ref in self.doubles.items():
            out, rows, least, trace = rollout(ref, ids, n_greedy)
            if least < GAP or margin(trace, self.text, whole and spine == "bf16") < MARGIN:
                return None
            again, single_rows, _ = self.singles[spine].greedy(ids, n_greedy)
            error = max(error, worst({"": torch.stack(rows)}, {"": torch.stack(single_rows)}))
            if again != out or error > ERROR_MAX:
                return None
            entry[spine] = {"greedy": out, "min_gap": round(least, 5), "top5": [top5(r) for r in rows[:4]]}
        trace, logits = prompt_pass(self.doubles["bf16"], ids)
        entry["prompt_top5"] = [top5(r) for r in logits[:4]]
        golden = tensors_of(self.doubles["bf16"], trace, logits)
        single = self.singles["bf16"]
        error = max(error, worst(golden, tensors_of(single, *prompt_pass(single, ids))))
        return None if error > ERROR_MAX else (entry, golden, trace, error)

    def draw_prompt(self, number, name, n_ids, n_greedy, whole):
        for attempt in range(ATTEMPTS):
            rng = np.random.Generator(np.random.PCG64([self.variant.seed, number, attempt]))
            ids = [int(i) for i in rng.integers(0, self.text["vocab_size"], n_ids)]
            if made := self.try_prompt(name, ids, n_greedy, whole):
                print(f"  {name}: attempt {attempt}, gaps {made[0]['bf16']['min_gap']} and {made[0]['int8']['min_gap']}, "
                      f"margin {margin(made[2], self.text, whole):.1e}, fp32 error {made[3]:.1e}")
                return made
        raise SystemExit(f"{self.variant.name}/{name}: no prompt is decided clearly in {ATTEMPTS} attempts")


def make(root, variant):
    directory = root / variant.name
    checkpoint_writer.write_checkpoint(directory, variant.config, variant.recipe, variant.seed, variant.n_shards)
    maker = Maker(directory, variant)
    prompts, tensors, error = [], {}, 0.0
    for number, (name, n_ids, n_greedy, whole) in enumerate(PROMPTS):
        entry, golden, trace, its_error = maker.draw_prompt(number, name, n_ids, n_greedy, whole)
        error = max(error, its_error)
        prompts.append(entry)
        if whole:
            tensors.update({f"{name}.{k}": v for k, v in golden.items()})
        if name == "long" and variant.check:
            variant.check(trace, maker.text)
    doc = {"about": ABOUT, "int8_policies": {"int8": INT8}, "int8_tensors": maker.n_int8}
    if variant.qkv_norm_eps is not None:
        doc["qkv_norm_eps"] = variant.qkv_norm_eps
    doc["fp32_error"] = float(f"{error:.2e}")
    doc["tolerance"] = max(TOLERANCE_MIN, up_to_one_digit(TOLERANCE_FACTOR * error))
    write_goldens(directory, doc, prompts, tensors)
    size = sum(f.stat().st_size for f in directory.iterdir())
    largest = max(float(v.abs().max()) for v in tensors.values() if v.dtype != torch.int64)
    print(f"{variant.name}: {size} bytes, largest value {largest:.3g}, tolerance {doc['tolerance']}")


def write_goldens(directory, doc, prompts, tensors):
    """One line a prompt, so that a changed golden is a short difference."""
    lines = [f"{json.dumps(k)}: {json.dumps(v)}" for k, v in doc.items()]
    rows = ",\n".join(json.dumps(p, separators=(",", ":")) for p in prompts)
    lines.append('"prompts": [\n' + rows + "\n]")
    (directory / "goldens.json").write_text("{\n" + ",\n".join(lines) + "\n}\n")
    stored = {}
    for name, v in sorted(tensors.items()):
        integral = v.dtype == torch.int64
        data = v.numpy().astype("<i8" if integral else "<f4").tobytes()
        stored[name] = ("I64" if integral else "F32", v.shape, data)
    checkpoint_writer.write_safetensors(directory / "goldens.safetensors", stored)


if __name__ == "__main__":
    torch.set_num_threads(1)
    for chosen in odd_variants.VARIANTS:
        if len(sys.argv) < 3 or chosen.name in sys.argv[2:]:
            make(pathlib.Path(sys.argv[1]), chosen)
