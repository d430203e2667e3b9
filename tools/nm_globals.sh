#!/usr/bin/env bash
# Writable symbols of our own objects in an archive: mutable globals, of which there are none. Constants that need relocation
# (.data.rel.ro: tables of pointers) are read-only once the program is loaded and do not count.   tools/nm_globals.sh LIB.a
set -euo pipefail
found=$(nm -f sysv --defined-only "$1" 2>/dev/null | awk -F'|' '
  /^Symbols from/ { sub(/.*\[/, ""); sub(/\].*/, ""); object = $0; next }
  NF == 7 { gsub(/ /, "", $1); gsub(/ /, "", $3); gsub(/ /, "", $7)
            if ($3 ~ /^[BbDdCc]$/ && $7 !~ /^\.data\.rel\.ro/) print object ": " $1 " in " $7 }' |
  grep -vE '^(grammar|lexer)\.c\.o: (yydebug|yy_.*|yynerrs) ' || true)
if [ -n "$found" ]; then echo "$found"; echo "writable globals found"; exit 1; fi
echo "no writable globals"
