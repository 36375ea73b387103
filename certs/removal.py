"""What an uninstall has to remove before Helm does, so that nobody is blocked and nothing comes back."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from certs.api import ApiCluster


@dataclass(frozen=True, slots=True)
class Leftovers:
    """Names of what a release has beside the keeper's own objects.

    `policies`: admission policies, with their bindings. `certificates`: cert-manager's, which would make their Secrets
    anew. `secrets`: what cert-manager has made, now or before certificates came from elsewhere.
    """

    policies: Sequence[str] = ()
    certificates: Sequence[str] = ()
    secrets: Sequence[str] = ()


def remove_all(cluster: ApiCluster, also: Leftovers, quiet: float, pause: Callable[[float], None]) -> list[str]:
    """Remove everything; what was there, in words. `quiet`: seconds in which replicas and cert-manager notice.

    Policies go before the webhook, which turns their guard into a pin: the other way round, pods that are
    created in between would wait for nothing. The keepers of pods that stop slowly write nothing once the
    configuration is gone; one that was in the middle of a write is waited for. Raises `ClusterError`.
    """
    removed = cluster.remove_policies(also.policies)
    if cluster.remove_configuration():
        removed.append("webhook configuration")
    removed += cluster.remove_certificates(also.certificates)
    pause(quiet / 2)
    removed += cluster.remove(also.secrets)
    pause(quiet / 2)
    return removed + cluster.remove(also.secrets)
