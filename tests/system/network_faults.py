"""A network that fails when it is told to: TCP proxies in front of the ports of a cluster, in one thread. No kernel is asked for it, so that it
is the same everywhere. What passes a link can be held (a partition: whoever sends hears nothing, and nobody hears that he is gone), slowed down,
lost now and then (which over TCP is a pause), or cut (both ends hear of it)."""
import asyncio
import random
import re
import socket
import struct
import threading

REGISTER, READY = 1, 3  # kinds of control frames that say where the data port of a task host is
ADDRESS = re.compile(rb"127\.0\.0\.1:(\d{5})\b")
PASSES = (0.0, 0.0)


class Link:
    """Everything between two parties, over however many connections."""

    def __init__(self, name):
        self.name = name
        self.held, self.delay, self.loss = False, PASSES, 0.0
        self.free = asyncio.Event()
        self.free.set()
        self.connections = set()

    async def crossed(self, rnd):
        while self.held:
            await self.free.wait()
        pause = rnd.uniform(*self.delay) + (rnd.uniform(0.2, 0.8) if rnd.random() < self.loss else 0)
        if pause:
            await asyncio.sleep(pause)


def reset(writer):
    """Closed as a process that dies closes: nothing that is on its way comes any more."""
    s = writer.get_extra_info("socket")
    if s is not None:
        try:
            s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        except OSError:
            pass
    writer.transport.abort()


class Network:
    """Threads: its own, and any that calls."""

    def __init__(self, seed):
        self.rnd = random.Random(seed)
        self.links, self.servers, self.data, self.rules = {}, [], {}, []
        self.loop = asyncio.new_event_loop()
        self.thread = threading.Thread(target=self.loop.run_forever, daemon=True)
        self.thread.start()

    def call(self, what):
        return asyncio.run_coroutine_threadsafe(what, self.loop).result(60)

    # ---- what the tests say ----

    def proxy(self, name, port, worker=None):
        """A port that leads to another, both on loopback. worker: it speaks here, and its data ports get a proxy each, "WORKER.data"."""
        return self.call(self.listen(name, port, worker))

    def hold(self, names):
        self.change(names, held=True)

    def slow(self, names, delay=PASSES, loss=0.0):
        self.change(names, delay=delay, loss=loss)

    def heal(self, names=""):
        self.change(names, held=False, delay=PASSES, loss=0.0)

    def change(self, names, **how):
        """names: a pattern, for links that there are and those to come."""
        async def do():
            self.rules.append((names, how))
            for link in self.links.values():
                self.follow(link, names, how)
        self.call(do())

    def cut(self, names):
        async def do():
            count = 0
            for link in self.links.values():
                if re.search(names, link.name):
                    for w in list(link.connections):
                        reset(w)
                        count += 1
            return count
        return self.call(do())

    def stop(self):
        async def do():
            for s in self.servers:
                s.close()
            for link in self.links.values():
                for w in list(link.connections):
                    reset(w)
            others = asyncio.all_tasks() - {asyncio.current_task()}
            for t in others:
                t.cancel()
            await asyncio.gather(*others, return_exceptions=True)
        self.call(do())
        self.loop.call_soon_threadsafe(self.loop.stop)
        self.thread.join()
        self.loop.close()

    # ---- the thread ----

    @staticmethod
    def follow(link, names, how):
        if re.search(names, link.name):
            for k, v in how.items():
                setattr(link, k, v)
            (link.free.clear if link.held else link.free.set)()

    def link(self, name):
        if name not in self.links:
            self.links[name] = Link(name)
            for names, how in self.rules:
                self.follow(self.links[name], names, how)
        return self.links[name]

    async def listen(self, name, port, worker):
        link = self.link(name)

        async def connected(reader, writer):
            await self.connect(link, reader, writer, port, worker)

        server = await asyncio.start_server(connected, "127.0.0.1", 0)
        self.servers.append(server)
        return server.sockets[0].getsockname()[1]

    async def connect(self, link, reader, writer, port, worker):
        link.connections.add(writer)
        there, whole = None, False
        try:
            await link.crossed(self.rnd)
            from_there, there = await asyncio.open_connection("127.0.0.1", port)
            link.connections.add(there)
            frames = Frames(self, worker) if worker else None
            ways = [asyncio.ensure_future(self.pass_on(link, a, b, f)) for a, b, f in ((reader, there, frames), (from_there, writer, None))]
            await asyncio.wait(ways, return_when=asyncio.FIRST_EXCEPTION)
            whole = all(w.done() and not w.exception() for w in ways)
            for w in ways:
                w.cancel()
            await asyncio.gather(*ways, return_exceptions=True)
        except (OSError, asyncio.CancelledError):
            pass
        finally:
            for w in (writer, there):
                link.connections.discard(w)
                if w is not None:
                    w.close() if whole else reset(w)

    async def pass_on(self, link, reader, writer, frames):
        while data := await reader.read(1 << 16):
            await link.crossed(self.rnd)
            if frames:
                data = await frames.change(data)
            writer.write(data)
            await writer.drain()
        await link.crossed(self.rnd)
        writer.write_eof()

    async def data_port(self, worker, port):
        if (worker, port) not in self.data:
            self.data[worker, port] = await self.listen(f"{worker}.data", port, None)
        return self.data[worker, port]


class Frames:
    """What a worker says to a coordinator: where its hosts listen is said to be where a proxy does. An address stays as long as it was."""

    def __init__(self, network, worker):
        self.network, self.worker, self.rest = network, worker, b""

    async def change(self, data):
        self.rest += data
        out = b""
        while len(self.rest) > 4 and len(self.rest) >= (end := 4 + int.from_bytes(self.rest[:4], "big")):
            frame, self.rest = self.rest[:end], self.rest[end:]
            for m in ADDRESS.finditer(frame) if frame[4] in (REGISTER, READY) else ():
                port = b"%d" % await self.network.data_port(self.worker, int(m[1]))
                assert len(port) == len(m[1])
                frame = frame[:m.start(1)] + port + frame[m.end(1):]
            out += frame
        return out
