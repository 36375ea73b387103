"""What rounds are given to work with."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from webhook.core.rounds import Decide
from webhook.locking.memory import AnswerMemory
from webhook.locking.protocol import GroupCluster


@dataclass(frozen=True, slots=True)
class RoundTools:
    """What a round is given: the cluster, this process's memory, the decision, time and chance.

    `expiry` (s): after how long an entry is over whose token no visible pod carries. `pause` waits a number
    of seconds; `chance` gives a number in [0, 1); `tokens` never repeats itself.
    """

    cluster: GroupCluster
    memory: AnswerMemory
    decide: Decide
    expiry: float
    pause: Callable[[float], None]
    chance: Callable[[], float]
    tokens: Iterator[str]
