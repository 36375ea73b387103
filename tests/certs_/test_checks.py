"""What is found wrong with certificates, and when they are renewed."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
import trustme
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID

from certs import checks
from certs.authority import Lifetimes, Pair, issue_authority, issue_leaf, service_names

NOW = datetime(2026, 9, 15, 12, 0, tzinfo=UTC)
NAMES = service_names("hook", "rel")
AUTHORITY = issue_authority(NOW)
LEAF = issue_leaf(AUTHORITY, NAMES, NOW)
OTHER = issue_authority(NOW)
GARBAGE = b"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"


def rsa_key() -> bytes:
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())


def rsa_pair() -> Pair:
    """A self-signed certificate of somebody else's, with a key of a kind that we do not make."""
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "theirs")])
    builder = x509.CertificateBuilder().subject_name(name).issuer_name(name).public_key(key.public_key())
    builder = builder.serial_number(1).not_valid_before(NOW).not_valid_after(NOW + timedelta(days=1))
    builder = builder.add_extension(x509.SubjectAlternativeName([x509.DNSName(NAMES[2])]), critical=False)
    certificate = builder.sign(key, hashes.SHA256()).public_bytes(Encoding.PEM)
    return Pair(certificate, key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))


def test_a_self_signed_certificate_of_somebody_elses_may_be_its_own_authority() -> None:
    theirs = rsa_pair()
    assert checks.is_pair(theirs)
    assert checks.leaf_problem(theirs, [theirs.certificate], NAMES[2:3], NOW) is None
    assert "no CA" in (checks.leaf_problem(theirs, [AUTHORITY.certificate], NAMES[2:3], NOW) or "")


def test_a_chain_leads_to_an_authority_that_has_not_issued_the_certificate_itself() -> None:
    root = trustme.CA()
    between = root.create_child_ca().create_child_ca()
    issued = between.issue_cert(NAMES[2])
    chain = b"".join(blob.bytes() for blob in issued.cert_chain_pems)
    theirs, now = Pair(chain, issued.private_key_pem.bytes()), datetime.now(UTC)
    assert len(checks.certificates_in(chain)) == 3
    assert checks.leaf_problem(theirs, [root.cert_pem.bytes()], NAMES[2:3], now) is None
    assert "no CA" in (checks.leaf_problem(theirs, [trustme.CA().cert_pem.bytes()], NAMES[2:3], now) or "")
    alone = Pair(issued.cert_chain_pems[0].bytes(), theirs.key)
    assert "no CA" in (checks.leaf_problem(alone, [root.cert_pem.bytes()], NAMES[2:3], now) or "")


def test_what_was_issued_has_no_problem() -> None:
    assert checks.authority_problem(AUTHORITY, NOW) is None
    assert checks.leaf_problem(LEAF, [OTHER.certificate, AUTHORITY.certificate], NAMES, NOW) is None


@pytest.mark.parametrize(
    ("pair", "problem"),
    [
        pytest.param(Pair(b"", b""), "cannot be read", id="nothing"),
        pytest.param(Pair(GARBAGE, AUTHORITY.key), "cannot be read", id="garbage"),
        pytest.param(Pair(AUTHORITY.certificate, b"\xff"), "cannot be read", id="key is garbage"),
        pytest.param(Pair(AUTHORITY.certificate, rsa_key()), "cannot be read", id="key of another kind"),
        pytest.param(Pair(AUTHORITY.certificate, OTHER.key), "belong together", id="key of another"),
        pytest.param(LEAF, "no CA", id="a leaf"),
        pytest.param(rsa_pair(), "its key is none of ours", id="a key of another kind"),
        pytest.param(issue_authority(NOW - timedelta(days=1826)), "expired", id="expired"),
        pytest.param(issue_authority(NOW + timedelta(hours=2)), "not valid yet", id="of a clock far ahead"),
    ],
)
def test_an_authority_that_cannot_sign_is_found(pair: Pair, problem: str) -> None:
    assert problem in (checks.authority_problem(pair, NOW) or "")


@pytest.mark.parametrize(
    ("pair", "problem"),
    [
        pytest.param(Pair(b"", b""), "cannot be read", id="nothing"),
        pytest.param(Pair(LEAF.certificate, AUTHORITY.key), "belong together", id="key of another"),
        pytest.param(issue_leaf(AUTHORITY, NAMES, NOW - timedelta(days=91)), "expired", id="expired"),
        pytest.param(issue_leaf(AUTHORITY, NAMES[:2], NOW), "hook.rel.svc", id="name missing"),
        pytest.param(issue_leaf(OTHER, NAMES, NOW), "no CA", id="of another CA"),
        pytest.param(AUTHORITY, "not for", id="the CA itself"),
    ],
)
def test_a_leaf_that_clients_would_refuse_is_found(pair: Pair, problem: str) -> None:
    assert problem in (checks.leaf_problem(pair, [AUTHORITY.certificate], NAMES, NOW) or "")


def test_authorities_that_cannot_be_read_issue_nothing() -> None:
    assert "no CA" in (checks.leaf_problem(LEAF, [GARBAGE], NAMES, NOW) or "")


def test_a_certificate_is_renewed_at_two_thirds_of_its_life() -> None:
    lifetimes = Lifetimes(leaf=timedelta(hours=89), backdated=timedelta(hours=1))
    leaf = issue_leaf(AUTHORITY, NAMES, NOW, lifetimes).certificate
    assert checks.renewed_at(leaf) == NOW + timedelta(hours=59)
    assert not checks.renewal_due(leaf, NOW + timedelta(hours=59, seconds=-1))
    assert checks.renewal_due(leaf, NOW + timedelta(hours=59))


def test_a_bundle_is_read_as_it_was_written() -> None:
    bundle = checks.bundle_of([AUTHORITY.certificate, OTHER.certificate, AUTHORITY.certificate])
    assert checks.certificates_in(bundle) == (AUTHORITY.certificate, OTHER.certificate)


@pytest.mark.parametrize("bundle", [b"", b"\n", b"what is this", AUTHORITY.certificate + GARBAGE])
def test_a_bundle_that_cannot_be_read_holds_nothing(bundle: bytes) -> None:
    assert checks.certificates_in(bundle) == ()


def test_fingerprints_tell_certificates_apart() -> None:
    assert checks.fingerprint(AUTHORITY.certificate) != checks.fingerprint(OTHER.certificate)
    assert len(checks.fingerprint(LEAF.certificate)) == 64


def test_names_of_what_is_no_certificate_are_none() -> None:
    assert checks.dns_names(GARBAGE) == ()
    assert checks.dns_names(AUTHORITY.certificate) == ()


def test_the_end_of_a_certificate_is_in_utc() -> None:
    assert checks.expires_at(LEAF.certificate) == NOW + timedelta(days=90)


def test_garbage_is_no_trust_anchor() -> None:
    assert checks.trust_problem(GARBAGE, NOW) == "it cannot be read"


def test_a_certificate_that_does_not_say_that_it_is_a_ca_signs_nothing_but_can_be_trusted() -> None:
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "plain")])
    builder = x509.CertificateBuilder().subject_name(name).issuer_name(name).public_key(key.public_key())
    builder = builder.serial_number(1).not_valid_before(NOW).not_valid_after(NOW + timedelta(days=1))
    plain = builder.sign(key, hashes.SHA256()).public_bytes(Encoding.PEM)
    secret = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    assert checks.authority_problem(Pair(plain, secret), NOW) == "it is no CA"
    assert checks.trust_problem(plain, NOW) is None
