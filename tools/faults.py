#!/usr/bin/env python3
"""Every fault point declared in src/base/fault_points.h is placed somewhere, and every placed one is declared."""
import os, re, sys
TOP = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "src")
declared = set(re.findall(r"CK_FAULT_POINT\((\w+)", open(os.path.join(TOP, "base/fault_points.h")).read()))
placed = set()
for d, _, files in os.walk(TOP):
    for f in files:
        if f.endswith(".c") and not f.endswith("_test.c"):
            placed |= set(re.findall(r"CK_FAULT\([^,]+,\s*(\w+)\)|CK_FAULT_([A-Z_]+)\b", open(os.path.join(d, f)).read()) and
                          [a or b for a, b in re.findall(r"CK_FAULT\([^,]+,\s*(\w+)\)|CK_FAULT_([A-Z_]+)\b", open(os.path.join(d, f)).read())])
missing = sorted(declared - placed)
for m in missing:
    print(f"fault point {m} is declared and not placed")
print(f"{len(declared) - len(missing)} of {len(declared)} fault points are placed")
sys.exit(1 if missing else 0)
