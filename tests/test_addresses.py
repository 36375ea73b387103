"""Addresses to listen on."""

from __future__ import annotations

import pytest

from webhook.addresses import is_loopback, split_address
from webhook.errors import SettingsError


@pytest.mark.parametrize(
    ("address", "host", "port"),
    [
        ("localhost:8443", "localhost", 8443),
        ("10.0.0.1:0", "10.0.0.1", 0),
        ("[::1]:8443", "::1", 8443),
        ("[fe80::1%eth0]:65535", "fe80::1%eth0", 65535),
        (":8443", "", 8443),
    ],
)
def test_an_address_is_a_host_and_a_port(address: str, host: str, port: int):
    assert split_address(address) == (host, port)


@pytest.mark.parametrize(
    ("address", "right"),
    [
        pytest.param("", "HOST:PORT", id="empty"),
        pytest.param("localhost", "HOST:PORT", id="no port"),
        pytest.param("localhost:", "HOST:PORT", id="empty port"),
        pytest.param("localhost:65536", "65535", id="port too large"),
        pytest.param("localhost:-1", "65535", id="negative port"),
        pytest.param("localhost:٨٤", "65535", id="digits of another script"),
        pytest.param("localhost:" + "9" * 5000, "65535", id="endless port"),
        pytest.param("https://localhost:8443", "scheme", id="URL"),
        pytest.param("local host:8443", "spaces", id="space"),
        pytest.param("::1:8443", "brackets", id="IPv6 without brackets"),
        pytest.param("[localhost]:8443", "no IPv6 address", id="name in brackets"),
        pytest.param("[::1:8443", "brackets", id="bracket left open"),
    ],
)
def test_anything_else_is_refused_with_what_is_right(address: str, right: str):
    with pytest.raises(SettingsError, match=right) as caught:
        split_address(address, "--bind")

    assert str(caught.value).startswith(f"--bind {address}:")


@pytest.mark.parametrize(
    ("host", "loopback"),
    [
        ("localhost", True),
        ("127.0.0.1", True),
        ("127.8.8.8", True),
        ("::1", True),
        ("", False),
        ("0.0.0.0", False),
        ("::", False),
        ("10.0.0.1", False),
        ("my.host", False),
    ],
)
def test_only_this_machines_own_addresses_are_loopback(host: str, loopback: bool):
    assert is_loopback(host) is loopback
