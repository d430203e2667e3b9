#!/usr/bin/env bash
# A PostgreSQL server on loopback for tests, with logical decoding.   postgres.sh DIR PORT
# Makes its data directory in DIR the first time, then becomes the server; everything it writes is in DIR. The superuser is
# `postgres` and needs no password on loopback; `pwuser` does. Needs Debian's postgresql. The server does
# not run as root: with root it runs as the user `postgres`, who must be able to pass to DIR.
set -euo pipefail
dir=$1 port=$2
bin=$(ls -d /usr/lib/postgresql/*/bin 2>/dev/null | sort -V | tail -1)
[ -x "$bin/postgres" ] || bin=$(dirname "$(command -v initdb 2>/dev/null || echo /none/none)")
[ -x "$bin/initdb" ] || { echo "postgres.sh: there is no PostgreSQL server (apt-get install postgresql)" >&2; exit 3; }
as=()
mkdir -p "$dir"
if [ "$(id -u)" = 0 ]; then
  id postgres >/dev/null 2>&1 || { echo "postgres.sh: there is no user postgres to run it as" >&2; exit 3; }
  chown postgres "$dir"
  as=(setpriv --reuid postgres --regid postgres --init-groups)
fi
if [ ! -f "$dir/data/complete" ]; then
  rm -rf "$dir/data"
  "${as[@]}" "$bin/initdb" -D "$dir/data" -U postgres -A trust -N -E UTF8 --locale=C >"$dir/initdb.log" 2>&1 || { cat "$dir/initdb.log" >&2; exit 1; }
  cat >"$dir/data/pg_hba.conf" <<EOF2
host all pwuser 127.0.0.1/32 scram-sha-256
host all all 127.0.0.1/32 trust
host replication all 127.0.0.1/32 trust
EOF2
  cat >>"$dir/data/postgresql.conf" <<EOF2
listen_addresses = '127.0.0.1'
unix_socket_directories = ''
wal_level = ${PG_WAL_LEVEL:-logical}
max_replication_slots = 20
max_wal_senders = 20
max_connections = 60
shared_buffers = 32MB
fsync = off
logging_collector = off
deadlock_timeout = 100ms
timezone = 'Asia/Tokyo'
lc_messages = 'C'
EOF2
  "${as[@]}" touch "$dir/data/complete"
fi
rm -f "$dir/data/postmaster.pid"
exec "${as[@]}" "$bin/postgres" -D "$dir/data" -p "$port" >>"$dir/server.log" 2>&1
