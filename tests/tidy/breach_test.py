#!/usr/bin/env python3
"""Gives tidy.py a tree with one breach of each kind and expects it to report all of them."""
import pathlib
import subprocess
import sys
import tempfile

BREACHES = {
    "src/kernels/a.h": "// Head.\n#pragma once\n#include \"model/b.h\"\n",
    "src/model/b.h": "// Head.\n#pragma once\n" + "//\n" * 499,
    "src/io/c.cpp": "#include <nlohmann/json.hpp>\n",
    "src/base/d.h": "int x;\n",
    "src/other/e.cpp": "int y;\n",
}
EXPECTED = ["kernels may not include model", "501 lines", "belongs to base/json",
            "does not begin with what it is for", "no #pragma once", "has no place in the arrows"]

with tempfile.TemporaryDirectory() as root:
    for name, text in BREACHES.items():
        path = pathlib.Path(root) / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    done = subprocess.run([sys.executable, sys.argv[1], root], capture_output=True, text=True)
missing = [e for e in EXPECTED if e not in done.stdout]
if done.returncode != 1 or missing:
    sys.exit(f"exit {done.returncode}, not reported: {missing}\n{done.stdout}")
