"""A sample of the fault matrix of a cluster (cluster_matrix.py; make cluster-matrix runs all of it), and what its network does."""
import concurrent.futures
import contextlib
import os
import random
import socket
import threading

import pytest
from cluster_matrix import ON_DISK, ClusterMatrix, cell_of, cell_text, cells, sample
from network_faults import READY, REGISTER, Frames, Network

SEED = int(os.environ.get("CLINK_SEED", "1"))
SANITIZED = os.environ.get("CLINK_SANITIZE", "") != ""


def test_a_sample(tmp_path):
    """Two cells at once: most of the time one waits for something."""
    matrix = ClusterMatrix(str(tmp_path), SEED)
    todo = [c for c in sample(random.Random(SEED), 5) if not (SANITIZED and c.trouble in ON_DISK)]  # a sanitizer wants to be preloaded first
    try:
        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            came = sum(pool.map(matrix.run, todo))
    finally:
        matrix.stop()
    assert came * 2 > len(todo), "most of the troubles never came"


def test_cells_are_written_as_they_are_read():
    for c in cells(random.Random(SEED)):
        assert cell_of(cell_text(c)) == c


# ---- the network ----


@pytest.fixture
def echo():
    """A port that says what it hears."""
    with socket.create_server(("127.0.0.1", 0)) as s:
        def serve():
            while True:
                try:
                    c, _ = s.accept()
                except OSError:
                    return
                threading.Thread(target=talk, args=(c,), daemon=True).start()

        def talk(c):
            with c, contextlib.suppress(OSError):  # it may be cut
                while data := c.recv(100):
                    c.sendall(data)

        threading.Thread(target=serve, daemon=True).start()
        yield s.getsockname()[1]
        s.shutdown(socket.SHUT_RDWR)


def test_what_is_held_comes_when_it_is_healed(echo):
    net = Network(SEED)
    with socket.create_connection(("127.0.0.1", net.proxy("w1.a", echo)), timeout=60) as s:
        s.sendall(b"one")
        assert s.recv(100) == b"one"
        net.hold("w1")
        s.sendall(b"two")
        s.settimeout(0.2)
        with pytest.raises(TimeoutError):
            s.recv(100)
        net.heal()
        s.settimeout(60)
        assert s.recv(100) == b"two"
        assert net.cut("w2") == 0 and net.cut("w1") == 2
        with pytest.raises(ConnectionResetError):
            s.recv(100)
    net.hold("later")
    with socket.create_connection(("127.0.0.1", net.proxy("later", echo)), timeout=60) as s:  # a link that was not there yet
        s.sendall(b"three")
        net.heal()
        s.shutdown(socket.SHUT_WR)
        assert s.recv(100) == b"three" and s.recv(100) == b""
    net.stop()


def test_data_ports_get_proxies_of_their_own(echo):
    """Whole frames, whatever pieces they come in; other frames stay as they are."""
    net = Network(SEED)
    frames = Frames(net, "w1")

    def frame(kind, text):
        return (len(text) + 1).to_bytes(4, "big") + bytes([kind]) + text

    address = b"127.0.0.1:%d" % echo
    said = frame(2, address) + frame(READY, b"at " + address) + frame(REGISTER, address + b"," + address)
    out = b"".join(net.call(frames.change(said[i:i + 3])) for i in range(0, len(said), 3))
    port = b"127.0.0.1:%d" % net.data["w1", echo]
    assert port != address and out == frame(2, address) + frame(READY, b"at " + port) + frame(REGISTER, port + b"," + port)
    with socket.create_connection(("127.0.0.1", net.data["w1", echo]), timeout=60) as s:
        s.sendall(b"x")
        assert s.recv(1) == b"x"
    net.stop()
