from __future__ import annotations

from decimal import Decimal, InvalidOperation
from typing import Any

import pytest

from webhook.core.manifests import (
    attach_limits_from,
    capacity_from,
    claim_from,
    publishes_capacity,
    storage_class_from,
    volume_from,
)
from webhook.core.objects import LabelSelector
from webhook.core.storage import ClaimReference, CsiVolume, PersistentVolume, StorageCapacity

SELECTOR = {"matchLabels": {"disk": "nvme"}}


def parse_number(raw: object) -> Decimal | None:
    """Stands for the quantity parser: plain numbers only."""
    try:
        return Decimal(raw) if isinstance(raw, str) else None
    except InvalidOperation:
        return None


def test_what_a_claim_asks_of_its_volume_is_found():
    spec = {
        "accessModes": ["ReadWriteOncePod"],
        "volumeMode": "Block",
        "resources": {"requests": {"storage": "100"}},
        "selector": SELECTOR,
        "volumeAttributesClassName": "gold",
    }

    claim = claim_from({"spec": spec}, parse_number)

    assert claim.access_modes == ("ReadWriteOncePod",)
    assert claim.volume_mode == "Block"
    assert claim.requested == 100
    assert claim.selector == LabelSelector({"disk": "nvme"})
    assert claim.attributes_class == "gold"


@pytest.mark.parametrize(
    ("storage", "expected"), [("5", Decimal(5)), (None, Decimal(0)), ("lots", None)], ids=["number", "absent", "word"]
)
def test_a_size_that_cannot_be_read_is_not_none_at_all(storage, expected):
    claim = claim_from({"spec": {"resources": {"requests": {"storage": storage}}}}, parse_number)
    volume = volume_from({"spec": {"capacity": {"storage": storage}}}, parse_number)

    assert (claim.requested, volume.capacity) == (expected, expected)


def test_every_field_of_a_volume_is_found():
    manifest: dict[str, Any] = {
        "metadata": {"name": "pv1", "labels": {"disk": "nvme"}, "deletionTimestamp": "2026-01-01T00:00:00Z"},
        "spec": {
            "storageClassName": "local",
            "capacity": {"storage": "100"},
            "accessModes": ["ReadWriteOnce"],
            "volumeMode": "Block",
            "volumeAttributesClassName": "gold",
            "claimRef": {"namespace": "t1", "name": "tikv-db-tikv-0", "uid": "c1"},
            "csi": {"driver": "ebs.csi.aws.com", "volumeHandle": "vol-1"},
        },
        "status": {"phase": "Bound"},
    }

    assert volume_from(manifest, parse_number) == PersistentVolume(
        name="pv1",
        labels={"disk": "nvme"},
        storage_class="local",
        capacity=Decimal(100),
        access_modes=("ReadWriteOnce",),
        volume_mode="Block",
        attributes_class="gold",
        phase="Bound",
        deleting=True,
        claim=ClaimReference("t1", "tikv-db-tikv-0", "c1"),
        csi=CsiVolume("ebs.csi.aws.com", "vol-1"),
    )


@pytest.mark.parametrize("old", ["old", ""], ids=["named", "none"])
def test_the_old_annotation_for_the_class_wins_as_in_kubernetes(old):
    annotations = {"volume.beta.kubernetes.io/storage-class": old}
    manifest = {"metadata": {"annotations": annotations}, "spec": {"storageClassName": "new"}}

    assert volume_from(manifest).storage_class == old
    assert claim_from(manifest).storage_class == old


def test_a_volume_that_is_kept_for_something_unreadable_is_kept_for_nobody():
    assert volume_from({"spec": {"claimRef": "c1"}}).claim == ClaimReference("", "")


@pytest.mark.parametrize("csi", [None, {}, {"driver": "d"}, {"volumeHandle": "v"}, "d"])
def test_a_volume_without_driver_or_handle_is_no_driver_s(csi):
    assert volume_from({"spec": {"csi": csi}}).csi is None


@pytest.mark.parametrize(
    ("sizes", "limit"),
    [
        pytest.param({"capacity": "100"}, Decimal(100), id="free"),
        pytest.param({"capacity": "100", "maximumVolumeSize": "40"}, Decimal(40), id="the largest volume"),
        pytest.param({"capacity": "100", "maximumVolumeSize": "big"}, None, id="unreadable"),
        pytest.param({}, None, id="unknown"),
    ],
)
def test_the_largest_possible_volume_goes_before_what_is_free_altogether(sizes, limit):
    manifest = {"storageClassName": "fast", "nodeTopology": SELECTOR, **sizes}

    found = capacity_from(manifest, parse_number)

    assert found == StorageCapacity("fast", LabelSelector({"disk": "nvme"}), limit)


@pytest.mark.parametrize(
    ("spec", "expected"),
    [({"storageCapacity": True}, True), ({"storageCapacity": False}, False), ({}, False), (None, False)],
)
def test_a_driver_says_whether_it_publishes_capacity(spec, expected):
    assert publishes_capacity({"spec": spec}) is expected


def test_the_attach_limits_are_those_that_a_node_has_for_its_drivers():
    drivers = [
        {"name": "a", "allocatable": {"count": 25}},
        {"name": "b", "allocatable": {}},
        {"name": "c", "allocatable": {"count": True}},
        {"name": "d"},
        None,
    ]

    assert attach_limits_from({"spec": {"drivers": drivers}}) == {"a": 25}


def test_a_class_that_binds_at_once_does_not_wait():
    assert not storage_class_from({"metadata": {"name": "c"}, "volumeBindingMode": "Immediate"}).waits
