from __future__ import annotations

import logging
import os
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_pem_private_key,
)
from cryptography.x509 import CertificateBuilder, Name, NameAttribute, NameOID
from running_server import Authority, MountedSecret

from webhook.errors import SettingsError
from webhook.serving.tls import Certificates


@pytest.fixture(scope="module")
def authority() -> Authority:
    return Authority()


@pytest.fixture
def pair(tmp_path: Path, authority: Authority) -> tuple[Path, Path]:
    return authority.issue(tmp_path / "tls")


def missing(path: Path) -> None:
    path.unlink()


def a_folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


def garbage(path: Path) -> None:
    path.write_text("-----BEGIN NONSENSE-----\n")


def empty(path: Path) -> None:
    path.write_bytes(b"")


def encrypted(path: Path) -> None:
    key = load_pem_private_key(path.read_bytes(), None)
    path.write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, BestAvailableEncryption(b"secret")))


@pytest.mark.parametrize(
    ("spoilt", "spoil", "text"),
    [
        pytest.param(0, missing, "--tls-cert {}: no such file; give a PEM file", id="no-certificate"),
        pytest.param(1, missing, "--tls-key {}: no such file; give a PEM file", id="no-key"),
        pytest.param(0, a_folder, "--tls-cert {}: cannot be read (Is a directory)", id="folder"),
        pytest.param(0, garbage, "--tls-cert {}: no certificate in PEM form", id="garbage-certificate"),
        pytest.param(0, empty, "--tls-cert {}: no certificate in PEM form", id="empty-certificate"),
        pytest.param(1, garbage, "--tls-key {}: no private key in PEM form", id="garbage-key"),
        pytest.param(1, empty, "--tls-key {}: no private key in PEM form", id="empty-key"),
        pytest.param(1, encrypted, "--tls-key {}: the key is encrypted; store it without", id="encrypted"),
    ],
)
def test_a_file_that_cannot_be_served_is_named_with_what_to_do(
    pair: tuple[Path, Path], spoilt: int, spoil: Callable[[Path], None], text: str
) -> None:
    spoil(pair[spoilt])
    with pytest.raises(SettingsError) as caught:
        Certificates(*pair)
    assert text.format(pair[spoilt]) in str(caught.value)


def test_a_key_of_another_certificate_is_refused(tmp_path: Path, authority: Authority, pair: tuple[Path, Path]) -> None:
    _, foreign_key = authority.issue(tmp_path / "foreign")
    with pytest.raises(SettingsError, match=r"does not belong to the certificate .* issued together"):
        Certificates(pair[0], foreign_key)


def test_a_key_that_openssl_finds_too_weak_is_said_to_be_so(tmp_path: Path) -> None:
    weak = rsa.generate_private_key(65537, 1024)  # the least that `cryptography` makes
    name = Name([NameAttribute(NameOID.COMMON_NAME, "weak")])
    moment = datetime(2026, 1, 1, tzinfo=UTC)
    builder = CertificateBuilder(name, name, weak.public_key(), 1, moment, moment + timedelta(days=1))
    certificate, key = tmp_path / "tls.crt", tmp_path / "tls.key"
    certificate.write_bytes(builder.sign(weak, SHA256()).public_bytes(Encoding.PEM))
    key.write_bytes(weak.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    with pytest.raises(SettingsError, match=f"--tls-cert {certificate}: OpenSSL finds it too weak"):
        Certificates(certificate, key)


def test_the_context_is_built_once_while_the_files_stay(pair: tuple[Path, Path]) -> None:
    certificates = Certificates(*pair)
    assert certificates.context() is certificates.context()


def test_a_switched_secret_is_served_at_the_next_connection_and_built_once(
    tmp_path: Path, authority: Authority
) -> None:
    secret = MountedSecret(tmp_path, authority)
    certificates = Certificates(secret.certificate, secret.key)
    before = certificates.context()
    secret.switch()
    after = certificates.context()
    assert after is not before
    assert certificates.context() is after


def test_files_touched_without_a_new_content_are_read_again(pair: tuple[Path, Path]) -> None:
    certificates = Certificates(*pair)
    before = certificates.context()
    os.utime(pair[0], ns=(1, 1))
    assert certificates.context() is not before


def test_half_a_new_pair_is_not_served_and_said_once(
    tmp_path: Path, authority: Authority, pair: tuple[Path, Path], caplog: pytest.LogCaptureFixture
) -> None:
    certificates = Certificates(*pair)
    good = certificates.context()
    new_certificate, new_key = authority.issue(tmp_path / "new")

    pair[0].write_bytes(new_certificate.read_bytes())
    for _ in range(3):
        assert certificates.context() is good
    complaints = [record for record in caplog.records if record.levelno == logging.ERROR]
    assert len(complaints) == 1
    assert "the last good certificate is served on" in complaints[0].getMessage()
    assert certificates.certificate_problem() is None

    pair[1].write_bytes(new_key.read_bytes())
    assert certificates.context() is not good


def test_files_that_vanish_leave_the_last_good_pair_and_are_read_when_they_return(
    pair: tuple[Path, Path], caplog: pytest.LogCaptureFixture
) -> None:
    certificates = Certificates(*pair)
    good = certificates.context()
    away = pair[1].rename(pair[1].with_name("away"))
    assert certificates.context() is good
    assert certificates.context() is good
    assert [record.levelno for record in caplog.records] == [logging.ERROR]

    away.rename(pair[1])
    renewed = certificates.context()
    assert renewed is not good
    assert certificates.context() is renewed


@pytest.mark.parametrize(
    ("moment", "problem"),
    [
        pytest.param(timedelta(seconds=-1), None, id="last-second"),
        pytest.param(timedelta(), "expired at 3000-01-01T00:00:00+00:00", id="expired"),
        pytest.param(timedelta(days=-365_500), "is not valid before 2000-01-01T", id="too-early"),
    ],
)
def test_a_certificate_that_no_client_would_accept_is_a_problem(
    pair: tuple[Path, Path], moment: timedelta, problem: str | None
) -> None:
    end = datetime(3000, 1, 1, tzinfo=UTC)
    certificates = Certificates(*pair, clock=lambda: end + moment)
    assert certificates.not_after() == end
    found = certificates.certificate_problem()
    assert found is None if problem is None else problem in str(found)


@pytest.mark.parametrize(
    ("moment", "problem"),
    [(timedelta(), "expired at 3000-01-01T00:00:00+00:00"), (timedelta(days=-365_500), "is not valid before 2000-01-")],
    ids=["expired", "too early"],
)
def test_a_certificate_that_no_client_would_accept_is_an_error_in_the_log_from_the_start(
    pair: tuple[Path, Path], caplog: pytest.LogCaptureFixture, moment: timedelta, problem: str
) -> None:
    certificates = Certificates(*pair, clock=lambda: datetime(3000, 1, 1, tzinfo=UTC) + moment)
    certificates.context()

    (record,) = caplog.records
    assert record.levelno == logging.ERROR
    assert record.getMessage().startswith(f"the certificate of {pair[0]} {problem}")
    assert record.getMessage().endswith("no API server accepts it; put a valid one there, it is read when it changes")


def test_a_certificate_that_expires_while_it_is_served_is_an_error_in_the_log_once(
    pair: tuple[Path, Path], caplog: pytest.LogCaptureFixture
) -> None:
    now = [datetime(2999, 12, 31, tzinfo=UTC)]
    certificates = Certificates(*pair, clock=lambda: now[0])
    assert not caplog.records

    now[0] += timedelta(days=1)
    for _ in range(3):
        certificates.context()

    assert [record.levelno for record in caplog.records] == [logging.ERROR]
