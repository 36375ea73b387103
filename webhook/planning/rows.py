"""What would be answered for one pod, and what that means for whoever waits for it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Final

from webhook.core.outcomes import Cause, Outcome

EXISTS: Final = "exists"
_LEFT_ALONE: Final = frozenset({Cause.NOT_A_MEMBER.value, Cause.SET_OF_ONE.value, Cause.SKIP_OPTION.value})
# Names that are listed in one warning.
_NAMED: Final = 3


class Verdict(StrEnum):
    """What an outcome means for whoever waits for the pod."""

    PLACED = "placed"
    ABOVE_CAP = "above the cap"
    MAYBE_ABOVE_CAP = "perhaps above the cap"
    NOT_PLACED = "not placed"
    UNKNOWN = "not known"
    LEFT_ALONE = "left alone"
    EXISTS = "exists"


@dataclass(frozen=True, slots=True)
class Row:
    """What would be answered for one pod. `outcome` and `cause` are Kubernetes-style words of the product.

    `cap` None: none, or not known. `node` "": any that the scheduler likes. `known` False: the dump lacks what says
    how many members there are. `warnings`: whole sentences about the pod, without its name. `patch`: the JSON Patch.
    """

    namespace: str
    pod: str
    outcome: str
    cause: str = ""
    group: str = ""
    node: str = ""
    domain: str = ""
    replicas: int | None = None
    cap: int | None = None
    above_cap: bool = False
    known: bool = True
    reason: str = ""
    warnings: tuple[str, ...] = ()
    patch: Sequence[Any] = field(default_factory=tuple)

    @property
    def verdict(self) -> Verdict:
        """Whether the pod has its place."""
        if not self.known:
            return Verdict.UNKNOWN
        if self.outcome == EXISTS:
            return Verdict.EXISTS
        if self.outcome == Outcome.RETURNED:
            return Verdict.ABOVE_CAP if self.above_cap else Verdict.MAYBE_ABOVE_CAP
        if self.outcome == Outcome.PINNED or (self.outcome == Outcome.UNCHANGED and self.node):
            return Verdict.PLACED
        left_alone = self.outcome == Outcome.UNTOUCHED and self.cause in _LEFT_ALONE
        return Verdict.LEFT_ALONE if left_alone else Verdict.NOT_PLACED


def all_placed(rows: Iterable[Row]) -> bool:
    """Whether every member has its place within the cap.

    Pods that are left alone do not matter, but they are no success either.
    """
    verdicts = {row.verdict for row in rows}
    fine = {Verdict.PLACED, Verdict.EXISTS, Verdict.LEFT_ALONE}
    return verdicts <= fine and not verdicts <= {Verdict.LEFT_ALONE}


def warnings_of(rows: Iterable[Row]) -> Iterator[str]:
    """The warnings of all rows, each once, with the pods that it is about."""
    about: dict[tuple[str, str], list[str]] = {}
    for row in rows:
        for sentence in dict.fromkeys(row.warnings):
            about.setdefault((f"of {row.group}" if row.group else f"in {row.namespace}", sentence), []).append(row.pod)
    for (group, sentence), pods in about.items():
        more = f" and {len(pods) - _NAMED} more" if len(pods) > _NAMED else ""
        yield f"{', '.join(pods[:_NAMED])}{more} {group}: {sentence}"
