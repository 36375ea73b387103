"""A deterministic scheduler: actors are greenlets, each stops before every call, choices come from one source."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Protocol

from greenlet import greenlet

# What a call takes in virtual time (s).
CALL_TIME = 0.004


class Choices(Protocol):
    """Where every choice of a run comes from."""

    def index(self, count: int) -> int:
        """A number below `count`."""
        ...

    def chance(self, probability: float) -> bool:
        """Whether something of this probability happens."""
        ...

    def between(self, low: float, high: float) -> float:
        """A number in the interval."""
        ...


class RandomChoices:
    """Seeded choices."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)

    def index(self, count: int) -> int:
        return self.random.randrange(count) if count > 1 else 0

    def chance(self, probability: float) -> bool:
        return probability > 0 and self.random.random() < probability

    def between(self, low: float, high: float) -> float:
        return self.random.uniform(low, high)


class EveryChoice:
    """Depth-first enumeration: each run follows `path` and then the first option; `advance` makes the next path.

    After `depth` choices the options are taken in turn: enumerated is only what comes before. Probabilities are
    not choices here: what may happen is given by the run.
    """

    def __init__(self, depth: int = 1000) -> None:
        self.path: list[int] = []
        self._depth = depth
        self._options: list[int] = []
        self._turns = self._waits = 0

    def start(self) -> None:
        self._options = []
        self._turns = self._waits = 0

    def index(self, count: int) -> int:
        if count <= 1:
            return 0
        depth = len(self._options)
        if depth == self._depth:
            self._turns += 1
            return self._turns % count
        self._options.append(count)
        if depth == len(self.path):
            self.path.append(0)
        return self.path[depth]

    def chance(self, probability: float) -> bool:
        return False

    def between(self, low: float, high: float) -> float:
        # Not always the same: two that wait for equally long would lose against each other for ever.
        self._waits += 1
        return low + (high - low) * (self._waits * 5 % 7) / 7

    def advance(self) -> bool:
        """Go to the next path; False when all were taken."""
        self.path = self.path[: len(self._options)]
        while self.path:
            self.path[-1] += 1
            if self.path[-1] < self._options[len(self.path) - 1]:
                return True
            self.path.pop()
        return False


@dataclass(frozen=True)
class Call:
    """A call that an actor is about to make."""

    verb: str
    resource: str
    name: str = ""
    keys: frozenset[str] = frozenset()


@dataclass
class Actor:
    """Something that happens one call at a time."""

    name: str
    green: Any = None
    pending: Call | None = None
    wake_at: float | None = None
    done: bool = False
    result: Any = None


@dataclass
class World:
    """Virtual time and the actors in it."""

    choices: Choices
    now: float = 1_800_000_000.0
    actors: list[Actor] = field(default_factory=list)
    # Calls at which another actor may be chosen; None: at all of them.
    yields_at: Callable[[Call], bool] | None = None

    def clock(self) -> float:
        return self.now

    def spawn(self, name: str, work: Callable[[], Any]) -> Actor:
        """Add an actor; it begins when it is first chosen."""
        actor = Actor(name)

        def run() -> None:
            actor.result = work()
            actor.done = True

        actor.green = greenlet(run)
        self.actors.append(actor)
        return actor

    def current(self) -> Actor:
        running = greenlet.getcurrent()
        return next(actor for actor in self.actors if actor.green is running)

    def before_call(self, call: Call) -> None:
        """The running actor stops here until it is chosen again."""
        self.now += CALL_TIME
        if self.yields_at is not None and not self.yields_at(call):
            return
        actor = self.current()
        actor.pending = call
        actor.green.parent.switch()
        actor.pending = None

    def sleep(self, seconds: float) -> None:
        """The running actor goes on when so much virtual time has passed."""
        actor = self.current()
        actor.wake_at = self.now + seconds
        actor.green.parent.switch()

    def step(self, actor: Actor) -> None:
        """Let one actor go to its next stop."""
        if actor.wake_at is not None:
            self.now = max(self.now, actor.wake_at)
            actor.wake_at = None
        actor.green.parent = greenlet.getcurrent()
        actor.green.switch()

    def run(self) -> None:
        """Choose among the actors that can go on until all are done; time passes when all sleep."""
        while True:
            alive = [actor for actor in self.actors if not actor.done]
            if not alive:
                return
            ready = [actor for actor in alive if actor.wake_at is None or actor.wake_at <= self.now]
            if not ready:
                self.now = min(actor.wake_at for actor in alive if actor.wake_at is not None)
                continue
            self.step(ready[self.choices.index(len(ready))])

    def run_until(self, actor: Actor, stop: Callable[[Call], bool] | None = None) -> None:
        """Run one actor alone until it is about to make a call that `stop` accepts, or to its end."""
        while not actor.done:
            if actor.pending is not None and stop is not None and stop(actor.pending):
                return
            self.step(actor)


def reads(resource: str) -> Callable[[Call], bool]:
    """A predicate of calls: a LIST of this resource."""
    return lambda call: call.verb == "list" and call.resource == resource


def writes(key_part: str = "") -> Callable[[Call], bool]:
    """A predicate of calls: a write of a claim annotation whose key contains this."""
    return lambda call: call.verb == "patch" and any(key_part in key for key in call.keys)
