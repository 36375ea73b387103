"""The kinds that this product knows, found by what a manifest says of itself."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from webhook.cluster import door

BUILT_IN: Final = (
    door.PODS,
    door.CLAIMS,
    door.PERSISTENT_VOLUMES,
    door.NODES,
    door.NAMESPACES,
    door.STORAGE_CLASSES,
    door.CSI_DRIVERS,
    door.CSI_NODES,
    door.CSI_STORAGE_CAPACITIES,
    door.VOLUME_ATTACHMENTS,
    door.STATEFUL_SETS,
    door.EVENTS,
)
"""Served by every API server."""

CUSTOM: Final = (
    door.ADVANCED_STATEFUL_SETS,
    door.TIDB_CLUSTERS,
    door.DM_CLUSTERS,
    door.V2_CLUSTERS,
    door.PD_GROUPS,
    door.PDS,
    door.TIKV_GROUPS,
    door.TIKVS,
    door.DM_GROUPS,
    door.DMS,
)
"""Served where tidb-operator's custom resource definitions are installed."""

DUMPED: Final = "nodes,ns,pods,pvc,pv,sc,sts,csinodes,csidrivers,csistoragecapacities,volumeattachments"
"""What decisions look at of what every API server serves, in kubectl's words; events only explain."""

DUMPED_OF_V1: Final = "tidbclusters,dmclusters"
DUMPED_OF_V2: Final = "clusters.core.pingcap.com,pdgroups,pds,tikvgroups,tikvs,dmgroups,dms"
"""What has the options, and v2's replicas. kubectl refuses a kind that is not installed, so these stand apart."""

DUMP_COMMAND: Final = f"kubectl get {DUMPED} -A -o yaml"

_BY_GROUP_AND_KIND: Final = {(resource.group, resource.kind): resource for resource in BUILT_IN + CUSTOM}


def resource_of(manifest: Mapping[str, Any]) -> door.Resource | None:
    """The resource that a manifest belongs to by its `apiVersion` and `kind`, None if it is not one of ours.

    The version is not looked at: one object can be printed in any version that is served.
    """
    api_version, kind = manifest.get("apiVersion"), manifest.get("kind")
    if not isinstance(api_version, str) or not isinstance(kind, str):
        return None
    return _BY_GROUP_AND_KIND.get((api_version.rpartition("/")[0], kind))


def stateful_sets_of(api_group: str) -> door.Resource | None:
    """The StatefulSets of an API group: Kubernetes' own, or the advanced ones; None for any other group."""
    return _BY_GROUP_AND_KIND.get((api_group, "StatefulSet"))
