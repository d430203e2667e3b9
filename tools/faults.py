#!/usr/bin/env python3
"""Every fault point declared in src/base/fault_points.h is placed somewhere, and every placed one is declared."""
import os
import re
import sys

TOP = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "src")
NOT_POINTS = {"POINT", "SERVER_POINT", "COUNT", "LOCAL_COUNT", "LOCAL_LAST", "KILL", "ERROR", "STOP", "CRASH"}  # macros, counts, actions


def text(path):
    with open(path) as f:
        return re.sub(r"/\*.*?\*/", "", f.read(), flags=re.S)


declared = set(re.findall(r"CK_FAULT_(?:SERVER_)?POINT\((\w+)", text(os.path.join(TOP, "base/fault_points.h"))))
placed = {}
for folder, _, files in os.walk(TOP):
    for name in files:
        if name.endswith(".c") and not name.endswith("_test.c"):
            path = os.path.join(folder, name)
            for a, b in re.findall(r"CK_FAULT\([^,]+,\s*(\w+)\)|CK_FAULT_([A-Z_]+)\b", text(path)):
                placed.setdefault(a or b, os.path.relpath(path, TOP))
missing = sorted(declared - placed.keys())
unknown = sorted(placed.keys() - declared - NOT_POINTS)
for m in missing:
    print(f"fault point {m} is declared and not placed")
for u in unknown:
    print(f"fault point {u} is placed in {placed[u]} and not declared")
print(f"{len(declared) - len(missing)} of {len(declared)} fault points are placed")
sys.exit(1 if missing or unknown else 0)
