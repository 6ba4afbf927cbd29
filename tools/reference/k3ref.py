"""Independent fp32 reference for Kimi K3 (and the Kimi-Linear base), written for
this project: sluice's arithmetic is checked against it. Reads a checkpoint directory (config.json + safetensors shards),
dequantises everything to fp32 and runs the recurrent form token by token.

Only needs torch and numpy; the safetensors reader is here.
"""
import json, os, struct
import numpy as np
import torch
import torch.nn.functional as F

E2M1 = torch.tensor([0., .5, 1., 1.5, 2., 3., 4., 6., -0., -.5, -1., -1.5, -2., -3., -4., -6.])


def read_safetensors(path):
    """name -> (dtype string, torch tensor) of one file, in file order."""
    raw = open(path, "rb").read()
    n = struct.unpack("<Q", raw[:8])[0]
    head = json.loads(raw[8:8 + n])
    head.pop("__metadata__", None)
    out = {}
    for k, m in sorted(head.items(), key=lambda kv: kv[1]["data_offsets"][0]):
        b, e = m["data_offsets"]
        buf = raw[8 + n + b:8 + n + e]
        if m["dtype"] == "BF16":
            a = np.frombuffer(buf, "<u2").astype(np.uint32) << 16
            t = torch.from_numpy(a.view(np.float32).copy())
        else:
            a = np.frombuffer(buf, {"F32": "<f4", "U8": "u1", "F16": "<f2", "I8": "i1", "I64": "<i8"}[m["dtype"]])
            t = torch.from_numpy(a.copy())
        out[k] = (m["dtype"], t.reshape(m["shape"]))
    return out


def mxfp4_dequant(packed, scale, group=32):
    """uint8 [R, C/2] + E8M0 uint8 [R, C/32] -> fp32 [R, C]; low nibble first."""
    r, h = packed.shape
    v = torch.stack([E2M1[(packed & 15).long()], E2M1[(packed >> 4).long()]], -1).reshape(r, h * 2)
    assert int(scale.max()) < 255, "scale byte 255 is NaN"
    s = torch.from_numpy(np.ldexp(np.float32(1), scale.int().numpy() - 127))   # exact, 2^-127 (subnormal) at byte 0
    return (v.reshape(r, -1, group) * s.unsqueeze(-1)).reshape(r, h * 2)


def load_checkpoint(d):
    cfg = json.load(open(os.path.join(d, "config.json")))
    idx = json.load(open(os.path.join(d, "model.safetensors.index.json")))
    t, dt = {}, {}
    for f in sorted(set(idx["weight_map"].values())):
        for k, (dtype, v) in read_safetensors(os.path.join(d, f)).items():
            t[k], dt[k] = v, dtype
    assert set(t) == set(idx["weight_map"])
    for k in [k for k in t if k.endswith(".weight_packed")]:
        b = k[: -len("_packed")]
        t[b] = mxfp4_dequant(t.pop(k), t.pop(b + "_scale"))
        dt[b] = "MXFP4"
    return cfg, t, dt


# int8 spine -----------------------------------------------------------------
def int8_rows(w, f16_scale):
    a = w.abs().amax(1, keepdim=True)
    s = torch.where(a > 0, a / 127, torch.ones_like(a))
    q = torch.clamp(torch.round(w / s), -127, 127)
    return q * (s.half().float() if f16_scale else s)


def int8_names(t, dt, policy):
    """policy 'k3i8': every 2-D BF16 matrix but embeddings and the router.
    policy 'deltafin': Deltafin's selection (embeddings and router included)."""
    bad = ["conv1d", "norm", "A_log", "dt_bias", "res_proj", "e_score_correction_bias", ".experts.", "vision", "mm_projector"]
    if policy == "k3i8":
        bad += ["embed_tokens", "block_sparse_moe.gate.weight"]
    return [k for k in t if dt[k] == "BF16" and t[k].dim() == 2 and not any(b in k for b in bad)]


def int8_spine(t, dt, policy):
    o = dict(t)
    for k in int8_names(t, dt, policy):
        o[k] = int8_rows(t[k], policy == "deltafin")
    return o


# model ----------------------------------------------------------------------
def rms(x, w, eps):
    return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + eps) * w


def situ_mul(g, u, b, lb):
    return b * torch.tanh(g / b) * torch.sigmoid(g) * (lb * torch.tanh(u / lb) if lb else u)


def top_ids(v, k):
    """Ids of the k largest of each row, larger first; equal values in rising id."""
    return torch.sort(v, dim=-1, descending=True, stable=True).indices[..., :k]


class K3Ref:
    """Arithmetic runs in the dtype of the tensors `t` (fp32, or fp64 after a cast). qkv_norm_eps: eps of
    q_a_layernorm and kv_a_layernorm, rms_norm_eps unless given."""

    def __init__(self, cfg, t, prefix="language_model.", qkv_norm_eps=None):
        self.c = c = cfg.get("text_config", cfg)
        self.t, self.pre = t, prefix
        la = c["linear_attn_config"]
        self.kda_layers = {i - 1 for i in la["kda_layers"]}
        self.H, self.D, self.K = la["num_heads"], la["head_dim"], la["short_conv_kernel_size"]
        self.lb, self.full = la.get("gate_lower_bound"), la.get("use_full_rank_gate", False)
        self.eps, self.bs = c["rms_norm_eps"], c.get("attn_res_block_size")
        self.qkv_eps = self.eps if qkv_norm_eps is None else qkv_norm_eps
        self.trace = None
        self.reset()

    def reset(self):
        self.S, self.conv, self.kv = {}, {}, {}

    def w(self, n):
        return self.t[self.pre + n]

    def rec(self, key, v):
        if self.trace is not None:
            self.trace.setdefault(key, []).append(v.clone())

    def act(self, g, u):
        self.rec("glu_in", torch.stack([g.flatten(), u.flatten()], 1))
        if self.c["hidden_act"] == "situ":
            return situ_mul(g, u, self.c["activation_situ_beta"], self.c.get("activation_situ_linear_beta"))
        return F.silu(g) * u

    def mlp(self, x, p):
        return self.act(x @ self.w(p + "gate_proj.weight").T, x @ self.w(p + "up_proj.weight").T) @ self.w(p + "down_proj.weight").T

    def short_conv(self, L, n, x):
        w = self.w(f"model.layers.{L}.self_attn.{n}_conv1d.weight").reshape(-1, self.K)     # tap K-1 is the current token
        past = self.conv.get((L, n))
        if past is None:
            past = x.new_zeros(self.K - 1, x.shape[1])
        seq = torch.cat([past, x], 0)
        self.conv[L, n] = seq[-(self.K - 1):]
        return F.silu(sum(seq[j:j + x.shape[0]] * w[:, j] for j in range(self.K)))

    def kda(self, L, x):
        p, T, H, D = f"model.layers.{L}.self_attn.", x.shape[0], self.H, self.D
        q, k, v = (self.short_conv(L, n, x @ self.w(f"{p}{n}_proj.weight").T).view(T, H, D) for n in "qkv")
        q = q * torch.rsqrt(q.pow(2).sum(-1, keepdim=True) + 1e-6) * D ** -0.5
        k = k * torch.rsqrt(k.pow(2).sum(-1, keepdim=True) + 1e-6)
        z = (x @ self.w(p + "f_a_proj.weight").T @ self.w(p + "f_b_proj.weight").T + self.w(p + "dt_bias").reshape(-1)).view(T, H, D)
        a = self.w(p + "A_log").reshape(-1)[:H].exp().view(1, H, 1)      # K3 pads A_log to head_dim; entry h is head h
        g = self.lb * torch.sigmoid(a * z) if self.lb is not None else -a * F.softplus(z)
        beta = torch.sigmoid(x @ self.w(p + "b_proj.weight").T)
        S = self.S.get(L)
        if S is None:
            S = x.new_zeros(H, D, D)                                     # [head, key, value]
        o = []
        for t in range(T):
            S = S * g[t].exp().unsqueeze(-1)
            u = beta[t].unsqueeze(-1) * (v[t] - torch.einsum("hkv,hk->hv", S, k[t]))
            S = S + k[t].unsqueeze(-1) * u.unsqueeze(1)
            o.append(torch.einsum("hkv,hk->hv", S, q[t]))
        self.S[L] = S
        o = rms(torch.stack(o), self.w(p + "o_norm.weight"), self.eps)
        gate = x @ self.w(p + "g_proj.weight").T if self.full else x @ self.w(p + "g_a_proj.weight").T @ self.w(p + "g_b_proj.weight").T
        return (o.reshape(T, H * D) * torch.sigmoid(gate)) @ self.w(p + "o_proj.weight").T

    def mla(self, L, x):
        p, T, c = f"model.layers.{L}.self_attn.", x.shape[0], self.c
        nh, dn, dr, dv, r = c["num_attention_heads"], c["qk_nope_head_dim"], c["qk_rope_head_dim"], c["v_head_dim"], c["kv_lora_rank"]
        if c.get("q_lora_rank"):
            q = rms(x @ self.w(p + "q_a_proj.weight").T, self.w(p + "q_a_layernorm.weight"), self.qkv_eps) @ self.w(p + "q_b_proj.weight").T
        else:
            q = x @ self.w(p + "q_proj.weight").T
        q = q.view(T, nh, dn + dr)
        a = x @ self.w(p + "kv_a_proj_with_mqa.weight").T
        lat = torch.cat([rms(a[:, :r], self.w(p + "kv_a_layernorm.weight"), self.qkv_eps), a[:, r:]], 1)   # no rotary: NoPE
        if L in self.kv:
            lat = torch.cat([self.kv[L], lat], 0)
        self.kv[L] = lat
        S = lat.shape[0]
        kv = (lat[:, :r] @ self.w(p + "kv_b_proj.weight").T).view(S, nh, dn + dv)
        k = torch.cat([kv[..., :dn], lat[:, None, r:].expand(S, nh, dr)], -1)
        s = torch.einsum("thd,shd->hts", q, k) * (dn + dr) ** -0.5
        m = torch.arange(S).view(1, S) > torch.arange(S - T, S).view(T, 1)
        o = torch.einsum("hts,shd->thd", s.masked_fill(m, -float("inf")).softmax(-1), kv[..., dn:]).reshape(T, nh * dv)
        if c.get("mla_use_output_gate"):
            o = o * torch.sigmoid(x @ self.w(p + "g_proj.weight").T)
        return o @ self.w(p + "o_proj.weight").T

    def choose(self, L, biased):
        """Ids of the chosen experts; with more groups than topk_group, of the best groups alone (spec 4.6)."""
        c = self.c
        G, keep = c.get("num_expert_group") or 1, c.get("topk_group") or 1
        if G > keep:
            grouped = biased.view(len(biased), G, -1)
            score = grouped.topk(2, -1).values.sum(-1)
            self.rec(f"group_scores.{L}", score)
            out = torch.ones_like(score, dtype=torch.bool).scatter(1, top_ids(score, keep), False)
            biased = grouped.masked_fill(out.unsqueeze(-1), -float("inf")).flatten(1)
        self.rec(f"biased.{L}", biased)
        return top_ids(biased, c["num_experts_per_token"])

    def moe(self, L, x):
        p, c = f"model.layers.{L}.block_sparse_moe.", self.c
        # Every expert's dot in the same order (a matrix product promises none): equal rows score equally.
        sc = (x.unsqueeze(1) * self.w(p + "gate.weight")).sum(-1)
        sc = sc.softmax(-1) if c.get("moe_router_activation_func") == "softmax" else torch.sigmoid(sc)
        self.rec(f"scores.{L}", sc)
        ids = self.choose(L, sc + self.w(p + "gate.e_score_correction_bias"))
        wt = sc.gather(1, ids)
        if c.get("moe_renormalize", True):
            wt = wt / (wt.sum(-1, keepdim=True) + 1e-20)
        wt = wt * c["routed_scaling_factor"]
        self.rec(f"router_ids.{L}", ids)
        self.rec(f"router_weights.{L}", wt)
        lat = c.get("routed_expert_hidden_size")
        xi = x @ self.w(p + "routed_expert_down_proj.weight").T if lat else x
        y = torch.zeros_like(xi)
        for e in ids.unique().tolist():
            tok, slot = (ids == e).nonzero(as_tuple=True)
            q, xe = f"{p}experts.{e}.", xi[tok]
            h = self.act(xe @ self.w(q + "w1.weight").T, xe @ self.w(q + "w3.weight").T) @ self.w(q + "w2.weight").T
            y.index_add_(0, tok, h * wt[tok, slot].unsqueeze(1))
        if lat:
            if c.get("latent_moe_use_norm"):
                y = rms(y, self.w(p + "routed_expert_norm.weight"), self.eps)
            y = y @ self.w(p + "routed_expert_up_proj.weight").T
        if c.get("num_shared_experts"):
            y = y + self.mlp(x, p + "shared_experts.")
        return y

    def mix(self, name, ps, blocks, key):
        v = torch.stack(blocks + [ps], 1)
        k = v * torch.rsqrt(v.pow(2).mean(-1, keepdim=True) + self.eps)
        pr = (k * (self.w(name + "_norm.weight") * self.w(name + "_proj.weight").reshape(-1))).sum(-1).softmax(-1)
        self.rec("attnres." + key, pr)
        return (pr.unsqueeze(1) @ v).squeeze(1)

    def is_moe(self, L):
        c = self.c
        return bool(c.get("num_experts")) and L >= c.get("first_k_dense_replace", 0) and L % c.get("moe_layer_freq", 1) == 0

    @torch.no_grad()
    def forward(self, ids, last_only=False):
        x, blocks = self.w("model.embed_tokens.weight")[torch.as_tensor(ids)], []
        for L in range(self.c["num_hidden_layers"]):
            p = f"model.layers.{L}."
            ps = x
            if self.bs:
                if blocks:
                    x = self.mix(p + "self_attention_res", ps, blocks, f"{L}.attn")
                if L % self.bs == 0:
                    blocks = blocks + [ps]
                    ps = None
            h = rms(x, self.w(p + "input_layernorm.weight"), self.eps)
            a = self.kda(L, h) if L in self.kda_layers else self.mla(L, h)
            self.rec(f"attn_out.{L}", a)
            ps = a if ps is None else ps + a
            x = self.mix(p + "mlp_res", ps, blocks, f"{L}.mlp") if self.bs else ps
            h = rms(x, self.w(p + "post_attention_layernorm.weight"), self.eps)
            x = ps + (self.moe(L, h) if self.is_moe(L) else self.mlp(h, p + "mlp."))
            self.rec(f"hidden.{L}", x)
        if self.bs:
            x = self.mix("model.output_attn_res", x, blocks, "output")
        x = rms(x, self.w("model.norm.weight"), self.eps)
        if last_only:
            x = x[-1:]
        tied = self.pre + "lm_head.weight" not in self.t
        return x @ self.w("model.embed_tokens.weight" if tied else "lm_head.weight").T

    def greedy(self, ids, n, stop=()):
        """Prefill in one call, then one token at a time. Returns ids, logits rows, smallest top-2 gap."""
        self.reset()
        lg = self.forward(ids, True)[0]
        out, rows, gap = [], [lg], 1e9
        while True:
            top = lg.topk(2)
            gap = min(gap, float(top.values[0] - top.values[1]))
            out.append(int(top.indices[0]))
            if len(out) >= n or out[-1] in stop:
                return out, rows, gap
            lg = self.forward([out[-1]], True)[0]
            rows.append(lg)
