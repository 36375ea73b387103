"""Files that change together: a reader sees all of the old ones or all of the new ones.

The way the kubelet switches a mounted Secret: the files lie in a directory of their own, a symlink `..data`
leads to it, and each name is a symlink through `..data`. A switch renames a new symlink over the old one. The
directory before the last is removed, the last one stays: whoever has just resolved the old symlink finds it.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Final

_DATA: Final = "..data"
_GENERATION: Final = "..generation-"
_NEW: Final = "..new-"
_NEWEST_KEPT: Final = 2


def write(directory: Path, files: Mapping[str, bytes]) -> bool:
    """Make the directory hold these files, readable by this user alone; whether anything changed.

    A name that was given before and is not now leads nowhere. Raises OSError.
    """
    if read(directory, files) == dict(files):
        return False
    directory.mkdir(parents=True, exist_ok=True)
    generation = directory / f"{_GENERATION}{secrets.token_hex(8)}"
    generation.mkdir(mode=0o700)
    for name, content in files.items():
        _write(generation / name, content)
    _switch(directory / _DATA, generation.name)
    for name in files:
        if _target(directory / name) != f"{_DATA}/{name}":
            _switch(directory / name, f"{_DATA}/{name}")
    _clean(directory, generation.name)
    return True


def read(directory: Path, names: Collection[str]) -> dict[str, bytes]:
    """The content of those files that are there, all of one generation. Raises OSError but for absence."""
    while True:
        generation = _target(directory / _DATA)
        found = {}
        for name in names:
            with contextlib.suppress(FileNotFoundError, NotADirectoryError):
                content = (directory / (generation or _DATA) / name).read_bytes()
                if _target(directory / name) == f"{_DATA}/{name}":
                    found[name] = content
        # A generation that was removed in the meantime has a successor.
        if len(found) == len(names) or _target(directory / _DATA) == generation:
            return found


def _write(path: Path, content: bytes) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(content)


def _target(path: Path) -> str:
    try:
        return os.readlink(path)
    except OSError:  # absent, or something else of that name
        return ""


def _switch(link: Path, target: str) -> None:
    """Make a symlink lead to the target in one step, whatever stands there: a directory is moved out of the way."""
    new = link.parent / f"{_NEW}{secrets.token_hex(8)}"
    new.symlink_to(target)
    if link.is_dir() and not link.is_symlink():
        shutil.rmtree(link)
    new.replace(link)


def _clean(directory: Path, current: str) -> None:
    """Remove what no reader can be on the way to: old generations, and leftovers of a writer that died."""
    for path in directory.glob(f"{_NEW}*"):
        path.unlink(missing_ok=True)
    generations = sorted(directory.glob(f"{_GENERATION}*"), key=lambda path: path.stat().st_mtime_ns)
    old = [path for path in generations if path.name != current]
    for path in old[: max(0, len(old) - (_NEWEST_KEPT - 1))]:
        shutil.rmtree(path, ignore_errors=True)
