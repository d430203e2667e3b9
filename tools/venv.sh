#!/usr/bin/env bash
# The Python environment of the tests, made once per set of pinned requirements and kept in the cache. Prints its python.
set -euo pipefail
top=$(cd "$(dirname "$0")/.." && pwd)
req=$top/tests/requirements.txt
dir=${XDG_CACHE_HOME:-$HOME/.cache}/clink/venv-$(sha256sum "$req" | cut -c1-12)
if [ ! -f "$dir/.ready" ]; then
  exec 9>"$dir.lock" 2>/dev/null || { mkdir -p "$(dirname "$dir")"; exec 9>"$dir.lock"; }
  flock 9
  if [ ! -f "$dir/.ready" ]; then
    rm -rf "$dir"
    python3 -m venv "$dir" >&2
    "$dir/bin/pip" -q install --disable-pip-version-check -r "$req" >&2
    touch "$dir/.ready"
  fi
fi
echo "$dir/bin/python"
