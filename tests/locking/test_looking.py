"""A look decides at once: nobody is waited for."""

from __future__ import annotations

from cluster_objects import a_class, a_pod, a_set, claims, nodes
from controller.standing import Leader
from stand import Stand


def test_looks_at_pods_whose_claims_bind_at_once_take_no_time() -> None:
    slow = a_class("slow") | {"volumeBindingMode": "Immediate"}
    held = claims(3)
    for each in held:
        each["spec"]["storageClassName"] = "slow"
    stand = Stand(*nodes(4), slow, a_set(), *held)
    for ordinal in range(3):
        assert stand.admit(a_pod(f"db-tikv-{ordinal}")).outcome == "guarded"
    before = stand.clock.elapsed
    Leader(stand).turns(0)
    assert stand.clock.elapsed - before < 1
