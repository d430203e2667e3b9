#!/usr/bin/env bash
# Makes what a build needs and a machine may lack: Debian packages, and the pinned foreign sources unpacked under build/deps.
# Downloads are kept under ${XDG_CACHE_HOME:-~/.cache}/clink and checked against their SHA-256.   tools/deps.sh [--test] [DEPS_DIR]
# --test: also what only the tests need.
set -euo pipefail
for_tests=""
if [ "${1:-}" = --test ]; then for_tests=1; shift; fi
top=$(cd "$(dirname "$0")/.." && pwd)
deps=${1:-$top/build/deps}
cache=${XDG_CACHE_HOME:-$HOME/.cache}/clink/downloads

packages="gcc cmake ninja-build bison flex curl unzip ca-certificates python3 python3-venv libcmocka-dev libisal-dev libzstd-dev
  liblz4-dev zlib1g-dev libxxhash-dev libpcre2-dev libssl-dev libedit-dev librdkafka-dev libpq-dev librocksdb-dev libcurl4-openssl-dev"
if [ -n "$for_tests" ]; then packages="$packages clang mold valgrind default-jre-headless postgresql openssl etcd-server"; fi
need=""
for p in $packages; do dpkg-query -W -f='${Status}' "$p" 2>/dev/null | grep -q 'ok installed' || need="$need $p"; done
# A compiler, cmake, ninja, curl or python that came another way is fine.
for pair in gcc:gcc cmake:cmake ninja-build:ninja curl:curl unzip:unzip python3:python3 clang:clang mold:mold valgrind:valgrind default-jre-headless:java openssl:openssl etcd-server:etcd; do
  command -v "${pair#*:}" >/dev/null 2>&1 && need=$(printf '%s' "$need" | sed -E "s/(^| )${pair%%:*}( |$)/ /")
done
if [ -n "${need// /}" ]; then
  command -v apt-get >/dev/null || { echo "missing packages:$need (install them with your package manager)" >&2; exit 1; }
  sudo=""; [ "$(id -u)" = 0 ] || sudo=sudo
  echo "installing:$need"
  DEBIAN_FRONTEND=noninteractive
  export DEBIAN_FRONTEND
  # shellcheck disable=SC2086
  $sudo apt-get install -y -q --no-install-recommends $need >/dev/null 2>&1 ||
    { $sudo apt-get update -q >/dev/null && $sudo apt-get install -y -q --no-install-recommends $need >/dev/null; }
fi

fetch() { # name sha256 url
  local file=$cache/$1
  if ! { [ -f "$file" ] && echo "$2  $file" | sha256sum -c --status; }; then
    mkdir -p "$cache"
    curl -fsSL --retry 3 -o "$file.part.$$" "$3"
    echo "$2  $file.part.$$" | sha256sum -c --status || { rm -f "$file.part.$$"; echo "$1: wrong checksum from $3" >&2; exit 1; }
    mv "$file.part.$$" "$file"
  fi
  printf '%s' "$file"
}
pypi=https://files.pythonhosted.org/packages

if [ "$(cat "$deps/.stamp" 2>/dev/null)" != "nanoarrow-0.9.0 yyjson-4.0.6" ]; then
  na=$(fetch nanoarrow-0.9.0.tar.gz 1ce15bbed8532839347faa78824c5dbd3769bff60661003e34c6fba5dd881bd3 \
    $pypi/bc/b2/8fedfa966cc25126e1c9090e6d9fed75dab4e1d2716e3ca2d18ea2d6f438/nanoarrow-0.9.0.tar.gz)
  yy=$(fetch yyjson-4.0.6.tar.gz fcd4dc15c1e39a30bf9fa85d56903029111506860fc3080ab0d81c6c6dacaa8c \
    $pypi/12/2d/3c940adc6315b33f2c0409c0bb4346bb7d910e2088e2f82b9e854d0190f2/yyjson-4.0.6.tar.gz)
  tmp=$deps.tmp.$$
  rm -rf "$tmp"; mkdir -p "$tmp/nanoarrow" "$tmp/flatcc" "$tmp/yyjson"
  tar xzf "$na" -C "$tmp/nanoarrow" --strip-components=3 nanoarrow-0.9.0/subprojects/arrow-nanoarrow
  tar xzf "$na" -C "$tmp/flatcc" --strip-components=3 nanoarrow-0.9.0/subprojects/flatcc-fd3c4ae5cd39f0651eda6a3a1a374278070135d6
  tar xzf "$yy" -C "$tmp/yyjson" --strip-components=2 yyjson-4.0.6/yyjson/yyjson.c yyjson-4.0.6/yyjson/yyjson.h
  sed -e 's/@NANOARROW_VERSION_MAJOR@/0/;s/@NANOARROW_VERSION_MINOR@/9/;s/@NANOARROW_VERSION_PATCH@/0/;s/@NANOARROW_VERSION@/0.9.0/' \
      -e 's/@NANOARROW_NAMESPACE_DEFINE@/#define NANOARROW_NAMESPACE ClinkForeign/' \
    "$tmp/nanoarrow/src/nanoarrow/nanoarrow_config.h.in" >"$tmp/nanoarrow/src/nanoarrow/nanoarrow_config.h"
  echo "nanoarrow-0.9.0 yyjson-4.0.6" >"$tmp/.stamp"
  rm -rf "$deps"; mkdir -p "$(dirname "$deps")"; mv "$tmp" "$deps"
fi
