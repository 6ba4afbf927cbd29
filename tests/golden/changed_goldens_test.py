#!/usr/bin/env python3
"""Changes goldens one kind at a time and expects golden_test to fail on each: changed_goldens_test.py
GOLDEN_TEST MODEL"""
import json
import pathlib
import struct
import subprocess
import sys
import tempfile

program, model = sys.argv[1], pathlib.Path(sys.argv[2])
document = json.loads((model / "goldens.json").read_text(encoding="utf8"))
tensors = (model / "goldens.safetensors").read_bytes()
keep = [p for p in document["prompts"] if p["name"] in ("raw_planet", "chat_italy")]
header_bytes = struct.unpack("<Q", tensors[:8])[0]
header = json.loads(tensors[8:8 + header_bytes])


def changed_prompt(change):
    prompts = json.loads(json.dumps(keep))
    change(prompts)
    return json.dumps({"prompts": prompts}), tensors


def changed_tensor(name):
    """The last value of one tensor, changed."""
    end = 8 + header_bytes + header[name]["data_offsets"][1]
    if header[name]["dtype"] == "I64":
        value = struct.pack("<q", struct.unpack("<q", tensors[end - 8:end])[0] ^ 1)
    else:
        value = struct.pack("<f", struct.unpack("<f", tensors[end - 4:end])[0] + 0.01)
    return json.dumps({"prompts": keep}), tensors[:end - len(value)] + value + tensors[end:]


def bump(pairs):
    pairs[0][1] += 0.01


cases = {
    "ids": changed_prompt(lambda p: p[0]["ids"].__setitem__(0, 5)),
    "rendered": changed_prompt(lambda p: p[1].__setitem__("rendered", "x")),
    "segments": changed_prompt(lambda p: p[1]["segments"][0].__setitem__(1, False)),
    "greedy": changed_prompt(lambda p: p[0]["bf16"]["greedy"].__setitem__(7, 5)),
    "text": changed_prompt(lambda p: p[0]["bf16"].__setitem__("text", "x")),
    "top5": changed_prompt(lambda p: bump(p[0]["bf16"]["top5"][3])),
    "prompt_top5": changed_prompt(lambda p: bump(p[1]["prompt_top5"][2])),
}
for tensor in header:
    if tensor.startswith("raw_planet.") or tensor == "chat_italy.last_logits":
        cases[tensor] = changed_tensor(tensor)

unseen = []
with tempfile.TemporaryDirectory() as directory:
    root = pathlib.Path(directory)
    for name, (text, blob) in cases.items():
        (root / "g.json").write_text(text, encoding="utf8")
        (root / "g.safetensors").write_bytes(blob)
        done = subprocess.run([program, model, root / "g.json", root / "g.safetensors"],
                              capture_output=True, text=True)
        findings = [l for l in done.stdout.splitlines()
                    if l.startswith("    ") or "FAIL" in l]
        if done.returncode != 1 or not findings:
            unseen.append(name)
if unseen:
    sys.exit(f"golden_test did not report: {unseen}")
print(f"{len(cases)} changes, all reported")
