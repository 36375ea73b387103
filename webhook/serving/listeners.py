"""Listening sockets, opened before anything is forked, so that an address in use is one clear line."""

from __future__ import annotations

import errno
import socket
from collections.abc import Iterator

from webhook.addresses import split_address
from webhook.errors import SettingsError

# Connections that wait to be accepted: more than one burst of all API servers' connections together.
_BACKLOG = 1024
# The host lacks this address family or address: another address of the same name may do.
_ABSENT = frozenset({errno.EAFNOSUPPORT, errno.EADDRNOTAVAIL})


def open_listeners(address: str, flag: str) -> list[socket.socket]:
    """Listen on every address that "HOST:PORT" stands for; port 0 lets the system choose one port for all.

    No host means all interfaces, of both IP families where the machine has both. Raises `SettingsError`.
    """
    host, port = split_address(address, flag)
    listeners: list[socket.socket] = []
    absent: OSError | None = None
    for family, name in _names(host, address, flag):
        try:
            listeners.append(_listen(family, name, port))
        except OSError as error:
            if error.errno not in _ABSENT:
                _close(listeners)
                raise explained(error, address, flag) from error
            absent = error
            continue
        port = listeners[0].getsockname()[1]
        if not host:
            break  # "::" takes both families; "0.0.0.0" is for machines without IPv6
    if not listeners and absent is not None:
        raise explained(absent, address, flag) from absent
    return listeners


def url_of(listener: socket.socket, scheme: str) -> str:
    """The address of a listener as a URL."""
    host, port = listener.getsockname()[:2]
    return f"{scheme}://[{host}]:{port}" if ":" in host else f"{scheme}://{host}:{port}"


def _names(host: str, address: str, flag: str) -> Iterator[tuple[socket.AddressFamily, str]]:
    if not host:
        yield socket.AF_INET6, "::"
        yield socket.AF_INET, "0.0.0.0"  # noqa: S104 - no host means all interfaces
        return
    try:
        found = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:  # UnicodeError: no host name can be that long
        raise SettingsError(f"{flag} {address}: {host} is no address or name of this machine") from error
    # A hosts file may name one address twice.
    yield from dict.fromkeys((family, str(where[0])) for family, _kind, _protocol, _name, where in found)


def _listen(family: socket.AddressFamily, host: str, port: int) -> socket.socket:
    listener = socket.socket(family, socket.SOCK_STREAM)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6:
            # "::" serves IPv4 too; any other IPv6 address has an IPv4 one beside it.
            listener.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, host != "::")
        listener.bind((host, port))
        listener.listen(_BACKLOG)
        listener.setblocking(False)
    except OSError:
        listener.close()
        raise
    return listener


def _close(listeners: list[socket.socket]) -> None:
    for listener in listeners:
        listener.close()


def explained(error: OSError, address: str, flag: str) -> SettingsError:
    """Why nothing can be listened to at the address that `flag` gave, and what to do about it."""
    if error.errno == errno.EADDRINUSE:
        return SettingsError(f"{flag} {address}: another process listens there; stop it, or give another port")
    if error.errno == errno.EACCES:
        return SettingsError(f"{flag} {address}: this user may not listen there; give a port above 1023")
    if error.errno in _ABSENT:
        return SettingsError(f"{flag} {address}: this machine has no such address; give one that it has")
    return SettingsError(f"{flag} {address}: cannot listen there ({error.strerror})")
