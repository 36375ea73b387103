"""The loop of one replica: look at what is stored and published, hand the pair out, and write if it leads.

Every replica hands out: it puts the stored pair into the files that the server reads, and presents the next
one at the probe. The leader alone writes. Nothing is written while our configuration is not there: without it
nobody calls us, and whoever removes it (an uninstall) wants nothing of ours to come back. Nor while it says that
the certificates are another's affair: then replicas of the new mode have begun to come, and those of the old one
only go on serving.

Where somebody else makes the certificate (`given`), the server reads it by itself, and only the bundle is kept.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Final

from certs import checks, files, stages
from certs.authority import Pair
from certs.cluster import Cluster, ClusterError, Published, StoredSecret
from certs.figures import Figures
from certs.material import EMPTY, Material, data_of, material_from
from certs.state import Plan, Probe, Publish, State, Step, Store
from certs.trust_watch import TrustWatch

_LOG: Final = logging.getLogger(__name__)

FILES: Final = ("tls.crt", "tls.key")

_NOTHING: Final = Published("", ())

# Steps of one look; a first start takes two, a change of the CA begins with two.
_MOST_STEPS: Final = 6


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What the keeper works with.

    `leads`: renew the leadership; whether it is ours. `present`: show this pair at the probe. `clock`: UTC.
    `monotonic`: seconds. `given`: the CAs of whoever else makes the certificate, None where we do.
    """

    cluster: Cluster
    leads: Callable[[], bool]
    present: Callable[[Pair], None]
    clock: Callable[[], datetime]
    monotonic: Callable[[], float]
    given: Callable[[], tuple[bytes, ...] | None] = lambda: None


@dataclass(frozen=True, slots=True)
class _View:
    """One reading of the cluster; `secret` None: there is none."""

    secret: StoredSecret | None
    published: Published
    material: Material
    given: tuple[bytes, ...] | None

    @property
    def bundles(self) -> tuple[bytes, ...]:
        return tuple(bundle for _, bundle in self.published.entries)


class Keeper:
    """One replica's keeper; `directory` is where the server reads its pair."""

    def __init__(self, surroundings: Surroundings, plan: Plan, directory: Path, figures: Figures) -> None:
        self._with = surroundings
        self._plan = plan
        self._directory = directory
        self._figures = figures
        self._watch = TrustWatch(surroundings.monotonic)
        self._problem: str | None = "the API server has not been read yet"
        self._was_ready = False
        self._distrusted = False
        self._said = ""

    def look(self) -> None:
        """Look once, and do what is to be done; failures are told, counted, and tried again at the next look."""
        try:
            for _ in range(_MOST_STEPS):
                if not self._look_once():
                    return
        except ClusterError as error:
            if error.lost:
                _LOG.info("another replica was faster: %s", error)
                return
            self._figures.failed()
            self._say(logging.ERROR, str(error))
        except OSError as error:
            self._figures.failed()
            self._say(logging.ERROR, f"{self._directory}: {error.strerror}")

    def problem(self) -> str | None:
        """Why no review should be sent to this replica, None once that has passed.

        It passes for good: a bundle that somebody wipes later would else take all replicas out of the Service,
        beside the calls that it fails already.
        """
        return None if self._was_ready else self._problem

    def started(self) -> bool:
        """Whether there is a pair for the server to read."""
        return len(files.read(self._directory, FILES)) == len(FILES)

    def _look_once(self) -> bool:
        """Whether to look again at once."""
        published, secret = self._with.cluster.configuration(), self._with.cluster.secret()
        material = EMPTY if secret is None else material_from(secret.data)
        view = _View(secret, published or _NOTHING, material, self._with.given())
        if view.given is None:
            self._hand_out(material, view.bundles)
        if published is None:
            self._problem = "there is no MutatingWebhookConfiguration of ours"
            self._say(logging.WARNING, f"{self._problem}: nothing is done until there is")
            return False
        self._judge_readiness(view)
        if published.mode not in ("", self._plan.mode):
            self._say(logging.INFO, f"certificates are the affair of mode {published.mode} now: nothing is written")
            return False
        if view.given == ():
            self._say(logging.WARNING, "there is no CA yet that the API server could be told to trust")
            return False
        self._said = ""
        return self._advance(view)

    def _advance(self, view: _View) -> bool:
        """Do the next step, if this replica leads; whether to look again at once."""
        leads, now = self._with.leads(), self._with.clock()
        rotate = view.secret is not None and view.secret.rotate
        state = State(view.material, view.bundles, rotate, fresh=not self._was_ready, given=view.given)
        state = self._watch.timed(state)
        self._figures.looked(now, stages.stage_of(state), in_sync=stages.in_sync(state), leads=leads)
        if not leads:
            return False
        step = stages.next_step(state, self._plan, now)
        self._do(step, view)
        return isinstance(step, (Store, Publish))

    def _do(self, step: Step, view: _View) -> None:
        if isinstance(step, Store):
            self._store(step, view.secret)
        elif isinstance(step, Publish):
            self._with.cluster.publish(view.published, step.bundle)
            self._figures.changed("bundle")
            _LOG.info("%s", step.why)
        elif isinstance(step, Probe):
            sighting = self._with.cluster.probe(step.fingerprint)
            self._figures.sighted(sighting)
            self._watch.sighted(sighting)
            _LOG.info("an observed call of the new certificate: %s", sighting.value)

    def _store(self, step: Store, secret: StoredSecret | None) -> None:
        data = data_of(step.material)
        if secret is None:
            self._with.cluster.create_secret(data)
        else:
            self._with.cluster.change_secret(secret.version, data, rotated=step.rotated)
        self._figures.changed("secret")
        _LOG.info("%s", step.why)

    def _hand_out(self, material: Material, bundles: tuple[bytes, ...]) -> None:
        """Give the server its pair, and the probe the one to come."""
        now, authorities = self._with.clock(), stages.wanted_bundle(material)
        for kind, pair in (("ca", material.authority), ("leaf", material.leaf)):
            if pair is not None and checks.is_pair(pair):
                self._figures.expires(kind, pair.certificate)
        usable = [
            pair
            for pair in (material.next_leaf, material.leaf)
            if pair is not None and checks.leaf_problem(pair, authorities, self._plan.names, now) is None
        ]
        if usable:
            self._with.present(usable[0])
        leaf = material.leaf
        if leaf is None or leaf not in usable or not self._may_serve(leaf, bundles):
            return
        if files.write(self._directory, dict(zip(FILES, (leaf.certificate, leaf.key), strict=True))):
            _LOG.info("a certificate is handed out, valid until %s", checks.expires_at(leaf.certificate))

    def _may_serve(self, leaf: Pair, bundles: tuple[bytes, ...]) -> bool:
        """Whether the API server trusts the leaf; where nothing is served yet, that does not matter."""
        return not self.started() or self._trusted(leaf, bundles)

    def _trusted(self, leaf: Pair, bundles: tuple[bytes, ...]) -> bool:
        now = self._with.clock()
        return bool(bundles) and all(
            checks.leaf_problem(leaf, checks.certificates_in(bundle), self._plan.names, now) is None
            for bundle in bundles
        )

    def _judge_readiness(self, view: _View) -> None:
        served = files.read(self._directory, FILES)
        if len(served) < len(FILES):
            self._problem = "there is no certificate to serve yet"
            return
        if view.given is not None:
            self._figures.expires("leaf", served["tls.crt"])
        if not self._trusted(Pair(served["tls.crt"], served["tls.key"]), view.bundles):
            self._problem, self._distrusted = "the API server does not trust the certificate that is served yet", True
        elif self._distrusted:
            # API servers have it from a watch: the next look will do.
            self._problem, self._distrusted = "the API server has only just been told to trust the certificate", False
        else:
            self._problem, self._was_ready = None, True

    def _say(self, level: int, text: str) -> None:
        """Log a text once, until something else is to be said, or all is well again."""
        if text != self._said:
            _LOG.log(level, "%s", text)
        self._said = text
