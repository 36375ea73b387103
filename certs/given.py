"""The CAs of somebody else, where the server's certificate is not made by us."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable
from pathlib import Path
from typing import Final

from certs import checks
from certs.state import Mode

Given = Callable[[], tuple[bytes, ...] | None]

GIVEN_MODES: Final = (Mode.EXISTING.value, Mode.CERT_MANAGER.value)


def given_by(bundle: str, path: Path | None) -> Given:
    """What gives the CAs, as PEM: those of a base64 text, else those that a file holds whenever it is asked.

    A file that is not there yet, or cannot be read, gives none. Raises ValueError for a text without any
    certificate, and where there is neither.
    """
    if bundle:
        try:
            certificates = checks.certificates_in(base64.b64decode("".join(bundle.split()), validate=True))
        except binascii.Error:
            certificates = ()
        if not certificates:
            raise ValueError("--ca-bundle is not base64 of certificates in PEM")
        return lambda: certificates
    if path is None:
        raise ValueError("give --ca-bundle or --ca-file")
    return lambda: _read(path)


def _read(path: Path) -> tuple[bytes, ...]:
    try:
        return checks.certificates_in(path.read_bytes())
    except OSError:
        return ()
