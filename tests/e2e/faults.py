"""The rules of the fault proxy: which calls meet which fault."""

from __future__ import annotations

import re
from collections.abc import Container, Iterable
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Delay:
    """Forward the call later, even if the client has given up by then: a late write."""

    seconds: float


@dataclass(frozen=True)
class DelayAnswer:
    """Forward the call at once and hold its answer back for a while."""

    seconds: float


@dataclass(frozen=True)
class Stall:
    """Swallow the call: it is never forwarded and never answered, until the client gives up."""


@dataclass(frozen=True)
class Reset:
    """Reset the connection in place of forwarding the call."""


@dataclass(frozen=True)
class Answer:
    """Answer in the API server's stead, e.g. 429, 500, 503 or 504; the call is not forwarded."""

    status: int
    reason: str = "FaultInjected"
    retry_after: int | None = None


@dataclass(frozen=True)
class DropAnswer:
    """Forward the call, wait for the answer, drop it; then reset the connection or leave the client waiting."""

    stall: bool = False


@dataclass(frozen=True)
class ShiftDate:
    """Shift the `Date` header of the answer: the API server's clock as the client sees it."""

    seconds: float


Fault = Delay | DelayAnswer | Stall | Reset | Answer | DropAnswer | ShiftDate


@dataclass(frozen=True)
class Rule:
    """Which calls meet a fault. All rules that match a call apply, in their order."""

    fault: Fault
    method: str | None = None
    path: str = ""
    """A regular expression, searched for in path and query."""
    calls: Container[int] | None = None
    """Which of the calls that match meet the fault, from 1: `(2,)`, `range(1, 4)`; all by default."""

    def matches(self, method: str, target: str) -> bool:
        """Whether the call is one that this rule counts."""
        return self.method in (None, method) and re.search(self.path, target) is not None


@dataclass
class Call:
    """A call that the proxy saw.

    `status` is what the API server (or `Answer`) said, even if dropped; `seconds` how long it took to say it.
    """

    method: str
    target: str
    body: bytes
    faults: tuple[Fault, ...] = ()
    status: int | None = None
    seconds: float = 0.0


@dataclass
class CountedRules:
    """Rules, with how many calls each has matched."""

    rules: tuple[Rule, ...]
    counts: list[int] = field(init=False)

    def __post_init__(self) -> None:
        self.counts = [0] * len(self.rules)

    def faults(self, method: str, target: str) -> Iterable[Fault]:
        """The faults that this call meets; it is counted."""
        for i, rule in enumerate(self.rules):
            if rule.matches(method, target):
                self.counts[i] += 1
                if rule.calls is None or self.counts[i] in rule.calls:
                    yield rule.fault
