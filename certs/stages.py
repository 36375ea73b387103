"""What to do next about the certificates: a pure function of what is stored, what is seen, and the time.

A certificate by a new CA is served only after the API server has been seen to trust that CA:

    publish   the new CA and its server certificate are stored, and the bundle names old and new
    confirm   a call through the API server has met the new certificate and passed, for a while
    serve     the new pair takes the old one's place; the old CA stays in the bundle
    retire    the old CA leaves the bundle, once nobody can serve its certificates any more

Every step is one write, and whatever somebody broke (a wiped bundle, a deleted, empty or mixed-up Secret)
leads into the same stages: there is no other way in which a CA comes into use, except where there is nothing
that the API server trusts yet. A certificate that is renewed by the CA in use needs none of them.

Where somebody else makes the certificate, only the bundle is kept: its CAs, and for a while those before it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Final

from certs import checks
from certs.authority import issue_authority, issue_leaf
from certs.material import EMPTY, Material, Retired
from certs.state import Plan, Probe, Publish, Rest, Stage, State, Step, Store

_REST: Final = Rest()
_Rule = Callable[[State, Plan, datetime], Step | None]


def next_step(state: State, plan: Plan, now: datetime) -> Step:
    """The one thing to do next; after it was done, everything is looked at anew."""
    for rule in _RULES if state.given is None else _RULES_FOR_OTHERS:
        step = rule(state, plan, now)
        if step is not None:
            return step
    return _REST


def stage_of(state: State) -> Stage:
    """The stage, for people and metrics."""
    if state.material.next_authority is not None:
        return Stage.CONFIRM if in_sync(state) else Stage.PUBLISH
    return Stage.RETIRE if state.material.retired else Stage.STEADY


def in_sync(state: State) -> bool:
    """Whether every entry of the configuration trusts exactly what it shall; the order does not matter."""
    wanted = set(wanted_bundle(state.material, state.given))
    return bool(wanted) and all(set(checks.certificates_in(bundle)) == wanted for bundle in state.bundles)


def wanted_bundle(material: Material, given: Sequence[bytes] | None = None) -> tuple[bytes, ...]:
    """The certificates that the API server shall trust, of those that can be read, each once.

    `given`: the CAs of whoever else makes the certificate.
    """
    authorities = (material.authority, material.next_authority)
    stored = [each.certificate for each in authorities if each is not None]
    stored += [each.certificate for each in material.retired]
    return tuple(dict.fromkeys(found for text in (*(given or ()), *stored) for found in checks.certificates_in(text)))


def _mend_next(state: State, plan: Plan, now: datetime) -> Step | None:
    """A next CA that cannot be used is forgotten; its server certificate can be issued again."""
    material = state.material
    if material.next_authority is None:
        return None if material.next_leaf is None else Store(replace(material, next_leaf=None), "a stray certificate")
    if problem := checks.authority_problem(material.next_authority, now):
        return Store(replace(material, next_authority=None, next_leaf=None), f"the next CA is of no use: {problem}")
    leaf, authorities = material.next_leaf, [material.next_authority.certificate]
    problem = "it is missing" if leaf is None else checks.leaf_problem(leaf, authorities, plan.names, now)
    if problem is None:
        return None
    issued = issue_leaf(material.next_authority, plan.names, now, plan.lifetimes)
    return Store(replace(material, next_leaf=issued), f"the next certificate is issued again: {problem}")


def _begin(state: State, plan: Plan, now: datetime) -> Step | None:
    """A new CA, if the one in use is lost, old, or to be changed; it is only made known so far."""
    material = state.material
    lost = _authority_problem(material, now)
    if material.next_authority is not None:
        return _keep_trust(state, plan, now) if lost else None
    if not (lost or state.rotate or _is_old(material, now)):
        return None
    authority = issue_authority(now, plan.lifetimes)
    leaf = issue_leaf(authority, plan.names, now, plan.lifetimes)
    if not lost:
        why = "a new CA was asked for" if state.rotate else "two thirds of the CA's life are over"
        return Store(replace(material, next_authority=authority, next_leaf=leaf), why, rotated=state.rotate)
    trusted = _still_trusted(state, now)
    if not trusted:
        return Store(Material(authority=authority, leaf=leaf), f"a first CA is made: {lost}", rotated=state.rotate)
    kept = _retired(trusted, now + plan.overlap)
    changed = replace(material, authority=None, next_authority=authority, next_leaf=leaf, retired=kept)
    return Store(changed, f"the CA is replaced: {lost}", rotated=state.rotate)


def _keep_trust(state: State, plan: Plan, now: datetime) -> Step | None:
    """The CA was lost while its successor is only made known: certificates by it are served still."""
    material = state.material
    known = {each.certificate for each in material.retired}
    trusted = [each for each in _still_trusted(state, now) if each not in checks.certificates_in(_next(material))]
    if material.authority is None and known >= set(trusted):
        return None
    kept = _retired(trusted, now + plan.overlap)
    return Store(replace(material, authority=None, retired=kept), "the CA was lost; it stays trusted for now")


def _lay_down(state: State, plan: Plan, now: datetime) -> Step | None:
    """Somebody else makes the certificate from now on; replicas that are still there serve ours for a while."""
    material = state.material
    if replace(material, retired=()) == EMPTY:
        return None
    theirs = wanted_bundle(EMPTY, state.given)
    kept = _retired([each for each in _still_trusted(state, now) if each not in theirs], now + plan.overlap)
    return Store(Material(retired=kept), "certificates come from elsewhere now; our CA stays trusted for a while")


def _adopt(state: State, plan: Plan, now: datetime) -> Step | None:
    """Before this replica is ready others answer, with certificates by whatever is published: as at a change of mode.

    Later an unknown CA in the bundle is no business of ours, and goes.
    """
    if not state.fresh:
        return None
    known = wanted_bundle(state.material, state.given)
    unknown = [each for each in _still_trusted(state, now) if each not in known]
    if not unknown:
        return None
    kept = (*state.material.retired, *_retired(unknown, now + plan.overlap))
    return Store(replace(state.material, retired=kept), "what was published before stays trusted for a while")


def _renew_leaf(state: State, plan: Plan, now: datetime) -> Step | None:
    """A new server certificate by the CA in use, which the API server trusts already."""
    material = state.material
    if material.authority is None or _authority_problem(material, now):
        return None
    leaf = material.leaf
    problem = "it is missing"
    if leaf is not None:
        found = checks.leaf_problem(leaf, [material.authority.certificate], plan.names, now)
        if found is None and not checks.renewal_due(leaf.certificate, now):
            return None
        problem = found or "two thirds of its life are over"
    issued = issue_leaf(material.authority, plan.names, now, plan.lifetimes)
    return Store(replace(material, leaf=issued), f"a new certificate is issued: {problem}")


def _publish(state: State, _plan: Plan, _now: datetime) -> Step | None:
    """The bundle that the API server trusts follows the Secret."""
    if in_sync(state):
        return None
    wanted = wanted_bundle(state.material, state.given)
    return Publish(checks.bundle_of(wanted), f"the API server shall trust these {len(wanted)} CA(s) and no other")


def _confirm(state: State, plan: Plan, now: datetime) -> Step | None:
    """The next CA comes into use once it is seen to be trusted."""
    material = state.material
    if material.next_authority is None or material.next_leaf is None:
        return None
    if state.trusted is not None and state.trusted >= plan.settle:
        return Store(_served(state, plan, now), "the API server trusts the new CA: its certificate is served")
    patience = plan.patience if _can_serve(state, plan, now) else plan.urgency
    if state.in_place >= patience and not state.distrusted:
        return Store(_served(state, plan, now), "no observed call met the new certificate, but none refused it either")
    return Probe(checks.fingerprint(material.next_leaf.certificate))


def _retire(state: State, _plan: Plan, now: datetime) -> Step | None:
    """An old CA is trusted no longer than needed."""
    material = state.material
    kept = tuple(
        each for each in material.retired if now < each.until and not checks.trust_problem(each.certificate, now)
    )
    if (material.authority is None and state.given is None) or kept == material.retired:
        return None
    return Store(replace(material, retired=kept), "an old CA leaves the bundle")


def _wait(state: State, _plan: Plan, _now: datetime) -> Step | None:
    """Without a CA to be trusted nothing is written: an empty bundle would fail every call."""
    return None if state.given else _REST


_RULES: Final[Sequence[_Rule]] = (_mend_next, _begin, _adopt, _renew_leaf, _retire, _publish, _confirm)
_RULES_FOR_OTHERS: Final[Sequence[_Rule]] = (_wait, _lay_down, _adopt, _retire, _publish)


def _served(state: State, plan: Plan, now: datetime) -> Material:
    """The material with the next CA in use, and everything before it trusted for a while."""
    material, until = state.material, now + plan.overlap
    old = wanted_bundle(replace(material, next_authority=None))
    kept = _retired([each for each in old if checks.trust_problem(each, now) is None], until)
    return Material(authority=material.next_authority, leaf=material.next_leaf, retired=kept)


def _retired(certificates: Sequence[bytes], until: datetime) -> tuple[Retired, ...]:
    return tuple(Retired(certificate, until) for certificate in certificates)


def _next(material: Material) -> bytes:
    return b"" if material.next_authority is None else material.next_authority.certificate


def _authority_problem(material: Material, now: datetime) -> str | None:
    if material.authority is None:
        return "there is none"
    return checks.authority_problem(material.authority, now)


def _is_old(material: Material, now: datetime) -> bool:
    return material.authority is not None and checks.renewal_due(material.authority.certificate, now)


def _still_trusted(state: State, now: datetime) -> list[bytes]:
    """The CAs that servers' certificates in use may be by: those that are stored, and those that are published."""
    material = state.material
    stored = [] if material.authority is None else [material.authority.certificate]
    published = [certificate for bundle in state.bundles for certificate in checks.certificates_in(bundle)]
    known = dict.fromkeys([*stored, *(each.certificate for each in material.retired), *published])
    return [certificate for certificate in known if checks.trust_problem(certificate, now) is None]


def _can_serve(state: State, plan: Plan, now: datetime) -> bool:
    """Whether a replica that starts now finds a certificate to serve."""
    leaf, authorities = state.material.leaf, wanted_bundle(state.material)
    return leaf is not None and checks.leaf_problem(leaf, authorities, plan.names, now) is None
