"""What the one Secret holds, as a frozen value.

    ca.crt ca.key             the CA that signs
    tls.crt tls.key           the certificate that is served, by that CA
    next-ca.* next-tls.*      those that take their place once the API server trusts the new CA
    retired.json              CAs that stay in the bundle for a while: [{"certificate": PEM, "until": time}]

It is read tolerantly: what somebody broke is kept as it is, for `stages` to judge.
"""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from certs.authority import Pair

_PAIRS: Final = {"authority": "ca", "leaf": "tls", "next_authority": "next-ca", "next_leaf": "next-tls"}
_RETIRED: Final = "retired.json"


@dataclass(frozen=True, slots=True)
class Retired:
    """A CA that signs nothing any more; trusted until then (UTC), since old certificates may be in use."""

    certificate: bytes
    until: datetime


@dataclass(frozen=True, slots=True)
class Material:
    """What is kept; see the module. A part that is missing is None."""

    authority: Pair | None = None
    leaf: Pair | None = None
    next_authority: Pair | None = None
    next_leaf: Pair | None = None
    retired: tuple[Retired, ...] = ()


EMPTY: Final = Material()


def material_from(data: Mapping[str, Any] | None) -> Material:
    """The value of a Secret's `data`; whatever cannot be read at all is as good as absent."""
    texts = {name: _decoded(text) for name, text in (data or {}).items()}
    pairs = {field: _pair(texts, stem) for field, stem in _PAIRS.items()}
    return Material(**pairs, retired=_retired(texts.get(_RETIRED, b"")))


def data_of(material: Material) -> dict[str, str | None]:
    """The Secret's `data` as a merge patch: every name of ours, None where it shall not be."""
    data: dict[str, str | None] = {}
    for field, stem in _PAIRS.items():
        pair: Pair | None = getattr(material, field)
        data[f"{stem}.crt"] = None if pair is None else _encoded(pair.certificate)
        data[f"{stem}.key"] = None if pair is None else _encoded(pair.key)
    entries = [{"certificate": each.certificate.decode(), "until": each.until.isoformat()} for each in material.retired]
    data[_RETIRED] = _encoded(json.dumps(entries, indent=1).encode()) if entries else None
    return data


def _pair(texts: Mapping[str, bytes], stem: str) -> Pair | None:
    certificate, key = texts.get(f"{stem}.crt", b""), texts.get(f"{stem}.key", b"")
    return Pair(certificate, key) if certificate or key else None


def _retired(text: bytes) -> tuple[Retired, ...]:
    try:
        entries = json.loads(text) if text else []
        return tuple(
            Retired(entry["certificate"].encode(), datetime.fromisoformat(entry["until"])) for entry in entries
        )
    except (ValueError, TypeError, KeyError, AttributeError):
        return ()


def _decoded(text: object) -> bytes:
    try:
        return base64.b64decode(text, validate=True) if isinstance(text, str) else b""
    except binascii.Error:
        return b""


def _encoded(content: bytes) -> str:
    return base64.b64encode(content).decode()
