"""The server's TLS context, built once per change of the certificate files.

Kubernetes replaces a mounted Secret by switching one symlink; other tools write two files one after the other.
Both are noticed at the next connection by a `stat` of what the paths lead to. A pair goes into use only when the
key belongs to the certificate; until a new pair is whole, the last good one is served.
"""

from __future__ import annotations

import logging
import ssl
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from threading import Lock

from cryptography import x509

from webhook.errors import SettingsError

_LOG = logging.getLogger(__name__)

# What identifies the content of one file without reading it. ctime: a copy may restore mtime, never ctime.
_FileKey = tuple[int, int, int, int, int]
_PairKey = tuple[_FileKey, _FileKey]


@dataclass(frozen=True, slots=True)
class Pair:
    """A certificate chain with its key, ready to serve, and the times (UTC) between which the leaf is valid."""

    context: ssl.SSLContext
    not_before: datetime
    not_after: datetime


class Certificates:
    """The certificate to serve, from two PEM files that may change at any time. Safe to use from several threads."""

    def __init__(
        self,
        certificate: Path,
        key: Path,
        clock: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        """Load the pair once; raises `SettingsError` if it cannot be served."""
        self._certificate = certificate
        self._key = key
        self._clock = clock
        self._lock = Lock()
        # Stat before load: a change in between makes the key differ, and the next connection loads again.
        self._seen: _PairKey | None = self._stat()
        self._pair = load_pair(certificate, key)
        self._complaint = ""
        self._problem: str | None = None
        self._report_problem()

    def context(self) -> ssl.SSLContext:
        """The context for a new connection: of the files as they are now, or of the last good pair."""
        return self._current().context

    def not_after(self) -> datetime:
        """When the served certificate expires (UTC)."""
        return self._current().not_after

    def certificate_problem(self) -> str | None:
        """Why no client would accept the served certificate, for readiness; None if nothing is wrong.

        A bad pair on the disk is no reason while the last good one is valid: the replicas share their files,
        and all of them would leave the Service at once.
        """
        return self._problem_of(self._current())

    def _problem_of(self, pair: Pair) -> str | None:
        now = self._clock()
        if now >= pair.not_after:
            return f"the certificate of {self._certificate} expired at {pair.not_after.isoformat()}"
        if now < pair.not_before:
            return f"the certificate of {self._certificate} is not valid before {pair.not_before.isoformat()}"
        return None

    def _current(self) -> Pair:
        with self._lock:
            seen = self._stat()
            if seen is None or seen != self._seen:
                self._reload(seen)
            self._report_problem()
            return self._pair

    def _reload(self, seen: _PairKey | None) -> None:
        try:
            self._pair = load_pair(self._certificate, self._key)
        except SettingsError as error:
            self._complain(str(error))
        else:
            self._complaint = ""
            _LOG.info("certificate of %s read again, valid until %s", self._certificate, self._pair.not_after)
        # A pair that changed while it was read, whether it loaded or not, says nothing about what is there now.
        self._seen = seen if seen == self._stat() else None

    def _report_problem(self) -> None:
        """Say once what no client accepts: readiness says it too, but only to whoever asks."""
        before, self._problem = self._problem, self._problem_of(self._pair)
        if self._problem is not None and self._problem != before:
            _LOG.error("%s: no API server accepts it; put a valid one there, it is read when it changes", self._problem)

    def _complain(self, complaint: str) -> None:
        if complaint != self._complaint:
            self._complaint = complaint
            _LOG.error("%s; the last good certificate is served on, until %s", complaint, self._pair.not_after)

    def _stat(self) -> _PairKey | None:
        try:
            return _key_of(self._certificate), _key_of(self._key)
        except OSError:
            return None


def load_pair(certificate: Path, key: Path) -> Pair:
    """Read and check a pair; raises `SettingsError` saying which file is wrong and what to do."""
    leaf = _leaf(certificate, _read(certificate, "--tls-cert"))
    _read(key, "--tls-key")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.options |= ssl.OP_NO_RENEGOTIATION
    # The API server never uses HTTP/2 with webhooks; others are told.
    context.set_alpn_protocols(["http/1.1"])
    try:
        context.load_cert_chain(certificate, key, password=_refuse_password)
    except _EncryptedKeyError as error:
        raise SettingsError(f"--tls-key {key}: the key is encrypted; store it without a passphrase") from error
    except ssl.SSLError as error:
        raise SettingsError(_pair_problem(certificate, key, error)) from error
    except OSError as error:  # gone since it was read
        raise SettingsError(f"--tls-cert {certificate}, --tls-key {key}: {error.strerror}") from error
    return Pair(context, leaf.not_valid_before_utc, leaf.not_valid_after_utc)


class _EncryptedKeyError(Exception):
    """OpenSSL asked for a passphrase; without this it would ask on the terminal."""


def _refuse_password() -> str:
    raise _EncryptedKeyError


def _pair_problem(certificate: Path, key: Path, error: ssl.SSLError) -> str:
    if error.reason == "KEY_VALUES_MISMATCH":
        return (
            f"--tls-key {key}: does not belong to the certificate --tls-cert {certificate}; "
            "give the two files that were issued together"
        )
    if error.reason in ("EE_KEY_TOO_SMALL", "CA_MD_TOO_WEAK"):
        return f"--tls-cert {certificate}: OpenSSL finds it too weak ({error.reason}); issue a stronger one"
    return f"--tls-key {key}: no private key in PEM form ({error.reason or error})"


def _read(path: Path, flag: str) -> bytes:
    try:
        return path.read_bytes()
    except FileNotFoundError as error:
        raise SettingsError(f"{flag} {path}: no such file; give a PEM file") from error
    except OSError as error:
        raise SettingsError(
            f"{flag} {path}: cannot be read ({error.strerror}); give a PEM file that this user may read"
        ) from error


def _leaf(path: Path, pem: bytes) -> x509.Certificate:
    try:
        return x509.load_pem_x509_certificate(pem)
    except ValueError as error:
        raise SettingsError(
            f"--tls-cert {path}: no certificate in PEM form; give the server's certificate, then its chain"
        ) from error


def _key_of(path: Path) -> _FileKey:
    found = path.stat()
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns
