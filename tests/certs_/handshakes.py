"""Real TLS handshakes over a socket pair."""

from __future__ import annotations

import ssl
import tempfile
from pathlib import Path

from certs.authority import Pair


def handshake(server: Pair, trusted: bytes, name: str) -> dict[str, object]:
    """What a strict client that trusts `trusted` learns from the server; raises ssl.SSLError if it refuses."""
    client_side, server_side = ssl.MemoryBIO(), ssl.MemoryBIO()
    client = client_context(trusted).wrap_bio(client_side, server_side, server_hostname=name)
    other = server_context(server).wrap_bio(server_side, client_side, server_side=True)
    for _ in range(10):
        done = 0
        for side in (client, other):
            try:
                side.do_handshake()
                done += 1
            except ssl.SSLWantReadError:
                continue
        if done == 2:
            return client.getpeercert() or {}
    raise AssertionError("the handshake did not end")


def client_context(trusted: bytes) -> ssl.SSLContext:
    """As Python 3.13 makes it by default."""
    context = ssl.create_default_context(cadata=trusted.decode())
    context.verify_flags |= ssl.VERIFY_X509_STRICT | ssl.VERIFY_X509_PARTIAL_CHAIN
    return context


def server_context(pair: Pair) -> ssl.SSLContext:
    """A server that presents the pair."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    with tempfile.TemporaryDirectory() as directory:
        certificate, key = Path(directory, "tls.crt"), Path(directory, "tls.key")
        certificate.write_bytes(pair.certificate)
        key.write_bytes(pair.key)
        context.load_cert_chain(certificate, key)
    return context
