"""Addresses to listen on, as "HOST:PORT"."""

from __future__ import annotations

import ipaddress

from webhook.errors import SettingsError


def split_address(address: str, flag: str = "address") -> tuple[str, int]:
    """Host and port of "HOST:PORT", "[IPV6]:PORT" or ":PORT" (host "": all interfaces).

    Port 0 lets the system choose one. Raises `SettingsError` naming `flag`.
    """
    host, colon, port = address.rpartition(":")
    if not (colon and port.isascii() and port.isdigit() and len(port) <= 5 and int(port) <= 65_535):
        raise SettingsError(f"{flag} {address}: must be HOST:PORT with a port from 0 to 65535")
    if any(character.isspace() or character == "/" for character in host):
        raise SettingsError(f"{flag} {address}: must be HOST:PORT, without a scheme, a path or spaces")
    if host.startswith("[") and host.endswith("]"):
        host = host[1:-1]
        if not _is_ipv6(host):
            raise SettingsError(f"{flag} {address}: {host!r} is no IPv6 address")
    elif any(character in host for character in ":[]"):
        raise SettingsError(f"{flag} {address}: an IPv6 address goes in brackets, as in [::1]:8443")
    return host, int(port)


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach the host; a name other than localhost may be anything."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _is_ipv6(host: str) -> bool:
    try:
        ipaddress.IPv6Address(host)
    except ValueError:
        return False
    return True
