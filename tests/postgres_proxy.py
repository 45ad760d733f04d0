"""A way to a PostgreSQL server, on loopback, that is cut at the worst moment.

A commit is a message of its own, so the proxy can tell it from what goes before: it cuts the
client off before the server gets it, after the server has carried it out, or while the server
gets it late.
"""

import select
import socket
import time
from contextlib import closing, contextmanager, suppress
from threading import Event, Thread

COMMIT = b"Q\x00\x00\x00\x0bCOMMIT\x00"
BEFORE, AFTER, LATE = "before", "after", "late"
_DELAY = 0.6  # seconds by which a late commit is late


class Proxy:
    """Forwards to a server; `cut_at` names when the next commit's connection is cut."""

    def __init__(self, port):
        self._server = port
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        self.cut_at = None
        self.stays_away = False
        self.commits = 0
        self._pairs = []
        self._ended = Event()
        self._threads = [Thread(target=self._accept, daemon=True)]
        self._threads[0].start()

    def cut_all(self):
        """Cut every connection that is open now."""
        for pair in self._pairs:
            for end in pair:
                with suppress(OSError):
                    end.shutdown(socket.SHUT_RDWR)

    def close(self):
        self._ended.set()
        self.cut_all()
        for thread in self._threads:
            thread.join(5)
        self._listener.close()

    def _accept(self):
        while not self._ended.is_set():
            if not select.select([self._listener], [], [], 0.05)[0]:
                continue
            client, _ = self._listener.accept()
            if self.stays_away:
                client.close()
                continue
            with suppress(OSError):
                server = socket.create_connection(("127.0.0.1", self._server))
                self._pairs.append((client, server))
                thread = Thread(target=self._serve, args=(client, server), daemon=True)
                self._threads.append(thread)
                thread.start()

    def _serve(self, client, server):
        with closing(client), closing(server), suppress(OSError):
            while not self._ended.is_set():
                ready, _, _ = select.select([client, server], [], [], 0.05)
                if server in ready and not _forward(server, client):
                    return
                if client in ready:
                    data = client.recv(65536)
                    if not data:
                        return
                    if COMMIT in data:
                        self.commits += 1
                        if self._is_cut(client, server, data):
                            return
                    server.sendall(data)

    def _is_cut(self, client, server, data):
        moment, self.cut_at = self.cut_at, None
        if moment is None:
            return False
        if moment == AFTER:
            server.sendall(data)
            server.recv(65536)  # it has answered, and no one hears it
        client.close()
        if moment == LATE:
            time.sleep(_DELAY)
            server.sendall(data)
            server.recv(65536)
        return True


def _forward(source, target):
    data = source.recv(65536)
    if data:
        target.sendall(data)
    return bool(data)


@contextmanager
def proxied(port):
    """Put a proxy before the server at `port`."""
    proxy = Proxy(port)
    try:
        yield proxy
    finally:
        proxy.close()
