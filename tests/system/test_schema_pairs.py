"""Random pairs of state schemas: which changes migrate by themselves, and what becomes of a value. The engine's verdicts (printed by a unit
test program) against a model and a decoder that know only docs/schema-evolution.md and the packed value of docs/formats.md."""
import json
import os
import re
import struct
import subprocess

import pytest

from conftest import BUILD

INTEGERS = ["TINYINT", "SMALLINT", "INTEGER", "BIGINT"]


def parts(t):
    m = re.fullmatch(r"(\w+)(?:\((\d+)(?:,\s*(\d+))?\))?", t)
    return m[1], m[2] and int(m[2]), m[3] and int(m[3])


def holds(was, now):
    """Every value of `was` is a value of `now`."""
    (a, p, s), (b, q, r) = parts(was), parts(now)
    if a in INTEGERS and b in INTEGERS:
        return INTEGERS.index(b) >= INTEGERS.index(a)
    if a != b:
        return False
    if a == "DECIMAL":
        return s == r and q >= p
    return q is None or (p is not None and q >= p)


def additive(was, now):
    old, new = {n: (t, null) for n, t, null in was}, {n: (t, null) for n, t, null in now}
    if set(old) - set(new):
        return False
    for name, (t, null) in new.items():
        if name not in old:
            if not null:
                return False
        elif not holds(old[name][0], t) or (old[name][1] and not null):
            return False
    return True


def decode(fields, b):
    bits, at, out = 0, 0, {}
    if any(null for _, _, null in fields):
        at = (len(fields) + 7) // 8
        bits = int.from_bytes(b[:at], "little")
    for i, (name, t, null) in enumerate(fields):
        kind = parts(t)[0]
        width = {"BOOLEAN": 1, "DECIMAL": 16, "VARCHAR": 0, "BYTES": 0}.get(kind, 8)
        out[name] = None if bits >> i & 1 else b[at:at + width]
        if bits >> i & 1:
            assert null and b[at:at + width] == bytes(width)
        at += width
    for name, t, _ in fields:
        if parts(t)[0] in ("VARCHAR", "BYTES") and out[name] is not None:
            n, = struct.unpack_from("<I", b, at)
            out[name] = b[at + 4:at + 4 + n]
            at += 4 + n
    assert at == len(b) and bits >> len(fields) == 0
    return out


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_pairs_by_an_independent_model(seed):
    r = subprocess.run([os.path.join(BUILD, "tests", "test.state.schema_additive"), "--pairs", str(seed), "4000"], check=True, capture_output=True, text=True)
    verdicts = {True: 0, False: 0}
    for line in r.stdout.splitlines():
        p = json.loads(line)
        want = additive(p["from"], p["to"])
        assert (p["why"] == "") == want, p
        verdicts[want] += 1
        before = decode(p["from"], bytes.fromhex(p["before"]))
        if want:
            assert decode(p["to"], bytes.fromhex(p["after"])) == {n: before.get(n) for n, _, _ in p["to"]}, p
        else:
            assert any("'%s'" % n in p["why"] for n, _, _ in p["from"] + p["to"]), p  # the sentence names the field
    assert min(verdicts.values()) > 800, verdicts
