#!/usr/bin/env bash
# Makes what the comparison needs under $BENCH_WORK (default /var/tmp/clink-bench): data, DuckDB, the C++ peer, Flink.
#   setup.sh [data N...] [keys] [keys10m] [duckdb] [cpp] [flink] [parquet N...]      default: data 100000 1000000 keys duckdb cpp flink
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
work=${BENCH_WORK:-/var/tmp/clink-bench}
mkdir -p "$work/out" "$work/data/keys"
[ $# -gt 0 ] || set -- data 100000 1000000 keys duckdb cpp flink

venv() { [ -x "$work/$1/bin/python" ] || python3 -m venv "$work/$1"; }
pip() { "$work/$1/bin/python" -c "import importlib.metadata as m; exit(m.version('${2%%==*}') != '${2##*==}')" 2>/dev/null || "$work/$1/bin/pip" -q install "$2"; }
tool() { [ "$work/$1" -nt "$here/$1.c" ] || cc -O2 -o "$work/$1" "$here/$1.c" -lm; }
fresh() { [ -f "$1" ] || { "${@:2}" >"$1.part" && mv "$1.part" "$1"; }; } # file, command that writes it

nexmark() { # N: written beside and moved, so that a folder that exists is complete
  local d=$work/data/$1
  [ -f "$d/bid.ndjson" ] && return
  tool nexmark_gen
  mkdir -p "$d.part"
  "$work/nexmark_gen" "$1" "$d.part"
  rm -rf "$d"
  mv "$d.part" "$d"
}

while [ $# -gt 0 ]; do
  what=$1
  shift
  case $what in
  data)
    while [ $# -gt 0 ] && [[ $1 =~ ^[0-9]+$ ]]; do nexmark "$1"; shift; done ;;
  parquet)
    venv v; pip v pyarrow==26.0.1
    while [ $# -gt 0 ] && [[ $1 =~ ^[0-9]+$ ]]; do
      nexmark "$1"
      [ -f "$work/data/$1/bid.parquet" ] || "$work/v/bin/python" "$here/to_parquet.py" "$work/data/$1"
      shift
    done
    mkdir -p "$work/jars"
    (cd "$here/flink-parquet" && mvn -q dependency:copy-dependencies -DoutputDirectory="$work/jars" -DincludeScope=runtime -Dmdep.overWriteIfNewer=false) ||
      echo "no Parquet for Flink" >&2 ;;
  keys)
    tool keys_gen
    for t in "" s; do
      fresh "$work/data/keys/k1m$t.ndjson" "$work/keys_gen" 1000000 1000000 $t
      fresh "$work/data/keys/k1k$t.ndjson" "$work/keys_gen" 1000000 1000 $t
    done ;;
  keys10m)
    tool keys_gen
    fresh "$work/data/keys/k10m.ndjson" "$work/keys_gen" 10000000 10000000 ;;
  duckdb) venv v; pip v duckdb==2.0.1 ;;
  cpp) venv v; pip v pyclink==0.12.2 ;;
  flink)
    venv vf; pip vf apache-flink==2.3.0
    mkdir -p "$work/classes"
    [ "$work/classes/RunSql.class" -nt "$here/RunSql.java" ] ||
      javac -cp "$(echo "$work"/vf/lib/python3.*/site-packages/pyflink/lib)/*" -d "$work/classes" "$here/RunSql.java" ;;
  *) echo "setup.sh: unknown: $what" >&2; exit 2 ;;
  esac
done
