"""The values that `stages` decides on, and the steps that it can decide for."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum

from certs.authority import DEFAULT_LIFETIMES, Lifetimes
from certs.material import Material


class Mode(StrEnum):
    """Who makes the server's certificate, and so who says which CAs the API server shall trust.

    A keeper works in the first three; in the others it has nothing to say.
    """

    SELF_MANAGED = "selfManaged"
    EXISTING = "existingSecret"
    CERT_MANAGER = "certManager"
    INJECTOR = "injector"
    NOBODY = "nobody"


class Stage(StrEnum):
    """Where a change of the CA stands."""

    STEADY = "steady"
    PUBLISH = "publish"
    CONFIRM = "confirm"
    RETIRE = "retire"


@dataclass(frozen=True, slots=True)
class Plan:
    """What is wanted, and how patient to be."""

    names: tuple[str, ...]
    """The DNS names of the server's certificate; of one that somebody else makes, those that must be in it."""

    mode: Mode = Mode.SELF_MANAGED

    lifetimes: Lifetimes = DEFAULT_LIFETIMES

    overlap: timedelta = timedelta(hours=24)
    """How long an old CA stays in the bundle: longer than any replica takes to change its files."""

    settle: timedelta = timedelta(seconds=60)
    """How long every observed call must have met the new certificate: there may be several API servers."""

    patience: timedelta = timedelta(minutes=10)
    """After that long with the new bundle in place, calls that get no answer hold nothing up any more (a
    firewall may keep the API server off the probe's port); one that is *distrusted* always does."""

    urgency: timedelta = timedelta(seconds=60)
    """The same where there is no certificate to serve: then no replica may be left to answer."""


@dataclass(frozen=True, slots=True)
class State:
    """What is stored, and what this process has seen.

    `bundles`: of each entry of our configuration. `rotate`: somebody asked for a new CA. `in_place`: how long
    the bundle has been seen to be right while there was a next CA. `trusted`: for how long each observed call
    has met the next certificate and passed, None if the last did not. `distrusted`: the last was refused
    because of the certificate. `fresh`: this replica has not been ready yet. `given`: the CAs that the certificate
    is by where somebody else makes it, None where we do.
    """

    material: Material
    bundles: tuple[bytes, ...]
    rotate: bool = False
    in_place: timedelta = timedelta()
    trusted: timedelta | None = None
    distrusted: bool = False
    fresh: bool = False
    given: tuple[bytes, ...] | None = None


@dataclass(frozen=True, slots=True)
class Store:
    """Write this into the Secret; `rotated`: a rotation that was asked for has begun."""

    material: Material
    why: str
    rotated: bool = False


@dataclass(frozen=True, slots=True)
class Publish:
    """Write this bundle into every entry of our configuration."""

    bundle: bytes
    why: str


@dataclass(frozen=True, slots=True)
class Probe:
    """Make a call through the API server, and see whether it meets the certificate of this fingerprint."""

    fingerprint: str


@dataclass(frozen=True, slots=True)
class Rest:
    """Nothing is to be done now."""


Step = Store | Publish | Probe | Rest
