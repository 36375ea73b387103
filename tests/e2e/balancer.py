"""A TCP balancer on loopback: what a Service's endpoints and kube-proxy are on a real cluster."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Sequence
from typing import Protocol

from e2e.processes import free_port
from e2e.serving_thread import ServingThread

# How often a backend is asked whether it is ready (s); a kubelet asks less often, and tells more slowly.
PROBE_INTERVAL = 0.5


class Backend(Protocol):
    """A replica as the balancer sees it."""

    port: int

    def ready(self) -> bool:
        """Whether new connections may go there."""
        ...


class Balancer(ServingThread):
    """Deals new connections out in turn among the backends that were ready when they were last asked.

    A connection stays with its backend until one of the two sides ends, as it does with kube-proxy.
    """

    def __init__(self, backends: Sequence[Backend]) -> None:
        super().__init__("balancer")
        self._backends = backends
        self.port = free_port()
        self._turn = 0
        self._joined: set[asyncio.Task[None]] = set()
        self._ready: set[int] = set()

    async def opened(self) -> asyncio.Server:
        """Listen, and begin to ask the backends."""
        for index in range(len(self._backends)):
            self.spawn(self._watch(index))
        return await asyncio.start_server(self._accept, "127.0.0.1", self.port)

    def deal_anew(self) -> None:
        """End every connection, so that the next calls are dealt out in turn; nothing must be under way."""

        def end() -> None:
            for task in self._joined:
                task.cancel()

        self._loop.call_soon_threadsafe(end)

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = self.spawn(self._join(reader, writer))
        self._joined.add(task)
        task.add_done_callback(self._joined.discard)

    def in_service(self) -> int:
        """How many backends get new connections."""
        return len(self._ready)

    async def _watch(self, index: int) -> None:
        probe: Callable[[], bool] = self._backends[index].ready
        while True:
            if await asyncio.to_thread(probe):
                self._ready.add(index)
            else:
                self._ready.discard(index)
            await asyncio.sleep(PROBE_INTERVAL)

    def _next(self) -> Sequence[Backend]:
        """The ready backends, the one whose turn it is first."""
        self._turn += 1
        order = [(self._turn + i) % len(self._backends) for i in range(len(self._backends))]
        return [self._backends[i] for i in order if i in self._ready]

    async def _join(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        for backend in self._next():
            with contextlib.suppress(OSError):
                upstream = await asyncio.open_connection("127.0.0.1", backend.port)
                break
        else:
            writer.transport.abort()
            return
        # The first of the two directions to end, ends both: nobody half-closes a connection here.
        directions = [
            asyncio.ensure_future(_pump(reader, upstream[1])),
            asyncio.ensure_future(_pump(upstream[0], writer)),
        ]
        try:
            await asyncio.wait(directions, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for direction in directions:
                direction.cancel()
            await asyncio.gather(*directions, return_exceptions=True)
            for side in (writer, upstream[1]):
                side.transport.abort()


async def _pump(source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
    with contextlib.suppress(OSError):
        while piece := await source.read(1 << 16):
            sink.write(piece)
            await sink.drain()
