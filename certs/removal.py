"""What an uninstall has to remove before Helm does, so that nobody is blocked and nothing comes back."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from certs.api import ApiCluster


def remove_all(cluster: ApiCluster, policies: Sequence[str], quiet: float, pause: Callable[[float], None]) -> list[str]:
    """Remove everything; what was there, in words. `quiet`: seconds in which the replicas notice.

    Policies go before the webhook, which turns their guard into a pin: the other way round, pods that are
    created in between would wait for nothing. The keepers of pods that stop slowly write nothing once the
    configuration is gone; one that was in the middle of a write is waited for. Raises `ClusterError`.
    """
    removed = cluster.remove_policies(policies)
    if cluster.remove_configuration():
        removed.append("webhook configuration")
    pause(quiet / 2)
    removed += cluster.remove()
    pause(quiet / 2)
    return removed + cluster.remove()
