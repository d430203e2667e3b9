"""clink inside Python through the C ABI and pyarrow, with nothing but ctypes in between.

    python3 examples/embed.py build/libclink.so "SELECT ..."      # needs pyarrow: pip install pyarrow
"""
import ctypes
import sys

try:
    import pyarrow as pa
except ImportError:
    sys.exit("embed.py reads rows with pyarrow: pip install pyarrow, or run it with $(tools/venv.sh), the tests' Python")


class Error(ctypes.Structure):
    _fields_ = [("status", ctypes.c_int), ("retriable", ctypes.c_int32), ("line", ctypes.c_int64), ("column", ctypes.c_int64),
                ("byte_offset", ctypes.c_int64), ("message", ctypes.c_char * 2048)]


class Stream(ctypes.Structure):  # struct ArrowArrayStream
    _fields_ = [("members", ctypes.c_void_p * 5)]


class Clink:
    def __init__(self, library):
        self.lib = ctypes.CDLL(library)
        self.lib.clink_version.restype = ctypes.c_char_p
        self.lib.clink_close.argtypes = self.lib.clink_job_free.argtypes = [ctypes.c_void_p]
        self.engine = ctypes.c_void_p()
        self._call(self.lib.clink_open, None, ctypes.byref(self.engine))

    def _call(self, fn, *args):
        e = Error()
        if fn(*args, ctypes.byref(e)) != 0:
            raise RuntimeError(e.message.decode())

    def query(self, sql):
        """The rows of a script's SELECT as a pyarrow.Table."""
        job, stream = ctypes.c_void_p(), Stream()
        self._call(self.lib.clink_execute, self.engine, sql.encode(), None, ctypes.byref(job))
        try:
            self._call(self.lib.clink_job_stream, job, ctypes.byref(stream))
            return pa.RecordBatchReader._import_from_c(ctypes.addressof(stream)).read_all()
        finally:
            self.lib.clink_job_free(job)

    def close(self):
        self.lib.clink_close(self.engine)


if __name__ == "__main__":
    if len(sys.argv) < 3:
        sys.exit("usage: embed.py build/libclink.so SQL [--pandas]")
    clink = Clink(sys.argv[1])
    print(clink.query(sys.argv[2]).to_pandas() if "--pandas" in sys.argv else clink.query(sys.argv[2]).to_pylist())
    clink.close()
