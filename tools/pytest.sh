#!/usr/bin/env bash
# pytest in the tests' environment, from the top of the tree.   tools/pytest.sh tests/system/test_run.py [pytest arguments]
set -euo pipefail
cd "$(dirname "$0")/.."
python=$(tools/venv.sh)
exec "$python" -m pytest -q -x -p no:cacheprovider "$@"
