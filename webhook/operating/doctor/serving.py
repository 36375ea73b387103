"""Checks of what answers: replicas and their versions, the bundle, and the certificate that is served."""

from __future__ import annotations

import base64
import binascii
import re
import socket
import ssl
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from importlib.metadata import version
from typing import Final
from urllib.parse import urlsplit

from cryptography import x509

from webhook.core.manifests import pod_from
from webhook.core.shapes import inside, items, text
from webhook.operating.doctor.lines import Line, fail, ok, skip, warn
from webhook.operating.doctor.patient import Entry, Patient
from webhook.operating.page import listed

DISTRIBUTION: Final = "tidb-ha-webhook"
# Days before its end when a certificate should have been renewed: those of the product are at a third of 90 days.
SOON: Final = 14.0
DAY: Final = 86_400.0
CONNECT_TIMEOUT: Final = 3.0
# A leader renews its Lease every few seconds.
LEADERLESS: Final = 60.0
_TAG: Final = re.compile(r":([^:/]+)$")


def replicas(patient: Patient) -> Iterator[Line]:
    """Whether there is somebody who answers, of one version, and this one."""
    about = "replicas"
    if patient.connection.on_dump:
        yield skip(about, "this is a dump")
        return
    pods = [(pod_from(found), _images(found)) for found in patient.own_pods]
    if not pods:
        yield skip(about, "no pod was found behind a Service of our configuration")
        return
    ready = [pod.name for pod, _ in pods if pod.ready and not pod.deleting]
    if not ready:
        yield fail(about, f"none of {len(pods)} is ready: nobody answers", "kubectl describe and logs of these pods")
    elif len(ready) < 2:
        yield warn(about, f"{len(ready)} of {len(pods)} is ready", "run two replicas: replicaCount 2")
    else:
        yield ok(about, f"{len(ready)} of {len(pods)} are ready")
    tags = sorted({tag for _, images in pods for tag in images})
    own = version(DISTRIBUTION)
    if len(tags) > 1:
        yield warn("versions", f"replicas run {listed(tags)}", "finish the upgrade")
    elif not tags:
        yield skip("versions", f"images are named by digest alone; this program is {own}")
    elif tags[0] not in (own, f"v{own}"):
        yield warn("versions", f"replicas run {tags[0]}, this program is {own}", "use the program of the same version")
    else:
        yield ok("versions", f"replicas and this program: {own}")


def leader(patient: Patient) -> Iterator[Line]:
    """Whether somebody frees pods that wait."""
    about = "controller"
    if patient.connection.on_dump:
        yield skip(about, "this is a dump")
        return
    if not any(entry.service for entry in patient.own_entries):
        yield skip(about, "its namespace is not known")
        return
    lease = patient.controller_lease
    if lease is None:
        yield warn(
            about,
            "nobody leads: guarded pods are not placed when a node comes",
            "run serve with --controller, or delete such pods by hand",
        )
        return
    holder, renewed = text(inside(lease, "spec", "holderIdentity")), _time(inside(lease, "spec", "renewTime"))
    if not holder:
        yield warn(
            about,
            "nobody leads: its Lease is there, and nobody holds it",
            "just after an install wait a minute; else look at the log of the controller",
        )
    elif renewed is None or patient.clock() - renewed > LEADERLESS:
        yield warn(about, "its Lease has not been renewed for a minute or more", "look at the log of the controller")
    else:
        yield ok(about, f"{holder} leads")


def bundle(patient: Patient) -> Iterator[Line]:
    """Whether the API server could trust us: the bundles of our configuration."""
    about = "CA bundle"
    if patient.connection.on_dump or not patient.own_entries:
        yield skip(about, "there is no configuration to look at")
        return
    for entry in patient.own_entries:
        written = text(inside(entry.webhook, "clientConfig", "caBundle"))
        if not written:
            yield fail(
                about,
                f"{entry.name} has none: the API server trusts nobody who answers for it",
                "look at the log of the container certs; with certificates of your own, set caBundle",
            )
            continue
        try:
            authorities = x509.load_pem_x509_certificates(base64.b64decode(written, validate=True))
        except (ValueError, binascii.Error):
            yield fail(about, f"that of {entry.name} cannot be read", "take it away: certs writes a new one")
            continue
        yield _of_ends(about, f"that of {entry.name}", [found.not_valid_after_utc for found in authorities], patient)


def certificate(patient: Patient) -> Iterator[Line]:
    """Whether the certificate that is served is one that the API server accepts; only seen where it can be reached."""
    about = "certificate"
    if patient.connection.on_dump or not patient.own_entries:
        yield skip(about, "there is nobody to ask")
        return
    seen: set[tuple[str, int]] = set()
    for entry in patient.own_entries:
        host, port = _address(entry)
        if (host, port) not in seen:
            seen.add((host, port))
            yield _served(entry, host, port, patient)


def _served(entry: Entry, host: str, port: int, patient: Patient) -> Line:
    about = "certificate"
    try:
        context = ssl.create_default_context(cadata=_pem(entry) or None)
        # API servers do not ask for what this flag asks for.
        context.verify_flags &= ~ssl.VERIFY_X509_STRICT
        with (
            socket.create_connection((host, port), CONNECT_TIMEOUT) as plain,
            context.wrap_socket(plain, server_hostname=host) as secure,
        ):
            ends = ssl.cert_time_to_seconds(str((secure.getpeercert() or {}).get("notAfter", "")))
    except socket.gaierror:
        return skip(about, f"not looked at: {host} is a name inside the cluster, and this is outside")
    except ssl.SSLCertVerificationError as error:
        return fail(
            about,
            f"that of {host}:{port} would be refused: {error.verify_message}",
            "look at the log of the container certs; until it is mended nobody is placed",
        )
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or type(error).__name__
        return fail(about, f"{host}:{port} cannot be reached: {reason}", "look at Service, pods and network policies")
    return _of_ends(about, f"that of {host}:{port}", [datetime.fromtimestamp(ends, UTC)], patient)


def _of_ends(about: str, what: str, ends: Sequence[datetime], patient: Patient) -> Line:
    """A line for certificates that end then; of a bundle one that is valid is enough."""
    days = max((end.timestamp() - patient.clock()) / DAY for end in ends)
    if days <= 0:
        return fail(
            about, f"{what} has expired", "look at the log of the container certs, which should have renewed it"
        )
    if days < SOON:
        return warn(about, f"{what} ends in {days:.0f} days", "see why the container certs does not renew it")
    return ok(about, f"{what} is good for {days:.0f} days")


def _address(entry: Entry) -> tuple[str, int]:
    if entry.service is not None:
        namespace, name, port = entry.service
        return f"{name}.{namespace}.svc", port
    parts = urlsplit(text(inside(entry.webhook, "clientConfig", "url")))
    return parts.hostname or "", parts.port or 443


def _pem(entry: Entry) -> str:
    try:
        return base64.b64decode(text(inside(entry.webhook, "clientConfig", "caBundle"))).decode("ascii")
    except ValueError:
        return ""


def _images(pod: object) -> list[str]:
    """The tags of the images that serve; one that is named by digest alone has none."""
    names = [
        text(inside(container, "image"))
        for container in items(inside(pod, "spec", "containers"))
        if inside(container, "name") == "webhook"
    ]
    return [found[1] for name in names if (found := _TAG.search(name.partition("@")[0]))]


def _time(raw: object) -> float | None:
    try:
        return datetime.fromisoformat(text(raw)).timestamp()
    except ValueError:
        return None
