"""`python -m certs status`: what is stored and published, and whether it fits, in lines for people."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta

from certs import checks, stages
from certs.cluster import Published, StoredSecret
from certs.material import Retired, material_from
from certs.state import Mode, Stage, State

# The alert rules' figures.
_LEAF_WARNING = timedelta(days=14)
_CA_WARNING = timedelta(days=60)

_IN_WORDS = {
    Stage.STEADY: "steady: one CA, in use",
    Stage.PUBLISH: "publish: a new CA is made, the API server is not told yet",
    Stage.CONFIRM: "confirm: waits until an observed call has met the new certificate",
    Stage.RETIRE: "retire: the new CA is in use, the old one is trusted for a while still",
}


def report(secret: StoredSecret | None, published: Published | None, now: datetime) -> tuple[list[str], bool]:
    """The lines, and whether all is well. Nothing secret is in them."""
    if published is None:
        return ["webhook configuration: not there; nothing is called, and nothing is kept"], False
    if published.mode not in ("", Mode.SELF_MANAGED):
        return _of_others(secret, published)
    if secret is None:
        return ["secret: not there; the leader makes it within seconds. Is a replica running?"], False
    state = State(material_from(secret.data), tuple(bundle for _, bundle in published.entries), secret.rotate)
    lines = list(_certificates(state, now))
    lines.append(f"stage: {_IN_WORDS[stages.stage_of(state)]}")
    if secret.rotate:
        lines.append("rotation: asked for, begins within seconds")
    lines += _bundles(state, published, now)
    return lines, not any("  <-- " in line for line in lines)


def _of_others(secret: StoredSecret | None, published: Published) -> tuple[list[str], bool]:
    """Somebody else makes the certificate: who, how many CAs are trusted, and which of them for a while only."""
    lines = [f"mode: {published.mode}; certificates are made, and changed, elsewhere"]
    for name, bundle in published.entries:
        count = len(checks.certificates_in(bundle))
        lines.append(f"{name}: trusts {count} CA(s)" if count else f"{name}: trusts no CA  <-- reviews fail")
    retired = () if secret is None else material_from(secret.data).retired
    lines += [_trusted_until(each) for each in retired]
    return lines, not any("  <-- " in line for line in lines)


def _trusted_until(retired: Retired) -> str:
    return f"old CA: trusted until {retired.until:%Y-%m-%d %H:%M} UTC"


def _certificates(state: State, now: datetime) -> Iterator[str]:
    material = state.material
    kinds = [("CA", material.authority, _CA_WARNING), ("certificate", material.leaf, _LEAF_WARNING)]
    if material.next_authority is not None:
        kinds += [
            ("next CA", material.next_authority, _CA_WARNING),
            ("next certificate", material.next_leaf, _LEAF_WARNING),
        ]
    for kind, pair, warning in kinds:
        if pair is None or not checks.is_pair(pair):
            yield f"{kind}: missing, or its two parts do not fit  <-- the leader mends it"
            continue
        ends = checks.expires_at(pair.certificate)
        soon = "  <-- soon" if ends - now < warning else ""
        renewed = checks.renewed_at(pair.certificate)
        yield f"{kind}: until {ends:%Y-%m-%d}, renewed on {renewed:%Y-%m-%d}{soon}"
    for retired in material.retired:
        yield _trusted_until(retired)


def _bundles(state: State, published: Published, now: datetime) -> Iterator[str]:
    leaf, wanted = state.material.leaf, set(stages.wanted_bundle(state.material))
    for name, bundle in published.entries:
        found = checks.certificates_in(bundle)
        if leaf is None or checks.leaf_problem(leaf, found, (), now):
            yield f"{name}: does not trust the certificate  <-- reviews fail until the leader mends it"
        elif set(found) != wanted:
            yield f"{name}: trusts the certificate, but not exactly what it shall  <-- the leader mends it"
        else:
            yield f"{name}: trusts the certificate ({len(found)} CA)"
