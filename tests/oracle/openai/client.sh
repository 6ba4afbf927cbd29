#!/bin/sh
# tests/oracle/openai/client.sh SLUICE MODEL_DIR: fetches the `openai` client and runs client.mjs.
# Exit status 77 (skipped) without node, npm or network.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
command -v node > /dev/null || { echo "node is not installed" >&2; exit 77; }
modules=$("$here/../../../tools/oracle/fetch" "$here")
exec node "$here/client.mjs" "$modules" "$@"
