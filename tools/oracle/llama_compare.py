#!/usr/bin/env python3
"""Compares sluice with llama.cpp on the bundled model's golden prompts (called by llama.sh).

Greedy ids must be the same for as many steps as the golden has.
  --experts fp32   llama.cpp has the experts' values as fp32: every logit of every step is compared.
  --experts mxfp4  it has them as stored, and rounds their inputs to 8 bits, which sluice does not:
                   the chosen tokens' logits are compared with a wide bound, and raw_newline, where
                   two tokens are nearly level, may part ways.
"""
import argparse
import json
import pathlib
import struct
import subprocess
import sys
import tempfile

import numpy as np

ALL_BOUND = 1e-3  # fp32
CHOSEN_BOUND = 0.2  # mxfp4
MAY_DIFFER = {"raw_newline"}  # mxfp4


def run(*command):
    return subprocess.run([str(part) for part in command], check=True, stdout=subprocess.PIPE).stdout


def comma(ids):
    return ",".join(map(str, ids))


def tensor(path, name):
    """An fp32 tensor of a safetensors file."""
    data = path.read_bytes()
    size = struct.unpack_from("<Q", data)[0]
    entry = json.loads(data[8:8 + size])[name]
    assert entry["dtype"] == "F32", entry
    begin, end = entry["data_offsets"]
    values = np.frombuffer(data, np.float32, (end - begin) // 4, 8 + size + begin)
    return values.reshape(entry["shape"])


class Comparison:
    def __init__(self, arguments, folder):
        self.arguments = arguments
        self.folder = folder

    def sluice(self, ids, steps):
        """Greedy ids, stopping after the end token."""
        out = run(self.arguments.sluice, "run", self.arguments.model, "--ids", comma(ids),
                  "--max-new", steps, "--json")
        return json.loads(out)["ids"]

    def sluice_logits(self, ids):
        path = self.folder / "dump.safetensors"
        run(self.arguments.sluice, "run", self.arguments.model, "--ids", comma(ids), "--max-new", 1,
            "--json", "--dump", path)
        return tensor(path, "logits")

    def llama(self, ids, steps):
        path = self.folder / "logits"
        out = run(self.arguments.greedy, self.arguments.gguf, self.arguments.backend, path, steps,
                  comma(ids))
        return [int(line) for line in out.split()], np.fromfile(path, np.float32)

    def prompt(self, golden):
        """Prints one line; True if this prompt is as it should be."""
        ids, steps = golden["ids"], len(golden["bf16"]["greedy"])
        ours = self.sluice(ids, steps)
        theirs, flat = self.llama(ids, steps)
        rows = flat.reshape(steps, -1)
        differs = [i for i in range(steps) if ours[i:i + 1] != theirs[i:i + 1]]
        # Rows are of the same text up to and including the first step that differs.
        compared = min(differs[0] + 1 if differs else steps, len(ours))
        own = self.sluice_logits(ids + ours[:compared - 1])[len(ids) - 1:]
        difference = np.abs(own - rows[:compared])
        chosen = float(difference[np.arange(compared), own.argmax(-1)].max())
        every = float(difference.max())
        same = f"{steps} ids the same" if not differs else f"ids differ from step {differs[0]}"
        print(f"{golden['name']:24} {same:26} {compared:3} rows of logits: chosen within "
              f"{chosen:.6f}, all within {every:.6f}, largest {float(np.abs(own).max()):.1f}")
        if self.arguments.experts == "fp32":
            return not differs and every <= ALL_BOUND
        return golden["name"] in MAY_DIFFER or (not differs and chosen <= CHOSEN_BOUND)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    for name in ("sluice", "model", "greedy", "gguf", "backend"):
        parser.add_argument("--" + name, type=pathlib.Path, required=True)
    parser.add_argument("--experts", choices=("fp32", "mxfp4"), required=True)
    arguments = parser.parse_args()
    goldens = json.loads((arguments.model / "goldens.json").read_text(encoding="utf8"))["prompts"]
    with tempfile.TemporaryDirectory() as folder:
        comparison = Comparison(arguments, pathlib.Path(folder))
        fine = [comparison.prompt(golden) for golden in goldens]
    print(f"experts {arguments.experts}: {sum(fine)} of {len(fine)} prompts as they should be")
    return 0 if all(fine) else 1


if __name__ == "__main__":
    sys.exit(main())
