"""What may happen at a replica's call, and the door through which it happens."""

from __future__ import annotations

import json
import re
import zlib
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from webhook.cluster.door import CLAIMS, Listing, Manifest, Resource, WatchEvent
from webhook.cluster.memory import MemoryCluster
from webhook.core.keys import ENTRY_PREFIX, LOCK
from webhook.errors import ApiError, TooManyRequests, UnknownOutcome

from .world import Call, World

# The API server's request time-out: no create and no write of a request can land later (s).
REQUEST_TIMEOUT = 60.0
TOKEN = re.compile(r"token\d{6}")


@dataclass(frozen=True)
class Rates:
    """Probabilities per call of each fault."""

    fail: float = 0.0
    lose_answer: float = 0.0
    land_late: float = 0.0
    pause: float = 0.0
    busy: float = 0.0
    foreign_write: float = 0.0
    # A pause before a list or after a write, and tidb-operator v1 putting the annotations of before a write back.
    pause_after_write: float = 0.0
    pause_before_list: float = 0.0
    stale_copy: float = 0.0


@dataclass
class Trouble:
    """The faults that were injected, by kind."""

    counts: Counter[str] = field(default_factory=Counter)

    def note(self, kind: str) -> None:
        self.counts[kind] += 1


@dataclass
class ReplicaDoor:
    """A replica's door: a `Door` onto the shared cluster, with faults, through API servers whose clocks differ."""

    world: World
    cluster: MemoryCluster
    trouble: Trouble
    rates: Rates = Rates()
    clock_offsets: tuple[float, ...] = (0.0,)
    # Puts a claim's older annotations back, if that takes no answer's last record.
    write_back: Callable[[str, Mapping[str, str]], None] = lambda name, old: None
    # The tokens in the order in which they were first swapped in, by any replica.
    swapped: dict[str, int] = field(default_factory=dict)
    hit: set[str] = field(default_factory=set)

    def list(
        self,
        resource: Resource,
        *,
        namespace: str = "",
        labels: Mapping[str, str] | None = None,
        fields: Mapping[str, str] | None = None,
        resource_version: str = "",
        timeout: float,
    ) -> Listing:
        call = Call("list", resource.plural if labels is not None else f"all {resource.plural}")
        listing: Listing = self._make(
            call,
            timeout,
            lambda: self.cluster.list(
                resource,
                namespace=namespace,
                labels=labels,
                fields=fields,
                resource_version=resource_version,
                timeout=timeout,
            ),
        )
        offset = self._clock_offset() if self._is_shared(call) else 0.0
        return replace(listing, date=int(self.world.now + offset))

    def scan(
        self, resource: Resource, visit: Callable[[Manifest], object], *, resource_version: str = "", timeout: float
    ) -> str:
        listing = self.list(resource, resource_version=resource_version, timeout=timeout)
        for item in listing.items:
            visit(item)
        return listing.resource_version

    def watch(self, resource: Resource, **options: Any) -> Iterator[WatchEvent]:
        raise AssertionError("the protocol watches nothing")

    def get(self, resource: Resource, name: str, *, namespace: str = "", timeout: float) -> Manifest:
        call = Call("get", resource.plural, name)
        found: Manifest = self._make(
            call, timeout, lambda: self.cluster.get(resource, name, namespace=namespace, timeout=timeout)
        )
        return found

    def merge_patch(
        self, resource: Resource, name: str, patch: Manifest, *, namespace: str = "", timeout: float
    ) -> Manifest:
        keys = frozenset(patch.get("metadata", {}).get("annotations") or {})
        old = self._annotations(name)
        stored: Manifest = self._make(
            Call("patch", resource.plural, name, keys),
            timeout,
            lambda: self._apply(resource, name, patch, namespace),
        )
        if self.world.choices.chance(self.rates.stale_copy):
            self.world.spawn("stale copy", lambda: self._write_back_soon(name, old))
        if self.world.choices.chance(self.rates.pause_after_write):
            self._note("pause")
            self.world.sleep(self.world.choices.between(0.05, 3.0))
        return stored

    def _apply(self, resource: Resource, name: str, patch: Manifest, namespace: str) -> Manifest:
        stored = self.cluster.merge_patch(resource, name, patch, namespace=namespace, timeout=1)
        ledger = (patch["metadata"].get("annotations") or {}).get(LOCK) or ""
        for token in TOKEN.findall(ledger):
            self.swapped.setdefault(token, len(self.swapped))
        return stored

    def _write_back_soon(self, name: str, old: Mapping[str, str]) -> None:
        if self.world.choices.chance(0.5):
            self.world.sleep(self.world.choices.between(0.0, 0.2))
        self.write_back(name, old)

    def _annotations(self, name: str) -> Mapping[str, str]:
        try:
            claim = self.cluster.get(CLAIMS, name, namespace="shop", timeout=1)
        except ApiError:
            return {}
        return dict(claim["metadata"].get("annotations") or {})

    def create(self, resource: Resource, manifest: Manifest, *, namespace: str = "", timeout: float) -> Manifest:
        raise AssertionError("the protocol creates nothing")

    def delete(self, resource: Resource, name: str, **conditions: Any) -> None:
        raise AssertionError("the protocol deletes nothing")

    def _make(self, call: Call, timeout: float, apply: Callable[[], Any]) -> Any:
        if not self._is_shared(call):
            return self._read_aside(call, apply)
        self.world.before_call(call)
        choices, rates = self.world.choices, self.rates
        if call.verb == "list" and choices.chance(rates.pause_before_list):
            self._note("pause")
            self.world.sleep(choices.between(0.05, 3.0))
        if choices.chance(rates.pause):
            self._note("pause")
            self.world.sleep(choices.between(0.05, 15.0))
        if call.verb == "patch" and choices.chance(rates.foreign_write):
            self._note("foreign write")
            self._write_as_a_stranger(call.name)
        if choices.chance(rates.busy):
            self._note("429")
            raise TooManyRequests(call.verb, call.resource, call.name, retry_after=0.2)
        if choices.chance(rates.fail):
            self._note("failed call")
            raise UnknownOutcome(call.verb, call.resource, call.name)
        if call.verb == "patch" and choices.chance(rates.land_late):
            self._note("late write")
            self._land_late(apply)
            self.world.now += min(timeout, choices.between(0.0, 2.0))
            raise UnknownOutcome(call.verb, call.resource, call.name)
        result = apply()
        if choices.chance(rates.lose_answer):
            self._note("lost answer")
            raise UnknownOutcome(call.verb, call.resource, call.name)
        return result

    def _clock_offset(self) -> float:
        return self.clock_offsets[self.world.choices.index(len(self.clock_offsets))]

    def _is_shared(self, call: Call) -> bool:
        """Whether the call is about what replicas share: the claims and the group's pods."""
        return call.resource in ("persistentvolumeclaims", "pods")

    def _read_aside(self, call: Call, apply: Callable[[], Any]) -> Any:
        """A read of nodes, volumes or owners: it may fail, but nothing depends on when it happens.

        Whether it fails depends on the moment and not on how many such reads there were before, so that the
        seeds of a run keep their meaning when the product reads something more.
        """
        lot = zlib.crc32(f"{call.resource}@{self.world.now:.6f}".encode()) / 2**32
        if lot < self.rates.fail:
            self._note("failed call")
            raise UnknownOutcome(call.verb, call.resource, call.name)
        return apply()

    def _note(self, kind: str) -> None:
        self.trouble.note(kind)
        self.hit.add(self.world.current().name)

    def _land_late(self, apply: Callable[[], Any]) -> None:
        delay = self.world.choices.between(0.01, REQUEST_TIMEOUT)

        def land() -> None:
            self.world.sleep(delay)
            try:
                apply()
            except ApiError:
                return

        self.world.spawn("late write", land)

    def _write_as_a_stranger(self, name: str) -> None:
        try:
            claim = self.cluster.get(CLAIMS, name, namespace="shop", timeout=1)
        except ApiError:
            return
        count = int(claim["metadata"].get("annotations", {}).get("example.test/touched", "0"))
        patch = {"metadata": {"annotations": {"example.test/touched": str(count + 1)}}}
        self.cluster.merge_patch(CLAIMS, name, patch, namespace="shop", timeout=1)


class NewerFormatDoor(ReplicaDoor):
    """A replica of the next minor version: it writes records with `v` 2, and reads both."""

    def list(self, resource: Resource, **options: Any) -> Listing:
        listing = super().list(resource, **options)
        if resource is not CLAIMS:
            return listing
        return replace(listing, items=tuple(_with_records(item, 2, 1) for item in listing.items))

    def merge_patch(self, resource: Resource, name: str, patch: Manifest, **options: Any) -> Manifest:
        return super().merge_patch(resource, name, _with_records(patch, 1, 2), **options)


def _with_records(manifest: Manifest, old: int, new: int) -> Manifest:
    annotations = manifest.get("metadata", {}).get("annotations") or {}
    converted = {key: _converted(key, value, old, new) for key, value in annotations.items()}
    return {**manifest, "metadata": {**manifest["metadata"], "annotations": converted}}


def _converted(key: str, value: str | None, old: int, new: int) -> str | None:
    if value is None or not (key == LOCK or key.startswith(ENTRY_PREFIX)):
        return value
    record = json.loads(value)
    return json.dumps({**record, "v": new}) if record.get("v") == old else value
