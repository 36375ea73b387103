"""Judging certificates: whether a pair is whole, who trusts it, when it is to be renewed. Pure, and raises nothing
for what somebody else wrote.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from datetime import datetime
from typing import Final

from cryptography import x509
from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.types import PublicKeyTypes
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat, load_pem_private_key

from certs.authority import Pair, private_key_of

# Of a certificate's life, from notBefore on; cert-manager's share as well.
RENEWED_AT: Final = 2 / 3


def is_pair(pair: Pair) -> bool:
    """Whether both parts can be read and belong together."""
    certificate = _readable(pair.certificate)
    try:
        key = load_pem_private_key(pair.key, None)
        return certificate is not None and _public(key.public_key()) == _public(certificate.public_key())
    except (ValueError, TypeError, UnsupportedAlgorithm):
        return False


def authority_problem(pair: Pair, now: datetime) -> str | None:
    """Why a CA cannot sign any more; None if it can."""
    if not is_pair(pair):
        return "its certificate and key cannot be read, or do not belong together"
    try:
        private_key_of(pair.key)
    except ValueError:
        return "its key is none of ours"
    if not _is_authority(x509.load_pem_x509_certificate(pair.certificate)):
        return "it is no CA"
    return trust_problem(pair.certificate, now)


def trust_problem(certificate: bytes, now: datetime) -> str | None:
    """Why a certificate is no trust anchor; None if it is one, as a server's own can be."""
    found = _readable(certificate)
    return "it cannot be read" if found is None else _time_problem(found, now)


def leaf_problem(pair: Pair, authorities: Sequence[bytes], names: Sequence[str], now: datetime) -> str | None:
    """Why clients that trust `authorities` would not accept a server's pair for `names`; None if they would.

    Its text may hold certificates of authorities in between, as somebody else's does.
    """
    certificate = _readable(pair.certificate)
    if certificate is None or not is_pair(pair):
        return "its certificate and key cannot be read, or do not belong together"
    if problem := _time_problem(certificate, now):
        return problem
    if missing := sorted(set(names) - set(dns_names(pair.certificate))):
        return f"it is not for {', '.join(missing)}"
    if not _leads_to(authorities, pair.certificate):
        return "no CA that is kept has issued it"
    return None


def renewal_due(certificate: bytes, now: datetime) -> bool:
    """Whether two thirds of its life are over."""
    return now >= renewed_at(certificate)


def renewed_at(certificate: bytes) -> datetime:
    """When two thirds of its life are over (UTC)."""
    found = x509.load_pem_x509_certificate(certificate)
    begins, ends = found.not_valid_before_utc, found.not_valid_after_utc
    return begins + (ends - begins) * RENEWED_AT


def expires_at(certificate: bytes) -> datetime:
    """When it expires (UTC)."""
    return x509.load_pem_x509_certificate(certificate).not_valid_after_utc


def dns_names(certificate: bytes) -> tuple[str, ...]:
    """The DNS names that a certificate is for."""
    try:
        found = x509.load_pem_x509_certificate(certificate).extensions
        names = found.get_extension_for_class(x509.SubjectAlternativeName).value
    except (ValueError, x509.ExtensionNotFound):
        return ()
    return tuple(names.get_values_for_type(x509.DNSName))


def fingerprint(certificate: bytes) -> str:
    """The SHA-256 of a certificate's DER form, in hex; of PEM text only the first certificate counts."""
    found = x509.load_pem_x509_certificate(certificate)
    return hashlib.sha256(found.public_bytes(Encoding.DER)).hexdigest()


def certificates_in(bundle: bytes) -> tuple[bytes, ...]:
    """The certificates of a bundle, each as PEM as we write it; () if any part of it cannot be read."""
    try:
        return tuple(found.public_bytes(Encoding.PEM) for found in x509.load_pem_x509_certificates(bundle))
    except ValueError:
        return ()


def bundle_of(certificates: Sequence[bytes]) -> bytes:
    """One bundle of the certificates, each once, in their order."""
    return b"".join(dict.fromkeys(certificates))


def _time_problem(certificate: x509.Certificate, now: datetime) -> str | None:
    if now >= certificate.not_valid_after_utc:
        return "it has expired"
    # A CA made by a clock that far ahead would be refused by others for that long.
    return "it is not valid yet" if now < certificate.not_valid_before_utc else None


def _readable(pem: bytes) -> x509.Certificate | None:
    try:
        found = x509.load_pem_x509_certificate(pem)
        _ = found.extensions, found.public_key()  # read only when asked for
    except (ValueError, TypeError):
        return None
    return found


def _is_authority(certificate: x509.Certificate) -> bool:
    try:
        return certificate.extensions.get_extension_for_class(x509.BasicConstraints).value.ca
    except x509.ExtensionNotFound:
        return False


def _leads_to(authorities: Sequence[bytes], chain: bytes) -> bool:
    """Whether an authority has issued the first certificate of a chain, or one that has, by way of the others."""
    between = certificates_in(chain)
    current, unused = between[:1], list(between[1:])
    while current:
        certificate = x509.load_pem_x509_certificate(current[0])
        if any(_issued(authority, certificate) for authority in authorities):
            return True
        current = tuple(each for each in unused if _issued(each, certificate))[:1]
        unused = [each for each in unused if each not in current]
    return False


def _issued(authority: bytes, certificate: x509.Certificate) -> bool:
    found = _readable(authority)
    try:
        if found is not None:
            certificate.verify_directly_issued_by(found)
    except (ValueError, TypeError, InvalidSignature):
        return False
    return found is not None


def _public(key: PublicKeyTypes) -> bytes:
    return key.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
