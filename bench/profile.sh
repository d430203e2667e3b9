#!/usr/bin/env bash
# Where the time of one query goes: a flame graph at build-profile/<q>.svg and the twenty functions that take most themselves.
#   profile.sh [Q=q17] [N=1000000]     CLINK: the binary, built with frame pointers (make profile does). Without perf: callgrind's list.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
top=$(dirname "$here")
q=${1:-q17}
n=${2:-1000000}
work=${BENCH_WORK:-/var/tmp/clink-bench}
clink=${CLINK:-$top/build-profile/clink}
out=$top/build-profile
"$here/setup.sh" data "$n"
CLINK=$clink python3 "$here/run_ours.py" -q "$q" -n "$n" -r 1 -o /dev/null # leaves the script, and fails here if the query does
script=$work/out/ours_${q}_blackhole.sql
if perf record -o "$out/$q.data" -F 997 --call-graph fp -- "$clink" run -p 1 "$script" >/dev/null 2>"$out/$q.perf.log"; then
  perf script -i "$out/$q.data" -F comm,ip,sym 2>/dev/null | python3 "$here/flame.py" "clink, $q, $n events" >"$out/$q.svg"
  echo "wrote $out/$q.svg"
else
  echo "perf is not permitted here ($(tail -1 "$out/$q.perf.log")); counting instructions with callgrind instead"
  valgrind --tool=callgrind --callgrind-out-file="$out/$q.callgrind" "$clink" run -p 1 "$script" >/dev/null 2>"$out/$q.callgrind.log"
  callgrind_annotate "$out/$q.callgrind" | head -50
fi
