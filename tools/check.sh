#!/usr/bin/env bash
# One check of the whole tree, as the tests call it.   tools/check.sh includes|headers|faults|messages|python|clang [BUILD_DIR]
set -euo pipefail
cd "$(dirname "$0")/.."
case $1 in
includes) exec python3 tools/includes.py ;;
headers) exec tools/headers.sh ;;
faults) exec python3 tools/faults.py ;;
messages) exec python3 tools/messages.py ;;
python) # names that are not defined anywhere, which only the line that uses one would find
  python=$(tools/venv.sh)
  if "$python" -m pyflakes tests bench tools | grep -E "undefined|syntax"; then exit 1; fi
  echo "every name of the Python files is defined" ;;
clang) # the second compiler sees every source, with the same warnings as errors; nothing is generated
  build=${2:-build}
  flags="-std=c17 -D_GNU_SOURCE -DCK_VERSION=\"0\" -Isrc -Iinclude -I$build/gen -isystem build/deps/nanoarrow/src -isystem build/deps/flatcc/include
    -isystem build/deps/yyjson -Wall -Wextra -Wconversion -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Wvla -Wno-string-conversion -Werror
    -ffp-contract=off -fsyntax-only"
  # shellcheck disable=SC2086
  find src fuzz -name '*.c' | sort | xargs -P "$(nproc)" -n 16 clang $flags
  echo "clang accepts every source" ;;
*) echo "unknown check: $1" >&2; exit 2 ;;
esac
