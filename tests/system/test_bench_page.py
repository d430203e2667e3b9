"""docs/benchmarks.md after `make bench`: its own sections are new, what others wrote is still there."""
import os
import re
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "..", "bench"))
import report  # noqa: E402

PAGE = "# Benchmarks\n\nSaid by hand.\n\n## NEXMark, 1,000,000 events (227 MB of bids)\n\nold\n\n## Two subtasks\n\nby hand, too\n\n## GROUP BY one key, COUNT (old)\n\nold\n"


def test_sections_of_others_stay():
    new = report.merged(PAGE, ["## NEXMark, 1,000,000 events (228 MB of bids)\n\nnew\n", "## NEXMark, 5,000,000 events (1 GB of bids)\n\nlarge\n", "\n## GROUP BY one key, COUNT (new)\n\nnew\n"])
    assert re.findall("^## .*", new, re.M) == ["## NEXMark, 1,000,000 events (228 MB of bids)", "## NEXMark, 5,000,000 events (1 GB of bids)", "## Two subtasks", "## GROUP BY one key, COUNT (new)"]
    assert "old" not in new and new.startswith("# Benchmarks\n\nSaid by hand.\n") and "by hand, too" in new


def test_the_page_as_it_stands():
    with open(os.path.join(os.path.dirname(report.__file__), "..", "docs", "benchmarks.md")) as f:
        page = f.read()
    headings = re.findall("^## .*", page, re.M)
    assert len(headings) > 3 and report.merged(page, []) == page
    again = report.merged(page, [f"{h}\n\nagain\n" for h in headings])
    assert re.findall("^## .*", again, re.M) == headings and again.count("\nagain\n") == len(headings)
