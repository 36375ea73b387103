"""Small dictionaries that copies share until one of them changes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Generic, TypeVar

Key = TypeVar("Key")
Name = TypeVar("Name")
Value = TypeVar("Value")


class Shelves(Generic[Key, Name, Value]):
    """Small dictionaries by key. A copy costs as much as there are keys; what is in them is copied when it changes."""

    __slots__ = ("_all", "_own")

    def __init__(self) -> None:
        self._all: dict[Key, dict[Name, Value]] = {}
        self._own: set[Key] = set()

    def at(self, key: Key) -> Mapping[Name, Value]:
        """What is at the key."""
        return self._all.get(key, {})

    def own(self, key: Key) -> dict[Name, Value]:
        """What is at the key, to be changed."""
        if key not in self._own:
            self._own.add(key)
            self._all[key] = dict(self._all.get(key, {}))
        return self._all[key]

    def drop(self, key: Key, name: Name) -> None:
        """Take one away that is there."""
        shelf = self.own(key)
        del shelf[name]
        if not shelf:
            self._own.discard(key)
            del self._all[key]

    def copy(self) -> Shelves[Key, Name, Value]:
        """Another one, which changes apart from this one. Neither owns what they share."""
        other = Shelves[Key, Name, Value]()
        other._all = dict(self._all)
        self._own = set()
        return other
