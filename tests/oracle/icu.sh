#!/bin/sh
# tests/oracle/icu.sh ICU_SPLIT: every set of strings.mjs through icu_split. Exit status 77 (skipped)
# without node.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
command -v node > /dev/null || { echo "node is not installed" >&2; exit 77; }
file=$(mktemp)
trap 'rm -f "$file"' EXIT
for set in chosen random classes codepoints; do
  node "$here/strings.mjs" "$set" > "$file"
  printf '%s: ' "$set"
  "$1" "$(wc -l < "$file")" < "$file"
done
