#!/usr/bin/env python3
"""Reports includes that go against the rooms' table (CONTRIBUTING.md). Exit 1 when there is one."""
import os, re, sys
TOP = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "src")
MAY = {
    "base": "", "os": "base", "metrics": "base os", "data": "base", "stream": "base data", "expr": "base os data",
    "format": "base data expr", "net": "base os metrics", "graph": "base data stream",
    "state": "base os metrics data stream format", "plugin": "base os data stream expr graph state",
    "connector": "base os metrics data stream expr format net state", "operator": "base metrics data stream expr state",
    "checkpoint": "base os metrics data stream format state", "runtime": "base os metrics data stream format net graph plugin state checkpoint",
    "sql": "base data stream expr graph plugin", "cluster": "base os metrics data stream net graph plugin state checkpoint runtime", "engine": "*", "cli": "base",
}
INTERNAL = re.compile(r"_int\.h$")
bad = 0
for room in sorted(os.listdir(TOP)):
    for dirpath, _, files in os.walk(os.path.join(TOP, room)):
        for f in files:
            if not f.endswith((".c", ".h", ".y", ".l")):
                continue
            path = os.path.join(dirpath, f)
            for n, line in enumerate(open(path, encoding="utf-8"), 1):
                m = re.match(r'\s*#\s*include\s+"([^"]+)"', line)
                if not m or "/" not in m[1]:
                    continue
                to = m[1].split("/")[0]
                if to in ("clink", room):
                    continue
                allowed = MAY.get(room, "")
                ok = to in MAY and (allowed == "*" or to in allowed.split() or f.endswith(("_test.c", "_test_support.h")))
                if not ok or INTERNAL.search(m[1]):
                    bad += 1
                    print(f"{os.path.relpath(path, os.path.join(TOP, '..'))}:{n}: {room}/ may not include {m[1]}")
print(f"{bad} includes against the table" if bad else "includes follow the table")
sys.exit(1 if bad else 0)
