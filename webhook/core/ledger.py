"""The lock's records in claim annotations: what they say, how they are written, and when an entry is over.

An *entry* is written twice: in the *ledger* (one annotation on the lock claim, holding all live entries) and as a
*second record* (one annotation per token on another claim), because an operator may write back an old copy of
one claim's annotations (docs/design.md, section 4). Anyone with kubectl can write here: whatever cannot be read is
reported as such and never half-trusted.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from webhook.core.decision_record import token_of
from webhook.core.keys import ENTRY_PREFIX, LOCK
from webhook.core.model import Entry
from webhook.core.objects import Claim, Pod
from webhook.core.shapes import is_unicode

FORMAT_VERSION: Final = 1
TOKEN: Final = re.compile(r"[0-9a-z]{8,40}")
_TEXT_FIELDS: Final = (
    ("token", "token"),
    ("member", "member"),
    ("claim", "claim_uid"),
    ("node", "node"),
    ("domain", "domain"),
    ("key", "topology_key"),
)


@dataclass(frozen=True, slots=True)
class Location:
    """One annotation on one claim: its uid, the annotation's key, and the value found there."""

    claim_uid: str
    key: str
    value: str


@dataclass(frozen=True, slots=True)
class ClaimRecords:
    """What the annotations of the group's claims say.

    `ledgers`: claim uid to the entries of its ledger. `restored`: claim uid to the tokens in its ledger that were
    missing from it once. `seconds`: claim uid to its second records by token. `unreadable`: records that are
    lost; `newer`: records of a format that this version cannot read.
    """

    ledgers: Mapping[str, tuple[Entry, ...]] = field(default_factory=dict)
    restored: Mapping[str, frozenset[str]] = field(default_factory=dict)
    seconds: Mapping[str, Mapping[str, Entry]] = field(default_factory=dict)
    unreadable: tuple[Location, ...] = ()
    newer: tuple[Location, ...] = ()

    def entries(self) -> dict[str, Entry]:
        """Every recorded entry once, by token."""
        found: dict[str, Entry] = {}
        for second in self.seconds.values():
            found.update(second)
        for ledger in self.ledgers.values():
            found.update({entry.token: entry for entry in ledger})
        return found

    def ledger_tokens(self, claim: Claim) -> frozenset[str]:
        """The tokens in the ledger of this claim."""
        return frozenset(entry.token for entry in self.ledgers.get(claim.uid, ()))

    def unbroken_tokens(self, claim: Claim) -> frozenset[str]:
        """The tokens that have been in the ledger of this claim ever since they were swapped in.

        Of two of them the later one's writer has read the earlier one there. A restored token proves nothing:
        while it was missing others may have written without having seen it.
        """
        return self.ledger_tokens(claim) - self.restored.get(claim.uid, frozenset())

    def ledger_without(self, claim: Claim, tokens: Collection[str]) -> dict[str, str | None]:
        """The annotation that takes these tokens, and nothing else, from the ledger of this claim."""
        kept = tuple(entry for entry in self.ledgers.get(claim.uid, ()) if entry.token not in tokens)
        return ledger_annotations(kept, self.restored.get(claim.uid, frozenset()))


class _Unreadable(Exception):
    """The value is not a record of any version."""


class _Newer(Exception):
    """The value is a record of a later version."""


def read_records(claims: Iterable[Claim]) -> ClaimRecords:
    """Read the ledger and the second records of every claim, also of those that are being deleted."""
    ledgers: dict[str, tuple[Entry, ...]] = {}
    restored: dict[str, frozenset[str]] = {}
    seconds: dict[str, dict[str, Entry]] = {}
    unreadable: list[Location] = []
    newer: list[Location] = []
    for claim in claims:
        for key, value in claim.annotations.items():
            try:
                if key == LOCK:
                    ledgers[claim.uid], restored[claim.uid] = _read_ledger(value)
                elif key.startswith(ENTRY_PREFIX):
                    entry = _read_second(key, value)
                    seconds.setdefault(claim.uid, {})[entry.token] = entry
            except _Newer:
                newer.append(Location(claim.uid, key, value))
            except _Unreadable:
                unreadable.append(Location(claim.uid, key, value))
    return ClaimRecords(ledgers, restored, seconds, tuple(unreadable), tuple(newer))


def is_over(entry: Entry, carried: Collection[tuple[str, str]], now: int, expiry: float, known_for: float) -> bool:
    """Whether an entry has ended, which two things alone can do.

    Either the visible pod of the entry's name carries this very token (`carried`: (name, token) of the visible
    pods; not merely the name, since an older pod of the name may still be going), or the entry was older than
    `expiry` (s) at `now`, the API server's time at the first step of the round. One dated in the future is
    judged by `known_for`: the seconds for which this process has known it.
    """
    if (entry.member, entry.token) in carried:
        return True
    if entry.time > now:
        return known_for > expiry
    return now - entry.time > expiry


def carried_tokens(pods: Iterable[Pod]) -> frozenset[tuple[str, str]]:
    """(name, token) of every visible pod that carries one."""
    return frozenset((pod.name, token) for pod in pods if (token := token_of(pod)))


def without_superseded(entries: Iterable[Entry], by: Iterable[Entry]) -> tuple[Entry, ...]:
    """The entries that none of `by` says again: same member, claim, node and domain under another token."""
    again = {_meaning(entry): entry.token for entry in by}
    return tuple(entry for entry in entries if again.get(_meaning(entry), entry.token) == entry.token)


def newest_of_each(entries: Iterable[Entry]) -> tuple[Entry, ...]:
    """Of entries that say the same only the newest."""
    ordered = sorted(entries, key=lambda entry: (entry.time, entry.token))
    return tuple({_meaning(entry): entry for entry in ordered}.values())


def ledger_annotations(entries: Iterable[Entry], restored: Collection[str] = ()) -> dict[str, str | None]:
    """The annotation that makes these the entries of a lock claim's ledger; none of them: no annotation.

    `restored`: the tokens of those that were not in this ledger when it was read, or had been missing before.
    """
    listed = [_as_json(entry) | ({"restored": True} if entry.token in restored else {}) for entry in entries]
    return {LOCK: _dump({"v": FORMAT_VERSION, "entries": listed}) if listed else None}


def second_record_annotations(entries: Iterable[Entry], remove: Collection[str]) -> dict[str, str | None]:
    """The annotations that add a second record for each entry and take away those of the tokens in `remove`."""
    annotations: dict[str, str | None] = {ENTRY_PREFIX + token: None for token in sorted(remove)}
    for entry in entries:
        annotations[ENTRY_PREFIX + entry.token] = _dump({"v": FORMAT_VERSION, **_as_json(entry)})
    return annotations


def second_record_tokens(locations: Iterable[Location], claim: Claim) -> frozenset[str]:
    """The tokens in the keys of those records that are second records on this claim."""
    return frozenset(
        location.key.removeprefix(ENTRY_PREFIX)
        for location in locations
        if location.claim_uid == claim.uid and location.key.startswith(ENTRY_PREFIX)
    )


def _read_ledger(value: str) -> tuple[tuple[Entry, ...], frozenset[str]]:
    listed = _read_object(value).get("entries")
    if not isinstance(listed, list):
        raise _Unreadable
    entries = tuple(_entry_from(raw) for raw in listed)
    return entries, frozenset(raw["token"] for raw in listed if raw.get("restored"))


def _read_second(key: str, value: str) -> Entry:
    entry = _entry_from(_read_object(value))
    if ENTRY_PREFIX + entry.token != key:
        raise _Unreadable
    return entry


def _read_object(value: str) -> dict[str, Any]:
    try:
        record = json.loads(value)
    except (ValueError, RecursionError):
        raise _Unreadable from None
    if not isinstance(record, dict):
        raise _Unreadable
    version = record.get("v")
    if not isinstance(version, int) or isinstance(version, bool) or version < FORMAT_VERSION:
        raise _Unreadable
    if version > FORMAT_VERSION:
        raise _Newer
    return record


def _entry_from(raw: object) -> Entry:
    if not isinstance(raw, dict):
        raise _Unreadable
    time = raw.get("time")
    if not isinstance(time, int) or isinstance(time, bool):
        raise _Unreadable
    texts = {name: _text(raw.get(key)) for key, name in _TEXT_FIELDS}
    entry = Entry(time=time, guarded=raw.get("guard") is True, **texts)
    if not TOKEN.fullmatch(entry.token) or not entry.member or not entry.domain:
        raise _Unreadable
    return entry


def _text(raw: object) -> str:
    if not isinstance(raw, str) or not is_unicode(raw):
        raise _Unreadable
    return raw


def _as_json(entry: Entry) -> dict[str, str | int]:
    record: dict[str, str | int] = {key: getattr(entry, name) for key, name in _TEXT_FIELDS}
    record["time"] = entry.time
    return record | ({"guard": True} if entry.guarded else {})


def _meaning(entry: Entry) -> tuple[str, str, str, str, str, bool]:
    return (entry.member, entry.claim_uid, entry.node, entry.domain, entry.topology_key, entry.guarded)


def _dump(value: object) -> str:
    return json.dumps(value, separators=(",", ":"), sort_keys=True)
