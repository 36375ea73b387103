"""What a Service is to the API server: one address, behind it those pods that are ready."""

from __future__ import annotations

import contextlib
import itertools
import socket
import threading
from collections.abc import Callable, Sequence

_PIECE = 1 << 16


class Balancer:
    """Passes each connection to the port on loopback that is next; without one it is refused, as by a Service."""

    def __init__(self, port: int, backends: Callable[[], Sequence[int]]) -> None:
        self._backends = backends
        self._turns = itertools.count()
        self._listener = socket.create_server(("127.0.0.1", port), backlog=512)
        self._thread = threading.Thread(target=self._accept, daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Close the address; connections that are open stay so until one side closes them."""
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._thread.join()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client: socket.socket) -> None:
        client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        server = self._connect()
        if server is None:
            client.close()
            return
        back = threading.Thread(target=_pump, args=(server, client), daemon=True)
        back.start()
        _pump(client, server)
        back.join()
        client.close()
        server.close()

    def _connect(self) -> socket.socket | None:
        ports = list(self._backends())
        for turn in itertools.islice(self._turns, len(ports)):
            with contextlib.suppress(OSError):
                server = socket.create_connection(("127.0.0.1", ports[turn % len(ports)]), timeout=5)
                server.settimeout(None)
                server.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                return server
        return None


def _pump(source: socket.socket, sink: socket.socket) -> None:
    with contextlib.suppress(OSError):
        while piece := source.recv(_PIECE):
            sink.sendall(piece)
    # The other direction may go on: a half-closed connection is one still.
    with contextlib.suppress(OSError):
        sink.shutdown(socket.SHUT_WR)
