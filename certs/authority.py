"""Issuing certificates: P-256, PEM in, PEM out; pure but for the random numbers.

Every certificate passes OpenSSL's strict checks (RFC 5280), Python 3.13's default context and Go. A new CA
has a key, key identifier and subject of its own, so that with two of them in one bundle no verifier can pick
the wrong one. `notBefore` lies in the past: the clocks that judge it are others'.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_pem_private_key,
)
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

ORGANIZATION: Final = "tidb-ha-webhook"
# X.520's upper bound of a common name.
_LONGEST_NAME: Final = 64


@dataclass(frozen=True, slots=True)
class Lifetimes:
    """How long certificates are valid from now on, and how far back they begin."""

    authority: timedelta = timedelta(days=5 * 365)
    leaf: timedelta = timedelta(days=90)
    backdated: timedelta = timedelta(hours=1)


DEFAULT_LIFETIMES: Final = Lifetimes()


@dataclass(frozen=True, slots=True)
class Pair:
    """A certificate and its private key, both PEM."""

    certificate: bytes
    key: bytes


def service_names(service: str, namespace: str, domain: str = "cluster.local") -> tuple[str, ...]:
    """The DNS names of a Service; the API server verifies the third, `service.namespace.svc`."""
    names = (service, f"{service}.{namespace}", f"{service}.{namespace}.svc")
    return (*names, f"{names[-1]}.{domain}") if domain else names


def issue_authority(now: datetime, lifetimes: Lifetimes = DEFAULT_LIFETIMES) -> Pair:
    """A new self-signed CA that may sign leaves only."""
    key = ec.generate_private_key(ec.SECP256R1())
    serial = x509.random_serial_number()
    subject = _name(f"{ORGANIZATION} CA {serial:040x}"[:_LONGEST_NAME])
    identifier = x509.SubjectKeyIdentifier.from_public_key(key.public_key())
    builder = (
        _begun(key, now, lifetimes.backdated, now + lifetimes.authority)
        .serial_number(serial)
        .subject_name(subject)
        .issuer_name(subject)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(_key_usage(signs_certificates=True), critical=True)
        .add_extension(identifier, critical=False)
        .add_extension(_authority_identifier(identifier), critical=False)
    )
    return _signed(builder, key, key)


def issue_leaf(authority: Pair, names: Sequence[str], now: datetime, lifetimes: Lifetimes = DEFAULT_LIFETIMES) -> Pair:
    """A server's certificate for these DNS names, at most as long valid as its CA."""
    issuer = x509.load_pem_x509_certificate(authority.certificate)
    key = ec.generate_private_key(ec.SECP256R1())
    identifier = issuer.extensions.get_extension_for_class(x509.SubjectKeyIdentifier).value
    ends = min(now + lifetimes.leaf, issuer.not_valid_after_utc)
    builder = (
        _begun(key, now, lifetimes.backdated, ends)
        .serial_number(x509.random_serial_number())
        # Names may be longer than a common name can be, and verifiers look at the alternative names only.
        .subject_name(_name(f"{ORGANIZATION} server"))
        .issuer_name(issuer.subject)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(_key_usage(signs_certificates=False), critical=True)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(name) for name in names]), critical=False)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .add_extension(_authority_identifier(identifier), critical=False)
    )
    return _signed(builder, key, private_key_of(authority.key))


def _begun(
    key: ec.EllipticCurvePrivateKey, now: datetime, backdated: timedelta, ends: datetime
) -> x509.CertificateBuilder:
    builder = x509.CertificateBuilder().public_key(key.public_key())
    return builder.not_valid_before(now - backdated).not_valid_after(ends)


def _signed(
    builder: x509.CertificateBuilder, key: ec.EllipticCurvePrivateKey, signer: ec.EllipticCurvePrivateKey
) -> Pair:
    certificate = builder.sign(signer, hashes.SHA256()).public_bytes(Encoding.PEM)
    return Pair(certificate, key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))


def _name(common_name: str) -> x509.Name:
    return x509.Name(
        [
            x509.NameAttribute(NameOID.ORGANIZATION_NAME, ORGANIZATION),
            x509.NameAttribute(NameOID.COMMON_NAME, common_name),
        ]
    )


def _key_usage(*, signs_certificates: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=not signs_certificates,
        key_cert_sign=signs_certificates,
        crl_sign=signs_certificates,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )


def _authority_identifier(identifier: x509.SubjectKeyIdentifier) -> x509.AuthorityKeyIdentifier:
    return x509.AuthorityKeyIdentifier.from_issuer_subject_key_identifier(identifier)


def private_key_of(pem: bytes) -> ec.EllipticCurvePrivateKey:
    """The key in a PEM text; raises ValueError or TypeError if there is none of ours."""
    key = load_pem_private_key(pem, None)
    if not isinstance(key, ec.EllipticCurvePrivateKey):
        raise ValueError("not a key on an elliptic curve")
    return key
