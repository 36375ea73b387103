"""The volumes of a pod, as folders of this machine: written as the kubelet writes them, or later than that."""

from __future__ import annotations

import base64
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path

from certs import files
from e2e.api import Api, ApiError

# The real one looks about once a minute.
_INTERVAL = 0.5

Read = Callable[[], Mapping[str, bytes] | None]


class FollowingFolder:
    """A folder whose files become those of a source, all at once, some seconds after the source has changed."""

    def __init__(self, folder: Path, source: Read, delay: float = 0.0) -> None:
        self._folder = folder
        self._source = source
        self._delay = delay
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        folder.mkdir(parents=True, exist_ok=True)

    def start(self) -> None:
        """Wait for the source, write its files at once, then follow it."""
        while not self._ended.is_set():
            found = self._source()
            if found:
                files.write(self._folder, found)
                self._thread.start()
                return
            self._ended.wait(_INTERVAL)

    def stop(self) -> None:
        """Follow no longer."""
        self._ended.set()

    def _run(self) -> None:
        current, seen, since = self._source(), self._source(), time.monotonic()
        while not self._ended.wait(_INTERVAL):
            found = self._source()
            if found != seen:
                seen, since = found, time.monotonic()
            if seen and seen != current and time.monotonic() - since >= self._delay:
                files.write(self._folder, seen)
                current = seen


def secret_files(api: Api, namespace: str, name: str) -> Read:
    """Reads a Secret's content; None while it is not there, or cannot be read."""

    def read() -> Mapping[str, bytes] | None:
        try:
            found = api.find("Secret", name, namespace)
        except ApiError:
            return None
        return found and {key: base64.b64decode(text) for key, text in (found.get("data") or {}).items()}

    return read


def folder_files(folder: Path, names: tuple[str, ...]) -> Read:
    """Reads files of another folder; None while one of them is not there."""

    def read() -> Mapping[str, bytes] | None:
        found = files.read(folder, names)
        return found if len(found) == len(names) else None

    return read
