#!/usr/bin/env python3
"""The goldens made with qkv_norm_eps 1e-6 must not pass with 1e-5: other_eps_test.py GOLDEN_TEST MODEL"""
import json
import pathlib
import subprocess
import sys
import tempfile

program, model = sys.argv[1], pathlib.Path(sys.argv[2])
document = json.loads((model / "goldens.json").read_text(encoding="utf8"))
results = {}
with tempfile.TemporaryDirectory() as directory:
    path = pathlib.Path(directory) / "g.json"
    for eps in (1e-6, 1e-5):
        path.write_text(json.dumps({**document, "qkv_norm_eps": eps}), encoding="utf8")
        done = subprocess.run([program, model, path, model / "goldens.safetensors"],
                              capture_output=True, text=True)
        results[eps] = done.returncode, done.stdout.count("FAIL")
print(results)
if document["qkv_norm_eps"] != 1e-6 or results != {1e-6: (0, 0), 1e-5: (1, len(document["prompts"]))}:
    sys.exit("eps 1e-6 must pass and eps 1e-5 must fail for every prompt")
