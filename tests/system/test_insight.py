"""What a running job says of its time: which split holds the watermark, and which are idle. Through the C ABI."""
import ctypes
import os
import time

import pytest
from conftest import BUILD

pytestmark = pytest.mark.skipif(os.environ.get("CLINK_SANITIZE", "") != "", reason="a sanitized library needs its runtime preloaded")


class Job:
    """A script under way in an engine of its own; its rows go nowhere."""

    def __init__(self, sql):
        self.lib = lib = ctypes.CDLL(os.path.join(BUILD, "libclink.so"))
        lib.clink_job_watermark.restype = ctypes.c_size_t
        lib.clink_job_watermark.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_size_t]
        lib.clink_execute.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p]
        lib.clink_job_wait.argtypes = [ctypes.c_void_p, ctypes.c_int64, ctypes.c_void_p]
        lib.clink_job_free.argtypes = lib.clink_close.argtypes = [ctypes.c_void_p]
        self.engine, self.job = ctypes.c_void_p(), ctypes.c_void_p()
        assert lib.clink_open(None, ctypes.byref(self.engine), None) == 0
        assert lib.clink_execute(self.engine, sql.encode(), None, ctypes.byref(self.job), None) == 0

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.lib.clink_job_free(self.job)
        self.lib.clink_close(self.engine)

    def watermark(self):
        text = ctypes.create_string_buffer(1000)
        n = self.lib.clink_job_watermark(self.job, text, len(text))
        assert n == len(text.value)
        return text.value.decode()

    def wait_for(self, *parts):
        end = time.monotonic() + 60
        while not all(p in (text := self.watermark()) for p in parts):
            assert time.monotonic() < end, f"still: {text}"
            time.sleep(0.01)
        return text


def script(path, more):
    return (f"CREATE TABLE src (t BIGINT, v BIGINT) WITH (connector='file', format='json', path='{path}', "
            f"event_time_column='t', watermark_lag_ms='2000'{more});"
            "CREATE TABLE snk (n BIGINT) WITH (connector='blackhole');"
            "INSERT INTO snk SELECT COUNT(*) FROM src GROUP BY TUMBLE(t, INTERVAL '10' SECOND);")


def row(path, t):
    with open(path, "a") as f:
        f.write('{"t":%d,"v":1}\n' % t)


def test_who_holds_the_watermark(tmp_path):
    a, b = tmp_path / "a.ndjson", tmp_path / "b.ndjson"
    a.touch(), b.touch()
    with Job(script(tmp_path, ", follow='true', idle_timeout_ms='0'")) as job:
        job.wait_for("no watermark yet: held by", "ndjson of src, which has given no row")
        row(a, 1_357_020_000_000)
        job.wait_for("no watermark yet: held by", "b.ndjson of src, which has given no row")
        row(b, 1_357_016_400_123)
        job.wait_for("watermark held by", "b.ndjson of src at 2013-01-01 05:00:00.123")
        row(b, 1_357_023_600_000)
        job.wait_for("watermark held by", "a.ndjson of src at 2013-01-01 06:00:00")
        job.wait_for("a.ndjson of src at 2013-01-01 06:00:00, idle 1 s")


def test_who_is_idle(tmp_path):
    a, b = tmp_path / "a.ndjson", tmp_path / "b.ndjson"
    row(a, 1_357_020_000_000)
    row(b, 1_357_023_600_000)
    with Job(script(tmp_path, ", follow='true', idle_timeout_ms='1'")) as job:
        job.wait_for("watermark stays at 2013-01-01 0", ":59:58: all splits are idle; idle: ", "ndjson for", " and 1 more")
        row(a, 1_357_027_200_000)  # comes back: time goes on with it
        job.wait_for("watermark stays at 2013-01-01 07:59:58: all splits are idle")


def test_a_table_without_event_time_says_nothing(tmp_path):
    (tmp_path / "a.ndjson").write_text('{"t":1}\n')
    with Job(f"CREATE TABLE t (t BIGINT) WITH (connector='file', path='{tmp_path}/a.ndjson', follow='true');"
             "CREATE TABLE snk (t BIGINT) WITH (connector='blackhole'); INSERT INTO snk SELECT t FROM t") as job:
        assert job.watermark() == ""
