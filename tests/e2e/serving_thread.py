"""Servers on asyncio that are served from a thread of their own."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Coroutine
from types import TracebackType
from typing import Any, Self

from e2e.waiting import wait_until


class ServingThread:
    """A server for the length of a `with` block; what derives from it opens it, and spawns its work as tasks."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._listening = threading.Event()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._serve()), name=name, daemon=True)

    async def opened(self) -> asyncio.Server:
        """Open the server; called in its thread."""
        raise NotImplementedError

    def spawn(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        """Work on something until it is done or the server ends; called in its thread."""
        task = self._loop.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    def __enter__(self) -> Self:
        self._thread.start()
        wait_until(lambda: self._listening.is_set() or not self._thread.is_alive(), f"the {self._name} to listen", 10)
        if not self._thread.is_alive():
            raise OSError(f"the {self._name} could not listen")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._loop.call_soon_threadsafe(self._stopping.set)
        self._thread.join()

    async def _serve(self) -> None:
        self._loop, self._stopping = asyncio.get_running_loop(), asyncio.Event()
        self._tasks: set[asyncio.Task[None]] = set()
        server = await self.opened()
        self._listening.set()
        await self._stopping.wait()
        server.close()
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        # Aborted transports close their sockets in the next turns of the loop.
        for _ in range(3):
            await asyncio.sleep(0)
