#!/usr/bin/env python3
"""Checks the house rules that a machine can check, over src/, tests/, bench/ and tools/.

  tidy.py ROOT            file sizes, include arrows, owners of third-party headers, file heads
  tidy.py ROOT --headers  CXX  each header of src/ compiles alone

Prints one line a finding; exit status 1 when there is one.
"""
import concurrent.futures
import os
import pathlib
import re
import subprocess
import sys

LINES_MAX = 500
SOURCES = {".h", ".cpp", ".py", ".cmake"}

# docs/MAP.md "Arrows": what each folder of src/ may include besides itself.
ARROWS = {
    "base": [],
    "io": ["base"],
    "format": ["io", "base"],
    "kernels": ["base"],
    "store": ["format", "io", "base"],
    "model": ["store", "format", "kernels", "base"],
    "cuda": ["model", "store", "format", "kernels", "base"],
    "text": ["base"],
    "draft": ["model", "text", "format", "kernels", "base"],
    "engine": ["draft", "model", "cuda", "store", "text", "format", "kernels", "io", "base"],
    "fetch": ["store", "format", "io", "base"],
    "server": ["engine", "text", "base"],
    "app": None,  # all
}

# Headers that only a compiler for one processor can read.
PROCESSOR_OF = {
    "kernels/avx2_lanes.h": "x86_64",
    "kernels/avx512_lanes.h": "x86_64",
    "kernels/neon_lanes.h": "aarch64",
}

# Third-party headers and the one file (stem) of src/ that owns each.
OWNERS = {
    "nlohmann/": "base/json",
    "openssl/": "base/sha256",
    "CLI/": "app/options_parser",
    "boost/": "server/http_server",
    "xxhash.h": "base/xxh3",
    "histedit.h": "app/line_editor",
}


def line_findings(root, path):
    lines = path.read_text(encoding="utf8").splitlines()
    if len(lines) > LINES_MAX:
        yield f"{path.relative_to(root)}: {len(lines)} lines, more than {LINES_MAX}"
    if path.suffix == ".h" and not (lines and lines[0].startswith("//")):
        yield f"{path.relative_to(root)}: does not begin with what it is for"
    if path.suffix == ".h" and "#pragma once" not in lines:
        yield f"{path.relative_to(root)}: no #pragma once"


def include_findings(root, path):
    folder = path.relative_to(root / "src").parts[0]
    stem = path.relative_to(root / "src").with_suffix("").as_posix()
    if folder not in ARROWS:
        yield f"{path.relative_to(root)}: folder {folder} has no place in the arrows"
        return
    allowed = ARROWS[folder]
    for number, line in enumerate(path.read_text(encoding="utf8").splitlines(), 1):
        where = f"{path.relative_to(root)}:{number}"
        if own := re.match(r'\s*#\s*include\s+"([^"/]+)/', line):
            target = own.group(1)
            if allowed is not None and target != folder and target not in allowed:
                yield f"{where}: {folder} may not include {target}"
        elif third := re.match(r"\s*#\s*include\s+<([^>]+)>", line):
            for prefix, owner in OWNERS.items():
                if third.group(1).startswith(prefix) and stem != owner:
                    yield f"{where}: <{third.group(1)}> belongs to {owner}"


def compile_header(root, compiler, header):
    """None, or what is wrong with a header that does not compile alone."""
    include = f'#include "{header.relative_to(root / "src").as_posix()}"\n'
    done = subprocess.run([compiler, "-std=c++20", "-fsyntax-only", "-I", root / "src", "-x", "c++", "-"],
                          input=include, capture_output=True, text=True)
    if done.returncode == 0:
        return None
    first = next((l for l in done.stderr.splitlines() if "error" in l), done.stderr[:200])
    return f"{header.relative_to(root)}: does not compile alone: {first}"


def headers_alone(root, compiler):
    machine = subprocess.run([compiler, "-dumpmachine"], capture_output=True, text=True).stdout
    headers = [h for h in sorted((root / "src").rglob("*.h"))
               if machine.startswith(PROCESSOR_OF.get(h.relative_to(root / "src").as_posix(), ""))]
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        yield from filter(None, pool.map(lambda h: compile_header(root, compiler, h), headers))


def main():
    root = pathlib.Path(sys.argv[1]).resolve()
    if sys.argv[2:3] == ["--headers"]:
        findings = list(headers_alone(root, sys.argv[3]))
    else:
        findings = []
        for top in ("src", "tests", "bench", "tools", "cmake"):
            for path in sorted((root / top).rglob("*")):
                if path.suffix in SOURCES and path.is_file():
                    findings += line_findings(root, path)
                    if top == "src" and path.suffix in {".h", ".cpp"}:
                        findings += include_findings(root, path)
    print("\n".join(findings) if findings else "tidy: nothing to report")
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
