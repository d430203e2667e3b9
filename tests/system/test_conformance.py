"""The conformance suite of transactional sinks (conformance.py; make conformance runs all of it): every cell for files, a sample for sinks
with a server."""
import os
import random

import conformance
import pytest

SEED = int(os.environ.get("CLINK_SEED", "1"))
SAMPLE = 5  # cells of a sink with a server


def cells_of(name):
    cells = [c for c in conformance.CELLS if conformance.applies(conformance.make_sink(name), c)]
    return cells if name == "file" else random.Random(f"{SEED} {name}").sample(cells, SAMPLE)


@pytest.fixture(scope="module", params=conformance.SINKS)
def sink(request, tmp_path_factory):
    s, where = conformance.make_sink(request.param), str(tmp_path_factory.mktemp(request.param))
    try:
        s.start(where)
        yield request.param, s, where
    except conformance.Missing as e:
        pytest.skip(str(e))
    finally:
        s.stop()


def test_each_row_once(sink):
    name, s, where = sink
    for number, cell in enumerate(cells_of(name)):
        conformance.run_cell(s, cell, where, number)


class AtLeastOnce(conformance.FileSink):
    lasts_s = 10  # a hundred rows a checkpoint, and several parts of them: some are there when it is killed

    def table(self, cell):
        return super().table(cell)[:-1] + ", delivery='at_least_once', part_bytes='500')"


def test_it_sees_a_sink_that_is_not(tmp_path):
    with pytest.raises(AssertionError, match="doubled|left open"):
        conformance.run_cell(AtLeastOnce(), "before_prepare", str(tmp_path), 0)
