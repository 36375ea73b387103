"""A TCP balancer on loopback: what a Service's endpoints and kube-proxy are on a real cluster."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import Protocol

from e2e.processes import free_port
from e2e.waiting import wait_until

# How often a backend is asked whether it is ready (s); a kubelet asks less often, and tells more slowly.
PROBE_INTERVAL = 0.2


class Backend(Protocol):
    """A replica as the balancer sees it."""

    port: int

    def ready(self) -> bool:
        """Whether new connections may go there."""
        ...


class Balancer:
    """Deals new connections out in turn among the backends that were ready when they were last asked.

    A connection stays with its backend until one of the two sides ends, as it does with kube-proxy.
    """

    def __init__(self, backends: Sequence[Backend]) -> None:
        self._backends = backends
        self.port = free_port()
        self._turn = 0
        self._ready: set[int] = set()
        self._listening = threading.Event()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._serve()), name="balancer", daemon=True)

    def __enter__(self) -> Balancer:
        self._thread.start()
        wait_until(self._listening.is_set, "the balancer to listen", 10)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._loop.call_soon_threadsafe(self._stopping.set)
        self._thread.join()

    def in_service(self) -> int:
        """How many backends get new connections."""
        return len(self._ready)

    async def _serve(self) -> None:
        self._loop, self._stopping = asyncio.get_running_loop(), asyncio.Event()
        self._tasks: set[asyncio.Task[None]] = set()
        server = await asyncio.start_server(self._accept, "127.0.0.1", self.port)
        for index in range(len(self._backends)):
            self._spawn(self._watch(index))
        self._listening.set()
        await self._stopping.wait()
        server.close()
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        # Aborted transports close their sockets in the next turns of the loop.
        for _ in range(3):
            await asyncio.sleep(0)

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._spawn(self._join(reader, writer))

    def _spawn(self, work: asyncio._CoroutineLike[None]) -> None:
        task = self._loop.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

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
