#!/usr/bin/env bash
# The simulators over many seeds, and a tenth as many for each fault point.   tools/sim.sh SEEDS [JOBS]
set -euo pipefail
cd "$(dirname "$0")/.."
seeds=${1:-2000} jobs=${2:-2}
some=$(((seeds + 9) / 10))
{
  echo "build/sim --seeds $seeds"
  echo "build/sql_sim --seeds $seeds"
  echo "build/cluster_sim --seeds $seeds"
  echo "build/sql_sim --seeds $some --skewed"
  echo "build/sql_sim --seeds $(((seeds + 99) / 100)) --small --allocations 1"
  for rows in 1 7 4096; do
    echo "build/sql_sim --seeds $seeds --undisturbed --batch-rows $rows"
    echo "build/sql_sim --seeds $seeds --undisturbed --batch-rows $rows --job 6"
  done
  sed -n 's/^CK_FAULT_POINT([A-Z_]*, "\([a-z_.]*\)".*/build\/sql_sim --seeds '"$some"' --point \1/p' src/base/fault_points.h
} | xargs -P "$jobs" -I{} sh -c 'if out=$({}); then echo "{}: held"; else echo "{}: $out"; exit 255; fi'
