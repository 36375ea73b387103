"""Every key that this product reads or writes, in one place (docs/design.md, section 8)."""

from __future__ import annotations

from typing import Final

PREFIX: Final = "tidb-ha-webhook.io/"

# On claims.
LOCK: Final = PREFIX + "lock"
ENTRY_PREFIX: Final = PREFIX + "entry."

# On pods.
ASSIGNED_NODE: Final = PREFIX + "assigned-node"
DECISION: Final = PREFIX + "decision"
GUARD: Final = PREFIX + "guard"

# On the pod template of a generic StatefulSet.
CLASS_LABEL: Final = PREFIX + "class"

# Options: annotations on pods, group objects and cluster objects; `<component>.` may precede the name.
SKIP: Final = "skip"
PLACEMENT: Final = "placement"
WHEN_UNPLACEABLE: Final = "when-unplaceable"
TOPOLOGY_KEY: Final = "topology-key"
COPIES: Final = "copies"
MIN_DOMAINS: Final = "min-domains"

# Of Kubernetes.
HOSTNAME: Final = "kubernetes.io/hostname"
MIRROR_POD: Final = "kubernetes.io/config.mirror"
DEFAULT_SCHEDULER: Final = "default-scheduler"

# Of tidb-operator v1 (app.kubernetes.io/*) and v2 (pingcap.com/*).
V1_NAME: Final = "app.kubernetes.io/name"
V1_MANAGED_BY: Final = "app.kubernetes.io/managed-by"
V1_INSTANCE: Final = "app.kubernetes.io/instance"
V1_COMPONENT: Final = "app.kubernetes.io/component"
V2_MANAGED_BY: Final = "pingcap.com/managed-by"
V2_CLUSTER: Final = "pingcap.com/cluster"
V2_COMPONENT: Final = "pingcap.com/component"
V2_GROUP: Final = "pingcap.com/group"
TIDB_OPERATOR: Final = "tidb-operator"
TIDB_SCHEDULER: Final = "tidb-scheduler"
UPSTREAM_TOPOLOGY_KEY: Final = "pingcap.com/ha-topology-key"
PVC_DEFER_DELETING: Final = "tidb.pingcap.com/pvc-defer-deleting"
