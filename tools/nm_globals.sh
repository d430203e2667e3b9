#!/usr/bin/env bash
# Writable symbols of our own objects in an archive: mutable globals, of which there are none.   tools/nm_globals.sh LIB.a
set -euo pipefail
found=$(nm -o --defined-only "$1" 2>/dev/null | awk '$2 ~ /^[BbDdCc]$/ || $3 ~ /^[BbDdCc]$/' | grep -vE '(grammar|lexer)\.c\.o:.* (yydebug|yy_.*|yynerrs)$' || true)
if [ -n "$found" ]; then echo "$found"; echo "writable globals found"; exit 1; fi
echo "no writable globals"
