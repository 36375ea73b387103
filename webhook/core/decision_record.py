"""The decision record on a pod: what was decided for it, and the token that ends its entry in the ledger.

The record is compact JSON in the annotation `decision`, at most 2 KiB. Anyone may write there, so
reading never raises: a record is either whole or not there.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from webhook.core import keys
from webhook.core.filtering import AND
from webhook.core.model import Decision
from webhook.core.objects import Pod
from webhook.core.outcomes import Cause
from webhook.core.shapes import is_unicode

VERSION: Final = 1

# The record goes wherever the pod goes, into every watch; annotations of a pod share 256 KiB.
SIZE_LIMIT: Final = 2048

# How reasons begin that are no node's: unbound, missing or lost claims, terms that cannot be used.
_OF_THE_POD: Final = (
    "pod has ",
    "pod affinity ",
    "the pod's ",
    "persistentvolumeclaim ",
    "a topology spread constraint ",
)

# How many counts and reasons, and how many characters of each text, are kept: the first row that fits.
# The fields that are always kept come to 1.2 KiB with the longest names that Kubernetes allows.
_ROOM: Final = ((64, 512), (32, 256), (16, 160), (8, 120), (4, 80), (2, 60), (1, 40), (0, 0))
# Where a text was cut.
_MARK: Final = " .."


@dataclass(frozen=True, slots=True)
class DecisionRecord:
    """What the annotation `decision` of a pod says.

    `token` "" where nothing was put in the ledger (a dry run, a guard). `hostname` is set only where the
    pin is a nodeSelector on the hostname label; `key_exists` where we require the topology key on the node, and
    `avoids` the values that we forbid it.
    """

    version: int
    token: str
    member: str
    node: str
    domain: str
    topology_key: str
    outcome: str
    cause: str = ""
    hostname: str = ""
    key_exists: bool = False
    avoids: tuple[str, ...] = ()


def record_from(annotation: str | None) -> DecisionRecord | None:
    """Read an annotation `decision`; None if it is absent, unreadable or of a version that is not ours."""
    try:
        raw = json.loads(annotation or "null")
    except (ValueError, TypeError, RecursionError):
        return None
    if not isinstance(raw, dict) or type(raw.get("v")) is not int or raw["v"] != VERSION:
        return None
    if not is_unicode(json.dumps(raw, ensure_ascii=False)):
        return None
    texts = {name: raw.get(key, "") for name, key in _FIELDS.items()}
    if not all(isinstance(text, str) for text in texts.values()) or not texts["member"] or not texts["outcome"]:
        return None
    avoids = raw.get("avoids", [])
    if not isinstance(avoids, list) or not all(isinstance(domain, str) for domain in avoids):
        return None
    return DecisionRecord(version=VERSION, key_exists=raw.get("keyExists") is True, avoids=tuple(avoids), **texts)


def token_of(pod: Pod) -> str:
    """The token that the pod carries: that of its decision record, if this is one for its own name, else "".

    A record under another name came with a copied template and proves nothing about this pod.
    """
    record = record_from(pod.annotations.get(keys.DECISION))
    return record.token if record is not None and record.member == pod.name else ""


def decision_annotation(
    decision: Decision,
    member: str,
    token: str | None,
    *,
    selector_pin: bool = False,
    key_exists: bool = False,
    avoids: Sequence[str] = (),
) -> str:
    """The value of the annotation `decision`: compact JSON of at most `SIZE_LIMIT` characters, all ASCII.

    The same decision gives the same text. `token` None: nothing is in the ledger. `selector_pin`: the pin
    is a nodeSelector; `key_exists`: we require the topology key on the node; `avoids`: and forbid it these values.
    Counts, reasons and texts are cut as far as needed; names never are.
    """
    kept = _kept(decision, member, token)
    kept |= {"hostname": decision.hostname} if selector_pin else {}
    kept |= {"keyExists": True} if key_exists else {}
    kept |= {"avoids": list(avoids)} if avoids else {}
    texts = (_compact(kept | _explained(decision, items, characters)) for items, characters in _ROOM)
    return next((text for text in texts if len(text) <= SIZE_LIMIT), _compact(kept))


def grouped_reasons(passed_over: Mapping[str, str]) -> tuple[str, ...]:
    """Reasons by node, grouped and counted as `kubectl describe` shows the scheduler's.

    "3 node(s) were unschedulable", "2 Insufficient cpu", …: the most frequent first, then by text. A node for which
    there are several reasons counts for each. What is said of the pod, and so holds for all nodes, is not counted.
    """
    counted = Counter(each for reason in passed_over.values() for each in reason.split(AND))
    ordered = sorted(counted.items(), key=lambda item: (-item[1], item[0]))
    return tuple(reason if reason.startswith(_OF_THE_POD) else f"{count} {reason}" for reason, count in ordered)


def largest_counts(counts: Mapping[str, int]) -> tuple[tuple[str, int], ...]:
    """Domains with their members, the fullest first, then by name; domains without any are left out."""
    used = ((domain, count) for domain, count in counts.items() if count > 0)
    return tuple(sorted(used, key=lambda item: (-item[1], item[0])))


_FIELDS: Final = {
    "token": "token",
    "member": "member",
    "node": "node",
    "domain": "domain",
    "topology_key": "topologyKey",
    "outcome": "outcome",
    "cause": "cause",
    "hostname": "hostname",
}


def _compact(fields: Mapping[str, Any]) -> str:
    return json.dumps(fields, separators=(",", ":"))


def _kept(decision: Decision, member: str, token: str | None) -> dict[str, Any]:
    """The fields that are never cut; those without a value are left out."""
    fields: dict[str, Any] = {
        "v": VERSION,
        "token": token or None,
        "member": member,
        "outcome": decision.outcome.value,
        "cause": decision.cause.value if decision.cause is not Cause.NONE else None,
        "node": decision.node or None,
        "domain": decision.domain or None,
        "topologyKey": decision.topology_key,
        "replicas": decision.replicas,
        "cap": decision.cap,
        "aboveCap": decision.above_cap or None,
        "guardToo": decision.guard_too or None,
    }
    return {key: value for key, value in fields.items() if value is not None}


def _explained(decision: Decision, items: int, characters: int) -> dict[str, Any]:
    """The fields that explain, cut to so many items and so many characters of each text."""
    counts, reasons = largest_counts(decision.counts), grouped_reasons(decision.passed_over)
    fields: dict[str, Any] = {
        "counts": dict(counts[:items]),
        "moreCounts": len(counts[items:]),
        "reasons": [_cut(reason, characters) for reason in reasons[:items]],
        "moreReasons": len(reasons[items:]),
        "detail": _cut(decision.detail, characters),
        "problems": [_cut(problem, characters) for problem in decision.problems[:items]],
    }
    return {key: value for key, value in fields.items() if value}


def _cut(text: str, characters: int) -> str:
    """At most so many characters; what is cut ends with a whole word, no name that nobody has, and with a mark."""
    if len(text) <= characters or characters <= len(_MARK):
        return text[:characters]
    kept = text[: characters - len(_MARK)]
    return (kept[: kept.rfind(" ")] if " " in kept else kept).rstrip(",; ") + _MARK
