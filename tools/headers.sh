#!/usr/bin/env bash
# Every header compiles alone as C17; the public ones also as C++.
set -euo pipefail
cd "$(dirname "$0")/.."
bad=0
flags="-D_GNU_SOURCE -Isrc -Iinclude -isystem build/deps/nanoarrow/src -isystem build/deps/yyjson -fsyntax-only -Wall -Wextra -Werror"
while read -r h; do
  case $h in src/base/fault_points.h) continue ;; esac
  # shellcheck disable=SC2086
  gcc -std=c17 $flags -x c "$h" -Wno-unused-function -Wno-pragmas 2>/tmp/headers.$$ || { bad=1; cat /tmp/headers.$$; }
done < <(find src include -name '*.h' | sort)
while read -r h; do
  # shellcheck disable=SC2086
  g++ -std=c++17 $flags -x c++ "$h" || bad=1
done < <(find include -name '*.h' | sort)
rm -f /tmp/headers.$$
[ $bad = 0 ] && echo "headers compile alone"
exit $bad
