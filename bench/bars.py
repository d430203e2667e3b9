"""Bars as plain SVG: a group of bars a query, a colour an engine, on a logarithmic axis (peers take ten times as long, or a hundred)."""
import math
from xml.sax.saxutils import escape

COLOURS = {"ours": "#0b7285", "duckdb": "#f08c00", "cpp": "#868e96", "flink": "#c92a2a"}
NAMES = {"ours": "clink", "duckdb": "DuckDB, 1 thread", "cpp": "C++ peer", "flink": "Flink, warm"}
BAR, GAP, LEFT, RIGHT, TOP = 9, 10, 44, 640, 56


def draw(title, groups):
    """groups: [{"q": name, engine: seconds or None...}] -> the text of an SVG"""
    engines = [e for e in COLOURS if any(e in g for g in groups)]
    values = [g[e] for g in groups for e in engines if g.get(e)]
    low = 10 ** math.floor(math.log10(min(values, default=0.01)))
    high = 10 ** math.ceil(math.log10(max(values, default=1)))
    x = lambda v: LEFT + (RIGHT - LEFT) * math.log10(v / low) / max(math.log10(high / low), 1e-9)
    height = TOP + len(groups) * (len(engines) * BAR + GAP) + 24
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {RIGHT + 60} {height}" font-family="sans-serif" font-size="11">',
           f'<rect width="100%" height="100%" fill="#fff"/><text x="{LEFT}" y="18" font-size="14">{escape(title)}</text>']
    for i, e in enumerate(engines):
        out.append(f'<rect x="{LEFT + i * 140}" y="28" width="10" height="10" fill="{COLOURS[e]}"/>'
                   f'<text x="{LEFT + 14 + i * 140}" y="37">{escape(NAMES[e])}</text>')
    tick = low
    while tick <= high * 1.001:
        out.append(f'<line x1="{x(tick):.1f}" y1="{TOP - 6}" x2="{x(tick):.1f}" y2="{height - 18}" stroke="#dee2e6"/>'
                   f'<text x="{x(tick):.1f}" y="{height - 6}" text-anchor="middle" fill="#495057">{tick:g} s</text>')
        tick *= 10
    y = TOP
    for g in groups:
        out.append(f'<text x="{LEFT - 6}" y="{y + len(engines) * BAR / 2 + 4:.0f}" text-anchor="end">{escape(g["q"])}</text>')
        for e in engines:
            v = g.get(e)
            if v:
                out.append(f'<rect x="{LEFT}" y="{y}" width="{max(x(v) - LEFT, 1):.1f}" height="{BAR - 1}" fill="{COLOURS[e]}"/>'
                           f'<text x="{max(x(v), LEFT) + 4:.1f}" y="{y + BAR - 1}" font-size="8" fill="#495057">{v:.2f}</text>')
            y += BAR
        y += GAP
    return "\n".join(out) + "\n</svg>\n"
