#!/bin/sh
# tools/oracle/llama.sh SLUICE_BINARY: runs models/tiny-k3 through llama.cpp's library (the prebuilt
# one of npm's node-llama-cpp) and through sluice, and compares greedy ids and logits on every golden
# prompt (llama_compare.py). Everything of llama.cpp stays in a cache outside the repository.
# Exit status 77 (skipped) without npm, network, numpy or an x86-64 machine.
set -eu
[ $# = 1 ] || { echo "usage: tools/oracle/llama.sh SLUICE_BINARY" >&2; exit 2; }
sluice=$1
here=$(cd "$(dirname "$0")" && pwd)
model=$here/../../models/tiny-k3
python=${SLUICE_PYTHON:-/usr/bin/python3}

[ "$(uname -m)" = x86_64 ] || { echo "the prebuilt library is for x86-64" >&2; exit 77; }
"$python" -c 'import numpy' 2> /dev/null || { echo "python3-numpy is not installed" >&2; exit 77; }
modules=$("$here/fetch" node-llama-cpp@3.21.1)
bins=$modules/@node-llama-cpp/linux-x64/bins/linux-x64
work=$modules/../work
mkdir -p "$work"

# The headers and the gguf package of the release lie in the package as a git bundle.
if [ ! -d "$work/llama.cpp" ]; then
  rm -rf "$work/clone"
  git -c advice.detachedHead=false clone -q "$modules/node-llama-cpp/llama/gitRelease.bundle" \
    "$work/clone"
  mv "$work/clone" "$work/llama.cpp"
fi
source=$work/llama.cpp

set -- "$bins"/libllama.*.so "$bins"/libggml.*.so "$bins/libggml-base.so"
g++ -std=c++20 -O2 -Wall -Wextra -Wconversion -I "$source/include" -I "$source/ggml/include" \
  "$here/llama_greedy.cpp" -o "$work/llama_greedy" "$@" "-Wl,-rpath,$bins"

# Both arms run, and each prints its table. The plain x86-64-v3 backend runs on every machine with
# AVX2.
status=0
for experts in fp32 mxfp4; do
  gguf=$work/tiny-k3-$experts.gguf
  PYTHONPATH=$source/gguf-py "$python" "$here/to_gguf.py" "$model" "$gguf" "$experts"
  "$python" "$here/llama_compare.py" --sluice "$sluice" --model "$model" \
    --greedy "$work/llama_greedy" --gguf "$gguf" --backend "$bins/libggml-cpu-haswell.so" \
    --experts "$experts" || status=1
done
exit $status
