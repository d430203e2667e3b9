#!/usr/bin/env python3
"""The longest files and functions of src/: a report, never a gate."""
import os, re
TOP = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..")
files, functions = [], []
for d, _, names in os.walk(os.path.join(TOP, "src")):
    for n in names:
        if not n.endswith((".c", ".h", ".y", ".l")):
            continue
        path = os.path.relpath(os.path.join(d, n), TOP)
        lines = open(os.path.join(d, n), encoding="utf-8").read().split("\n")
        files.append((len(lines), path))
        start = None
        for i, line in enumerate(lines):
            if line == "}" and start is not None:
                functions.append((i - start + 1, f"{path}:{start + 1}", lines[start].strip()[:80]))
                start = None
            elif re.match(r"^[A-Za-z_].*\)?\s*\{$", line) and "(" in line:
                start = i
            elif re.match(r"^[A-Za-z_][\w\s\*]*\w+\(.*[^;{]$", line) and start is None:
                start = i
            elif line.endswith(";") and not line.startswith(" "):
                start = None
print("longest files")
for n, p in sorted(files, reverse=True)[:15]:
    print(f"{n:6} {p}")
print("longest functions")
for n, p, t in sorted(functions, reverse=True)[:20]:
    print(f"{n:6} {p}  {t}")
