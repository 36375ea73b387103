"""A cluster that behaves as an API server does where the keeper can tell: versions, conflicts, trust."""

from __future__ import annotations

import ssl
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from certs import checks
from certs.authority import Pair
from certs.cluster import ClusterError, Published, Sighting, StoredSecret
from certs_.handshakes import handshake


@dataclass
class BehavingCluster:
    """One Secret, one configuration; the probe does a real handshake with what `presented` gives."""

    name: str
    presented: Callable[[], Pair | None] = lambda: None
    stored: StoredSecret | None = None
    published: Published | None = field(default_factory=lambda: Published("1", (("pods", b""), ("probe", b""))))
    version: int = 1
    writes: list[str] = field(default_factory=list)
    before_write: Callable[[], None] = lambda: None
    """Called once before the next write is looked at: what another writer does meanwhile."""
    failing: ClusterError | None = None

    def secret(self) -> StoredSecret | None:
        self._answer()
        return self.stored

    def create_secret(self, data: Mapping[str, str | None]) -> None:
        self._begin_write()
        if self.stored is not None:
            raise ClusterError("create secret", 409, "already exists")
        self.put_secret({name: text for name, text in data.items() if text is not None})
        self.writes.append("create secret")

    def change_secret(self, version: str, data: Mapping[str, str | None], *, rotated: bool) -> None:
        self._begin_write()
        if self.stored is None:
            raise ClusterError("patch secret", 404, "not found")
        if self.stored.version != version:
            raise ClusterError("patch secret", 409, "the object has been modified")
        merged = {**self.stored.data, **data}
        rotate = self.stored.rotate and not rotated
        self.put_secret({name: text for name, text in merged.items() if text is not None}, rotate=rotate)
        self.writes.append("patch secret")

    def configuration(self) -> Published | None:
        self._answer()
        return self.published

    def publish(self, published: Published, bundle: bytes) -> None:
        self._begin_write()
        if self.published is None:
            raise ClusterError("patch configuration", 404, "not found")
        if self.published.version != published.version:
            raise ClusterError("patch configuration", 409, "the object has been modified")
        self.put_bundles(*(bundle for _ in self.published.entries))
        self.writes.append("patch configuration")

    def probe(self, fingerprint: str) -> Sighting:
        pair, published = self.presented(), self.published
        if pair is None or published is None:
            return Sighting.UNANSWERED
        try:
            handshake(pair, published.entries[1][1], self.name)
        except ssl.SSLError:
            return Sighting.DISTRUSTED
        return Sighting.MET if checks.fingerprint(pair.certificate) == fingerprint else Sighting.OTHER

    def put_secret(self, data: Mapping[str, str], *, rotate: bool = False) -> None:
        """Write the Secret as somebody might."""
        self.version += 1
        self.stored = StoredSecret(str(self.version), dict(data), rotate)

    def ask_for_rotation(self) -> None:
        """As `rotate` does."""
        assert self.stored is not None
        self.version += 1
        self.stored = replace(self.stored, version=str(self.version), rotate=True)

    def put_bundles(self, *bundles: bytes) -> None:
        """Write the configuration as somebody might."""
        self.version += 1
        before = self.published or Published("", (("pods", b""), ("probe", b"")))
        names = (name for name, _ in before.entries)
        entries = tuple(zip(names, bundles, strict=True))
        self.published = replace(before, version=str(self.version), entries=entries)

    def _answer(self) -> None:
        if self.failing is not None:
            raise self.failing

    def _begin_write(self) -> None:
        self._answer()
        meanwhile, self.before_write = self.before_write, lambda: None
        meanwhile()
