#!/bin/sh
# tests/oracle/tiktoken.sh TOKENIZE_LINES [RANDOM_COUNT]: fetches tiktoken and runs tiktoken.mjs.
# Exit status 77 (skipped) without node, npm or network.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
command -v node > /dev/null || { echo "node is not installed" >&2; exit 77; }
modules=$("$here/../../tools/oracle/fetch" tiktoken@1.0.22)
exec node "$here/tiktoken.mjs" "$modules" "$@"
