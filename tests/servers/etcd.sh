#!/usr/bin/env bash
# An etcd of one member on loopback for tests.   etcd.sh DIR PORT PEER_PORT
# Becomes the server; everything it writes is in DIR. Needs Debian's etcd-server.
set -euo pipefail
dir=$1 port=$2 peer=$3
command -v etcd >/dev/null || { echo "etcd.sh: there is no etcd (apt-get install etcd-server)" >&2; exit 3; }
mkdir -p "$dir"
exec etcd --name one --data-dir "$dir/data" --log-level error --unsafe-no-fsync=true \
  --listen-client-urls "http://127.0.0.1:$port" --advertise-client-urls "http://127.0.0.1:$port" \
  --listen-peer-urls "http://127.0.0.1:$peer" --initial-advertise-peer-urls "http://127.0.0.1:$peer" \
  --initial-cluster "one=http://127.0.0.1:$peer" >"$dir/log" 2>&1
