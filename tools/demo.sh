#!/usr/bin/env bash
# The demo: the query of demo/delays.sql on the real data set, result on the screen.
set -euo pipefail
cd "$(dirname "$0")/.."
tools/data.sh
echo "build/clink run --format table demo/delays.sql"
build/clink run --format table demo/delays.sql
