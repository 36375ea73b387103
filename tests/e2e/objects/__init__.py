"""Builders of manifests, valid as they are; a test names only what it is about."""

from __future__ import annotations

from e2e.objects.nodes import (
    HOSTNAME,
    LOCAL_STORAGE,
    ZONE,
    Object,
    container,
    filler_pod,
    local_cluster,
    local_volume,
    node,
    storage_class,
)
from e2e.objects.server import custom_resource_definition, external_name_service, webhook_configuration
from e2e.objects.sets import (
    ADVANCED_GROUP,
    advanced,
    claim_template,
    member_claims,
    member_pod,
    operator_labels,
    owner_reference,
    stateful_set,
    tidb_cluster,
)

DECISION = "tidb-ha-webhook.io/decision"
ASSIGNED_NODE = "tidb-ha-webhook.io/assigned-node"
GUARD = "tidb-ha-webhook.io/guard"
LOCK = "tidb-ha-webhook.io/lock"
ENTRY_PREFIX = "tidb-ha-webhook.io/entry."

__all__ = [
    "ADVANCED_GROUP",
    "ASSIGNED_NODE",
    "DECISION",
    "ENTRY_PREFIX",
    "GUARD",
    "HOSTNAME",
    "LOCAL_STORAGE",
    "LOCK",
    "ZONE",
    "Object",
    "advanced",
    "claim_template",
    "container",
    "custom_resource_definition",
    "external_name_service",
    "filler_pod",
    "local_cluster",
    "local_volume",
    "member_claims",
    "member_pod",
    "node",
    "operator_labels",
    "owner_reference",
    "stateful_set",
    "storage_class",
    "tidb_cluster",
    "webhook_configuration",
]
