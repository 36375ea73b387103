"""What is issued: every extension, and what verifiers make of it."""

from __future__ import annotations

import ssl
from datetime import UTC, datetime, timedelta

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID
from cryptography.x509.verification import PolicyBuilder, Store

from certs.authority import Lifetimes, Pair, issue_authority, issue_leaf, service_names
from certs_.handshakes import handshake

NOW = datetime(2026, 9, 15, 12, 0, tzinfo=UTC)
NAMES = service_names("hook", "rel")
ADDRESSED = "hook.rel.svc"


def now() -> datetime:
    return datetime.now(UTC).replace(microsecond=0)


def read(pair: Pair) -> x509.Certificate:
    return x509.load_pem_x509_certificate(pair.certificate)


@pytest.fixture(scope="module")
def authority() -> Pair:
    return issue_authority(NOW)


@pytest.fixture(scope="module")
def leaf(authority: Pair) -> Pair:
    return issue_leaf(authority, NAMES, NOW)


def extensions_of(pair: Pair) -> dict[str, bool]:
    return {extension.oid._name: extension.critical for extension in read(pair).extensions}


def test_a_service_has_four_names() -> None:
    assert NAMES == ("hook", "hook.rel", "hook.rel.svc", "hook.rel.svc.cluster.local")


def test_without_a_cluster_domain_a_service_has_three_names() -> None:
    assert service_names("hook", "rel", "") == ("hook", "hook.rel", "hook.rel.svc")


def test_the_authority_has_these_extensions_with_this_criticality(authority: Pair) -> None:
    assert extensions_of(authority) == {
        "basicConstraints": True,
        "keyUsage": True,
        "subjectKeyIdentifier": False,
        "authorityKeyIdentifier": False,
    }


def test_the_leaf_has_these_extensions_with_this_criticality(leaf: Pair) -> None:
    assert extensions_of(leaf) == {
        "basicConstraints": True,
        "keyUsage": True,
        "extendedKeyUsage": False,
        "subjectAltName": False,
        "subjectKeyIdentifier": False,
        "authorityKeyIdentifier": False,
    }


def test_the_authority_may_sign_leaves_and_nothing_else(authority: Pair) -> None:
    found = read(authority).extensions
    basic = found.get_extension_for_class(x509.BasicConstraints).value
    usage = found.get_extension_for_class(x509.KeyUsage).value
    assert (basic.ca, basic.path_length) == (True, 0)
    assert (usage.key_cert_sign, usage.crl_sign, usage.digital_signature) == (True, True, False)


def test_the_leaf_may_serve_and_nothing_else(leaf: Pair) -> None:
    found = read(leaf).extensions
    usage = found.get_extension_for_class(x509.KeyUsage).value
    assert not found.get_extension_for_class(x509.BasicConstraints).value.ca
    assert (usage.key_cert_sign, usage.crl_sign, usage.digital_signature) == (False, False, True)
    assert list(found.get_extension_for_class(x509.ExtendedKeyUsage).value) == [ExtendedKeyUsageOID.SERVER_AUTH]


def test_the_leaf_is_for_the_names_of_the_service(leaf: Pair) -> None:
    found = read(leaf).extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert tuple(found.get_values_for_type(x509.DNSName)) == NAMES


def test_the_leaf_names_the_key_of_its_authority(authority: Pair, leaf: Pair) -> None:
    issuer = read(authority).extensions.get_extension_for_class(x509.SubjectKeyIdentifier).value
    named = read(leaf).extensions.get_extension_for_class(x509.AuthorityKeyIdentifier).value
    assert named.key_identifier == issuer.digest
    assert read(leaf).issuer == read(authority).subject


@pytest.mark.parametrize("kind", ["authority", "leaf"])
def test_keys_are_p_256(kind: str, request: pytest.FixtureRequest) -> None:
    key = read(request.getfixturevalue(kind)).public_key()
    assert isinstance(key, ec.EllipticCurvePublicKey)
    assert isinstance(key.curve, ec.SECP256R1)


def test_the_authority_is_valid_for_five_years_and_the_leaf_for_ninety_days(authority: Pair, leaf: Pair) -> None:
    assert read(authority).not_valid_after_utc - NOW == timedelta(days=1825)
    assert read(leaf).not_valid_after_utc - NOW == timedelta(days=90)


@pytest.mark.parametrize("kind", ["authority", "leaf"])
def test_certificates_begin_an_hour_before_they_are_made(kind: str, request: pytest.FixtureRequest) -> None:
    assert NOW - read(request.getfixturevalue(kind)).not_valid_before_utc == timedelta(hours=1)


def test_a_leaf_does_not_outlive_its_authority() -> None:
    short = issue_authority(NOW, Lifetimes(authority=timedelta(days=30)))
    assert read(issue_leaf(short, NAMES, NOW)).not_valid_after_utc == read(short).not_valid_after_utc


def test_two_authorities_share_neither_subject_nor_key_identifier_nor_serial() -> None:
    first, second = (read(issue_authority(NOW)) for _ in range(2))
    identifiers = {
        each.extensions.get_extension_for_class(x509.SubjectKeyIdentifier).value.digest for each in (first, second)
    }
    assert len(identifiers) == 2
    assert first.subject != second.subject
    assert first.serial_number != second.serial_number


def test_serial_numbers_of_leaves_are_random_and_long(authority: Pair) -> None:
    serials = {read(issue_leaf(authority, NAMES, NOW)).serial_number for _ in range(5)}
    assert len(serials) == 5
    assert max(serials).bit_length() > 128


def test_names_longer_than_a_common_name_can_be_are_served() -> None:
    names = service_names("s" * 63, "n" * 63)
    authority = issue_authority(now())
    leaf = issue_leaf(authority, names, now())
    assert handshake(leaf, authority.certificate, names[2])


def test_a_strict_client_accepts_the_leaf() -> None:
    authority = issue_authority(now())
    assert handshake(issue_leaf(authority, NAMES, now()), authority.certificate, ADDRESSED)


@pytest.mark.parametrize("old_first", [True, False], ids=["old first", "new first"])
def test_with_both_authorities_in_the_bundle_either_leaf_is_accepted(old_first: bool) -> None:
    old, new = (issue_authority(now()) for _ in range(2))
    first, second = (old, new) if old_first else (new, old)
    for issuer in (old, new):
        leaf = issue_leaf(issuer, NAMES, now())
        assert handshake(leaf, first.certificate + second.certificate, ADDRESSED)


def test_a_name_that_the_leaf_is_not_for_is_refused() -> None:
    authority = issue_authority(now())
    with pytest.raises(ssl.SSLCertVerificationError, match="Hostname mismatch"):
        handshake(issue_leaf(authority, NAMES, now()), authority.certificate, "other.rel.svc")


def test_a_client_that_trusts_another_authority_refuses() -> None:
    leaf = issue_leaf(issue_authority(now()), NAMES, now())
    with pytest.raises(ssl.SSLCertVerificationError, match="certificate verify failed"):
        handshake(leaf, issue_authority(now()).certificate, ADDRESSED)


def test_an_expired_leaf_is_refused() -> None:
    authority = issue_authority(now())
    leaf = issue_leaf(authority, NAMES, now() - timedelta(days=91))
    with pytest.raises(ssl.SSLCertVerificationError, match="expired"):
        handshake(leaf, authority.certificate, ADDRESSED)


def test_a_leaf_whose_authority_has_expired_is_refused() -> None:
    long_ago = now() - timedelta(days=31)
    authority = issue_authority(long_ago, Lifetimes(authority=timedelta(days=30)))
    leaf = issue_leaf(authority, NAMES, long_ago)
    with pytest.raises(ssl.SSLCertVerificationError, match="expired"):
        handshake(leaf, authority.certificate, ADDRESSED)


@pytest.mark.parametrize("minutes", [-10, 10])
def test_a_pair_made_by_a_clock_ten_minutes_off_is_accepted(minutes: int) -> None:
    issuing = now() + timedelta(minutes=minutes)
    authority = issue_authority(issuing)
    assert handshake(issue_leaf(authority, NAMES, issuing), authority.certificate, ADDRESSED)


def test_a_verifier_with_the_rules_of_the_web_accepts_the_chain(authority: Pair, leaf: Pair) -> None:
    builder = PolicyBuilder().store(Store([read(authority)])).time(NOW)
    assert builder.build_server_verifier(x509.DNSName(ADDRESSED)).verify(read(leaf), [])
