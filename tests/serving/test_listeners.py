from __future__ import annotations

import errno
import os
import re
import socket
from contextlib import ExitStack, closing

import pytest

from webhook.errors import SettingsError
from webhook.serving.listeners import explained, open_listeners, url_of


def reach(host: str, port: int) -> None:
    socket.create_connection((host, port), timeout=30).close()


@pytest.mark.parametrize(
    ("address", "hosts"),
    [
        pytest.param("127.0.0.1:0", ["127.0.0.1"], id="ipv4"),
        pytest.param("[::1]:0", ["::1"], id="ipv6"),
        pytest.param("[::]:0", ["::1", "127.0.0.1"], id="any-ipv6-takes-both"),
        pytest.param(":0", ["::1", "127.0.0.1"], id="no-host-is-both-families"),
        pytest.param("localhost:0", ["localhost"], id="name"),
    ],
)
def test_an_address_is_listened_on_under_every_host_it_stands_for(address: str, hosts: list[str]) -> None:
    with ExitStack() as stack:
        listeners = [stack.enter_context(closing(each)) for each in open_listeners(address, "--bind")]
        assert len({each.getsockname()[1] for each in listeners}) == 1
        for host in hosts:
            reach(host, listeners[0].getsockname()[1])


@pytest.mark.parametrize(
    ("address", "url"),
    [
        pytest.param("127.0.0.1:0", "https://127.0.0.1:{}", id="ipv4"),
        pytest.param("[::1]:0", "https://[::1]:{}", id="ipv6"),
    ],
)
def test_the_url_of_a_listener_can_be_pasted_into_a_client(address: str, url: str) -> None:
    (listener,) = open_listeners(address, "--bind")
    with closing(listener):
        assert url_of(listener, "https") == url.format(listener.getsockname()[1])


def test_an_address_in_use_is_named_with_what_to_do() -> None:
    (listener,) = open_listeners("127.0.0.1:0", "--bind")
    with closing(listener):
        taken = f"127.0.0.1:{listener.getsockname()[1]}"
        with pytest.raises(SettingsError) as caught:
            open_listeners(taken, "--bind")
    assert str(caught.value) == f"--bind {taken}: another process listens there; stop it, or give another port"


@pytest.mark.parametrize(
    ("address", "text"),
    [
        pytest.param("192.0.2.1:8443", "this machine has no such address", id="foreign-address"),
        pytest.param("no-such-host.invalid:8443", "is no address or name of this machine", id="unknown-name"),
        pytest.param(f"{'a' * 70}.invalid:8443", "is no address or name of this machine", id="label-too-long"),
        pytest.param("[fe80::1]:8443", r"cannot listen there \(Invalid argument\)", id="link-local-without-interface"),
        pytest.param("nonsense", "must be HOST:PORT", id="no-port"),
    ],
)
def test_an_address_that_cannot_be_listened_on_is_named(address: str, text: str) -> None:
    with pytest.raises(SettingsError, match=f"--health-bind {re.escape(address)}: .*{text}"):
        open_listeners(address, "--health-bind")


def test_a_port_that_needs_root_is_named_with_what_to_do() -> None:
    # Who may listen where depends on the machine; what the system then says does not.
    refused = PermissionError(errno.EACCES, os.strerror(errno.EACCES))
    text = "--bind 127.0.0.1:1: this user may not listen there; give a port above 1023"
    assert str(explained(refused, "127.0.0.1:1", "--bind")) == text
