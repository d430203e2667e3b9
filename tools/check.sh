#!/usr/bin/env bash
# One check of the whole tree, as the tests call it.   tools/check.sh includes|headers|faults|messages|clang [BUILD_DIR]
set -euo pipefail
cd "$(dirname "$0")/.."
case $1 in
includes) exec python3 tools/includes.py ;;
headers) exec tools/headers.sh ;;
faults) exec python3 tools/faults.py ;;
messages) exec python3 tools/messages.py ;;
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
