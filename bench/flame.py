"""A flame graph as one plain SVG, names shown on hover.   perf script | flame.py TITLE > out.svg
Reads what `perf script -F comm,ip,sym` prints: a line with the command, then the frames from the innermost out, then an empty line."""
import collections
import sys
import zlib
from xml.sax.saxutils import escape, quoteattr

WIDTH, ROW, TOP, SMALLEST = 1200, 16, 30, 0.001


def stacks(lines):
    """-> Counter of stacks, outermost frame first"""
    found, stack, inside = collections.Counter(), [], False
    for line in lines:
        text = line.strip()
        if not text:
            if stack:
                found[tuple(reversed(stack))] += 1
            stack, inside = [], False
        elif not inside:
            inside = True  # the line that names the command
        else:
            stack.append(text.split(" ", 1)[1].split("+0x")[0] if " " in text else text)
    if stack:
        found[tuple(reversed(stack))] += 1
    return found


class Node:
    def __init__(self):
        self.count, self.own, self.children = 0, 0, {}

    def add(self, stack, count):
        node = self
        node.count += count
        for name in stack:
            node = node.children.setdefault(name, Node())
            node.count += count
        node.own += count

    def depth(self, least):
        return 1 + max((c.depth(least) for c in self.children.values() if c.count >= least), default=0)


def colour(name):
    h = zlib.crc32(name.encode())
    return f"rgb({205 + h % 50},{90 + (h >> 8) % 110},{40 + (h >> 16) % 50})"


def draw(root, title):
    least = root.count * SMALLEST
    height = TOP + ROW * root.depth(least) + 10
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" font-family="monospace" font-size="11">',
           f'<rect width="100%" height="100%" fill="#fff"/><text x="4" y="18" font-size="14">{escape(title)}, {root.count} samples</text>']

    def frame(name, node, x, level):
        w = WIDTH * node.count / root.count
        y = height - 10 - ROW * (level + 1)
        shown = escape(name[:max(int(w / 7) - 1, 0)])
        out.append(f'<g><title>{escape(name)}: {100 * node.count / root.count:.1f}%</title><rect x="{x:.1f}" y="{y}" width="{w:.1f}" height="{ROW - 1}" '
                   f'fill={quoteattr(colour(name))}/><text x="{x + 2:.1f}" y="{y + 12}">{shown}</text></g>')
        for child, c in sorted(node.children.items()):
            if c.count >= least:
                frame(child, c, x, level + 1)
                x += WIDTH * c.count / root.count

    frame("all", root, 0, 0)
    return "\n".join(out) + "\n</svg>\n"


def own_time(root):
    """Counter of samples by innermost function."""
    found = collections.Counter()
    todo = [("all", root)]
    while todo:
        name, node = todo.pop()
        found[name] += node.own
        todo += node.children.items()
    return found


def main():
    root = Node()
    for stack, count in stacks(sys.stdin).items():
        root.add(stack, count)
    if not root.count:
        sys.exit("flame: no samples")
    sys.stdout.write(draw(root, sys.argv[1] if len(sys.argv) > 1 else "samples"))
    for name, count in own_time(root).most_common(20):
        print(f"{100 * count / root.count:5.1f}%  {name}", file=sys.stderr)


if __name__ == "__main__":
    main()
