"""Sockets that listen on all interfaces, of both IP families where there are two."""

from __future__ import annotations

import socket
import socketserver


def _family() -> socket.AddressFamily:
    try:
        socket.create_server(("", 0), family=socket.AF_INET6, dualstack_ipv6=True).close()
    except (OSError, ValueError):  # switched off, or not there at all
        return socket.AF_INET
    return socket.AF_INET6


class DualStack(socketserver.TCPServer):
    """To be mixed into a server: clusters may have either family alone."""

    address_family = _family()

    def server_bind(self) -> None:
        """Take the calls of the older family too."""
        if self.address_family == socket.AF_INET6:
            self.socket.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
        super().server_bind()
