#!/usr/bin/env python3
"""Exact DECIMAL arithmetic for src/expr/decimal_test.c: one case a line.   tools/decimal_vectors.py COUNT SEED

  op a scale_a b scale_b precision scale result      (unscaled integers; result - when it has too many digits)
"""
import random
import sys
from fractions import Fraction


def half_up(x):
    """To an integer, halves away from zero."""
    n, d = abs(x.numerator), x.denominator
    q = (2 * n + d) // (2 * d)
    return -q if x < 0 else q


def cut(p, s):
    """Flink's reduction to 38 digits."""
    if p <= 38:
        return max(p, 1), s
    return 38, max(38 - (p - s), min(s, 6))


def result_type(op, p1, s1, p2, s2):
    if op in "+-":
        s = max(s1, s2)
        return cut(max(p1 - s1, p2 - s2) + s + 1, s)
    if op == "*":
        return cut(p1 + p2 + 1, s1 + s2)
    if op == "/":
        s = max(6, s1 + p2 + 1)
        return cut(p1 - s1 + s2 + s, s)
    s = max(s1, s2)
    return cut(min(p1 - s1, p2 - s2) + s, s)


def number(rnd):
    p = rnd.randint(1, 38)
    s = rnd.randint(0, p)
    digits = rnd.randint(0, p)
    v = rnd.choice([0, 1, 10**p - 1, rnd.randrange(10**digits + 1), rnd.randrange(10**digits + 1)])
    v = min(v, 10**p - 1)
    return p, s, v * rnd.choice([1, -1])


def main():
    count, rnd = int(sys.argv[1]), random.Random(int(sys.argv[2]))
    for _ in range(count):
        op = rnd.choice("+-*/%r")
        p1, s1, a = number(rnd)
        p2, s2, b = number(rnd)
        x, y = Fraction(a, 10**s1), Fraction(b, 10**s2)
        if op == "r":
            p, s, b = p2, s2, 0
            exact = x
        else:
            if op in "/%" and b == 0:
                b, y = 1, Fraction(1, 10**s2)
            p, s = result_type(op, p1, s1, p2, s2)
            if op == "%":
                q = abs(x) // abs(y)
                exact = abs(x) - q * abs(y)
                exact = -exact if x < 0 else exact
            else:
                exact = {"+": x + y, "-": x - y, "*": x * y}[op] if op != "/" else x / y
        r = half_up(exact * 10**s)
        print(op, a, s1, b, s2, p, s, r if abs(r) < 10**p else "-")


main()
