"""What every Door does, asked through the Protocol alone.

A module that runs it defines the fixtures `door` and `namespace` (one that is empty and usable) and a class
that inherits from DoorContract.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from time import time
from typing import Any

import pytest

from webhook.cluster.door import (
    ANY_VALUE,
    CLAIMS,
    NODES,
    PODS,
    STORAGE_CLASSES,
    Door,
    EventType,
    Listing,
    Manifest,
    Resource,
)
from webhook.errors import ApiError, Conflict, Invalid, NotFound, OutOfTime, UnknownOutcome, WebhookError

TIMEOUT = 10.0
HOLD = "example.com/hold"
KEY = "tidb-ha-webhook.io/lock"
FOREIGN = "example.com/foreign"
WIDGETS = Resource("example.com", "v1", "widgets", "Widget")


def a_claim(name: str = "tikv-db-tikv-0", **metadata: Any) -> Manifest:
    return {
        "metadata": {"name": name, "labels": {"app": "db"}, **metadata},
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "resources": {"requests": {"storage": "1Gi"}},
            # No class, so that no controller ever binds it.
            "storageClassName": "",
        },
    }


def a_pod(name: str, node_name: str) -> Manifest:
    container = {"name": "main", "image": "example.com/none"}
    return {"metadata": {"name": name}, "spec": {"nodeName": node_name, "containers": [container]}}


class Claims:
    """One namespace's claims through a door."""

    def __init__(self, door: Door, namespace: str) -> None:
        self.door = door
        self.namespace = namespace

    def create(self, name: str = "tikv-db-tikv-0", **metadata: Any) -> Manifest:
        manifest = a_claim(name, **metadata)
        return self.door.create(CLAIMS, manifest, namespace=self.namespace, timeout=TIMEOUT)

    def get(self, name: str = "tikv-db-tikv-0") -> Manifest:
        return self.door.get(CLAIMS, name, namespace=self.namespace, timeout=TIMEOUT)

    def patch(self, patch: Manifest, name: str = "tikv-db-tikv-0") -> Manifest:
        return self.door.merge_patch(CLAIMS, name, patch, namespace=self.namespace, timeout=TIMEOUT)

    def annotate(self, value: str | None, key: str = KEY, **condition: Any) -> Manifest:
        return self.patch({"metadata": {"annotations": {key: value}, **condition}})

    def delete(self, name: str = "tikv-db-tikv-0", **preconditions: str) -> None:
        self.door.delete(CLAIMS, name, namespace=self.namespace, timeout=TIMEOUT, **preconditions)

    def end(self, name: str = "tikv-db-tikv-0") -> None:
        """Delete a claim and all that holds it, so that it is gone for certain."""
        self.delete(name)
        try:
            self.patch({"metadata": {"finalizers": None}}, name)
        except NotFound:
            return

    def list(self, **selectors: Any) -> Listing:
        return self.door.list(CLAIMS, namespace=self.namespace, timeout=TIMEOUT, **selectors)


class Classes:
    """Storage classes through a door: a kind without namespaces that no controller writes to."""

    def __init__(self, door: Door) -> None:
        self.door = door
        self.created: list[str] = []
        self.watches: list[Any] = []

    def create(self, name: str) -> Manifest:
        self.created.append(name)
        manifest = {"metadata": {"name": name}, "provisioner": "example.com/none"}
        return self.door.create(STORAGE_CLASSES, manifest, timeout=TIMEOUT)

    def annotate(self, name: str) -> Manifest:
        patch: Manifest = {"metadata": {"annotations": {KEY: "x"}}}
        return self.door.merge_patch(STORAGE_CLASSES, name, patch, timeout=TIMEOUT)

    def delete(self, name: str) -> None:
        self.door.delete(STORAGE_CLASSES, name, timeout=TIMEOUT)

    def version(self) -> str:
        return self.door.list(STORAGE_CLASSES, timeout=TIMEOUT).resource_version

    def watch(self, version: str, *, seconds: float = TIMEOUT) -> Any:
        events = self.door.watch(STORAGE_CLASSES, resource_version=version, timeout=seconds, silence=TIMEOUT)
        self.watches.append(events)
        return events

    def clean(self) -> None:
        for events in self.watches:
            events.close()
        for name in self.created:
            with suppress(NotFound):
                self.delete(name)


def version_of(manifest: Manifest) -> str:
    version: str = manifest["metadata"]["resourceVersion"]
    return version


def annotations_of(manifest: Manifest) -> dict[str, str]:
    return dict(manifest["metadata"].get("annotations") or {})


def names_in(listing: Listing) -> list[str]:
    return [found["metadata"]["name"] for found in listing.items]


class DoorContract:
    """What was seen of an API server's merge patches, and what the protocol builds on besides."""

    @pytest.fixture
    def claims(self, door: Door, namespace: str) -> Claims:
        return Claims(door, namespace)

    @pytest.fixture
    def classes(self, door: Door) -> Iterator[Classes]:
        storage_classes = Classes(door)
        yield storage_classes
        storage_classes.clean()

    @pytest.fixture
    def nodes(self, door: Door) -> Iterator[Callable[[str], Manifest]]:
        """A function that creates a node with the label `contract`; all are gone afterwards."""
        created: list[str] = []

        def create(name: str) -> Manifest:
            created.append(name)
            node = {"metadata": {"name": name, "labels": {"contract": "yes"}}}
            return door.create(NODES, node, timeout=TIMEOUT)

        yield create
        for name in created:
            with suppress(NotFound):
                door.delete(NODES, name, timeout=TIMEOUT)

    def test_a_created_object_has_uid_version_time_and_namespace(self, claims: Claims) -> None:
        created = claims.create()
        assert created["metadata"]["uid"]
        assert version_of(created).isdigit()
        assert created["metadata"]["creationTimestamp"].endswith("Z")
        assert created["metadata"]["namespace"] == claims.namespace
        assert created["status"]["phase"] == "Pending"
        assert (created["apiVersion"], created["kind"]) == ("v1", "PersistentVolumeClaim")

    def test_what_was_created_can_be_read(self, claims: Claims) -> None:
        assert claims.create()["metadata"]["uid"] == claims.get()["metadata"]["uid"]

    def test_a_name_is_made_from_generate_name(self, claims: Claims) -> None:
        manifest = a_claim()
        manifest["metadata"] |= {"name": None, "generateName": "tikv-"}
        created = claims.door.create(CLAIMS, manifest, namespace=claims.namespace, timeout=TIMEOUT)
        assert created["metadata"]["name"].startswith("tikv-")
        assert len(created["metadata"]["name"]) == len("tikv-") + 5

    def test_an_object_without_a_name_is_invalid(self, claims: Claims) -> None:
        with pytest.raises(Invalid):
            claims.create(name="")

    def test_an_object_of_another_namespace_is_invalid(self, claims: Claims) -> None:
        with pytest.raises(Invalid):
            claims.create(namespace="elsewhere")

    def test_a_second_object_of_one_name_is_a_conflict(self, claims: Claims) -> None:
        claims.create()
        with pytest.raises(Conflict) as caught:
            claims.create()
        assert caught.value.status == 409

    @pytest.mark.parametrize("verb", ["get", "patch", "delete"])
    def test_what_does_not_exist_is_not_found(self, claims: Claims, verb: str) -> None:
        calls: dict[str, Callable[[], object]] = {
            "get": claims.get,
            "patch": lambda: claims.annotate("a"),
            "delete": claims.delete,
        }
        with pytest.raises(NotFound) as caught:
            calls[verb]()
        error = caught.value
        assert (error.verb, error.resource, error.name) == (verb, CLAIMS.plural, "tikv-db-tikv-0")

    @pytest.mark.parametrize("name", ["", ".", ".."])
    def test_what_can_be_no_name_is_not_found(self, claims: Claims, name: str) -> None:
        with pytest.raises(NotFound):
            claims.get(name)

    def test_a_kind_that_is_not_served_is_not_found(self, claims: Claims) -> None:
        with pytest.raises(NotFound):
            claims.door.list(WIDGETS, namespace=claims.namespace, timeout=TIMEOUT)
        with pytest.raises(NotFound):
            claims.door.get(WIDGETS, "a", namespace=claims.namespace, timeout=TIMEOUT)

    def test_without_time_nothing_is_sent(self, claims: Claims) -> None:
        with pytest.raises(OutOfTime):
            claims.door.get(CLAIMS, "any", namespace=claims.namespace, timeout=0)

    def test_a_change_makes_a_new_version(self, claims: Claims) -> None:
        created = claims.create()
        changed = claims.annotate("a")
        assert version_of(changed) != version_of(created)
        assert annotations_of(changed)[KEY] == "a"
        assert version_of(claims.get()) == version_of(changed)

    def test_a_write_that_changes_nothing_keeps_the_version(self, claims: Claims) -> None:
        claims.create()
        claims.annotate("a")
        # The first such write after a creation may make one all the same (X9).
        kept = claims.annotate("a")
        assert version_of(claims.annotate("a")) == version_of(kept)

    def test_the_current_version_is_accepted(self, claims: Claims) -> None:
        version = version_of(claims.create())
        assert annotations_of(claims.annotate("a", resourceVersion=version))[KEY] == "a"

    def test_a_stale_version_is_a_conflict_and_changes_nothing(self, claims: Claims) -> None:
        stale = version_of(claims.create())
        claims.annotate("a")
        with pytest.raises(Conflict):
            claims.annotate("b", resourceVersion=stale)
        assert annotations_of(claims.get())[KEY] == "a"

    def test_a_stale_version_is_a_conflict_even_if_nothing_would_change(self, claims: Claims) -> None:
        stale = version_of(claims.create())
        claims.annotate("a")
        with pytest.raises(Conflict):
            claims.annotate("a", resourceVersion=stale)

    @pytest.mark.parametrize("version", ["", "0", None])
    def test_no_version_is_no_check(self, claims: Claims, version: str | None) -> None:
        claims.create()
        claims.annotate("a")
        assert annotations_of(claims.annotate("b", resourceVersion=version))[KEY] == "b"

    def test_a_version_that_is_no_number_is_an_unknown_outcome(self, claims: Claims) -> None:
        claims.create()
        with pytest.raises(UnknownOutcome):
            claims.annotate("a", resourceVersion="abc")

    def test_the_version_of_an_object_made_again_is_a_conflict(self, claims: Claims) -> None:
        old = claims.create()
        claims.end()
        claims.create()
        with pytest.raises(Conflict):
            claims.annotate("a", resourceVersion=version_of(old))

    def test_of_writers_with_one_version_exactly_one_wins(self, claims: Claims) -> None:
        version = version_of(claims.create())

        def swap(value: int) -> str:
            try:
                claims.annotate(str(value), resourceVersion=version)
            except ApiError as error:
                return type(error).__name__
            return "won"

        with ThreadPoolExecutor(8) as pool:
            outcomes = sorted(pool.map(swap, range(8)))
        assert outcomes == ["Conflict"] * 7 + ["won"]

    def test_null_takes_a_key_away_and_leaves_those_of_others(self, claims: Claims) -> None:
        claims.create(annotations={FOREIGN: "theirs", KEY: "ours"})
        assert annotations_of(claims.annotate(None)) == {FOREIGN: "theirs"}

    def test_null_for_a_key_that_is_not_there_changes_nothing(self, claims: Claims) -> None:
        claims.create(annotations={FOREIGN: "theirs"})
        assert annotations_of(claims.annotate(None)) == {FOREIGN: "theirs"}

    def test_the_last_annotation_takes_the_field_with_it(self, claims: Claims) -> None:
        claims.create(annotations={KEY: "ours"})
        assert "annotations" not in claims.annotate(None)["metadata"]

    def test_fields_of_others_survive_a_patch(self, claims: Claims) -> None:
        created = claims.create(annotations={FOREIGN: "theirs"}, finalizers=[HOLD])
        changed = claims.annotate("a")
        assert annotations_of(changed) == {FOREIGN: "theirs", KEY: "a"}
        assert changed["spec"] == created["spec"]
        assert changed["metadata"]["labels"] == {"app": "db"}
        assert HOLD in changed["metadata"]["finalizers"]
        claims.patch({"metadata": {"finalizers": None}})

    def test_what_was_read_before_a_write_stays_as_it_was(self, claims: Claims) -> None:
        claims.create()
        before = claims.get()
        claims.annotate("a")
        assert KEY not in annotations_of(before)

    def test_a_patch_can_be_used_again_by_its_owner(self, claims: Claims) -> None:
        claims.create()
        patch: Manifest = {"metadata": {"annotations": {KEY: "a"}}}
        claims.patch(patch)
        patch["metadata"]["annotations"][KEY] = "b"
        assert annotations_of(claims.get())[KEY] == "a"

    def test_the_right_uid_is_accepted(self, claims: Claims) -> None:
        uid = claims.create()["metadata"]["uid"]
        assert annotations_of(claims.annotate("a", uid=uid))[KEY] == "a"

    def test_a_wrong_uid_is_invalid(self, claims: Claims) -> None:
        claims.create()
        with pytest.raises(Invalid) as caught:
            claims.annotate("a", uid="00000000-0000-4000-8000-ffffffffffff")
        assert caught.value.status == 422

    def test_a_stale_version_goes_before_a_wrong_uid(self, claims: Claims) -> None:
        old = claims.create()
        claims.end()
        claims.create()
        with pytest.raises(Conflict):
            claims.annotate("a", uid=old["metadata"]["uid"], resourceVersion=version_of(old))

    def test_a_name_cannot_be_changed(self, claims: Claims) -> None:
        claims.create()
        with pytest.raises(Invalid):
            claims.patch({"metadata": {"name": "other"}})

    @pytest.mark.parametrize("value", [1, True, ["a"], {"a": "b"}], ids=str)
    def test_an_annotation_that_is_no_string_is_invalid(self, claims: Claims, value: Any) -> None:
        claims.create()
        with pytest.raises(Invalid):
            claims.patch({"metadata": {"annotations": {KEY: value}}})

    def test_too_many_bytes_of_annotations_are_invalid(self, claims: Claims) -> None:
        claims.create()
        with pytest.raises(Invalid):
            claims.annotate("x" * 262144)

    def test_a_claim_that_is_being_deleted_still_takes_annotations(self, claims: Claims) -> None:
        claims.create(finalizers=[HOLD])
        claims.delete()
        assert claims.get()["metadata"]["deletionTimestamp"]
        assert annotations_of(claims.annotate("a"))[KEY] == "a"
        claims.delete()
        assert names_in(claims.list()) == ["tikv-db-tikv-0"]
        claims.patch({"metadata": {"finalizers": None}})
        with pytest.raises(NotFound):
            claims.get()

    @pytest.mark.parametrize(
        "wrong",
        [{"uid": "00000000-0000-4000-8000-ffffffffffff"}, {"resource_version": "999999999"}],
        ids=["uid", "version"],
    )
    def test_a_delete_with_a_wrong_precondition_is_a_conflict(self, claims: Claims, wrong: dict[str, str]) -> None:
        claims.create()
        with pytest.raises(Conflict):
            claims.delete(**wrong)
        assert "deletionTimestamp" not in claims.get()["metadata"]

    def test_a_delete_with_right_preconditions_is_done(self, door: Door) -> None:
        # Of a kind that no controller writes to, so that the version stays.
        manifest = {"metadata": {"name": "contract"}, "provisioner": "example.com/none"}
        metadata = door.create(STORAGE_CLASSES, manifest, timeout=TIMEOUT)["metadata"]
        uid, version = metadata["uid"], metadata["resourceVersion"]
        door.delete(STORAGE_CLASSES, "contract", uid=uid, resource_version=version, timeout=TIMEOUT)
        with pytest.raises(NotFound):
            door.get(STORAGE_CLASSES, "contract", timeout=TIMEOUT)

    def test_a_list_is_ordered_by_name(self, claims: Claims) -> None:
        for name in ("c", "a", "b"):
            claims.create(name)
        assert names_in(claims.list()) == ["a", "b", "c"]

    def test_a_list_is_of_its_namespace(self, claims: Claims) -> None:
        claims.create()
        elsewhere = claims.door.list(CLAIMS, namespace="elsewhere", timeout=TIMEOUT)
        everywhere = claims.door.list(CLAIMS, timeout=TIMEOUT)
        assert names_in(elsewhere) == []
        assert "tikv-db-tikv-0" in names_in(everywhere)

    def test_a_list_selects_by_all_labels(self, claims: Claims) -> None:
        claims.create("a", labels={"app": "db", "component": "tikv"})
        claims.create("b", labels={"app": "db", "component": "pd"})
        claims.create("c", labels={})
        assert names_in(claims.list(labels={"app": "db"})) == ["a", "b"]
        assert names_in(claims.list(labels={"app": "db", "component": "pd"})) == ["b"]
        assert names_in(claims.list(labels={"app": "other"})) == []

    def test_a_list_selects_by_a_label_that_is_there_with_any_value(self, claims: Claims) -> None:
        claims.create("a", labels={"app": "db", "class": "one"})
        claims.create("b", labels={"app": "db", "class": ""})
        claims.create("c", labels={"app": "db"})
        assert names_in(claims.list(labels={"class": ANY_VALUE})) == ["a", "b"]
        assert names_in(claims.list(labels={"class": ANY_VALUE, "app": "db"})) == ["a", "b"]
        assert names_in(claims.list(labels={"class": ANY_VALUE, "app": "web"})) == []

    def test_a_list_selects_by_name(self, claims: Claims) -> None:
        claims.create("a")
        claims.create("b")
        assert names_in(claims.list(fields={"metadata.name": "b"})) == ["b"]

    def test_a_list_of_pods_selects_by_node(self, door: Door, namespace: str) -> None:
        for name, node_name in (("a", "contract-1"), ("b", "contract-2")):
            door.create(PODS, a_pod(name, node_name), namespace=namespace, timeout=TIMEOUT)
        found = door.list(PODS, namespace=namespace, fields={"spec.nodeName": "contract-2"}, timeout=TIMEOUT)
        assert names_in(found) == ["b"]

    def test_a_list_of_what_has_no_namespace_is_of_all(self, door: Door, nodes: Callable[[str], Manifest]) -> None:
        nodes("contract-b")
        nodes("contract-a")
        found = door.list(NODES, labels={"contract": "yes"}, timeout=TIMEOUT)
        assert names_in(found) == ["contract-a", "contract-b"]

    @pytest.mark.parametrize(
        "selectors",
        [{"labels": {"app": "a,b"}}, {"labels": {"app": "a b"}}, {"fields": {"spec.nosuch": "a"}}],
        ids=["comma", "space", "unknown field"],
    )
    def test_a_selector_that_cannot_be_is_invalid(self, claims: Claims, selectors: Any) -> None:
        with pytest.raises(Invalid):
            claims.list(**selectors)

    def test_the_items_of_a_list_say_what_they_are(self, claims: Claims) -> None:
        claims.create()
        item = claims.list().items[0]
        assert (item["apiVersion"], item["kind"]) == ("v1", "PersistentVolumeClaim")

    def test_a_list_has_the_servers_time_and_a_version(self, claims: Claims) -> None:
        created = claims.create()
        listing = claims.list()
        assert abs(listing.date - time()) < 60
        assert int(listing.resource_version) >= int(version_of(created))

    def test_a_list_that_may_be_stale_is_answered_too(self, claims: Claims) -> None:
        assert claims.list(resource_version="0").items in ((), claims.list().items)

    def test_a_scan_visits_every_object_and_returns_a_version(self, claims: Claims) -> None:
        created = [claims.create(name) for name in ("b", "a")]
        visited: list[Manifest] = []
        version = claims.door.scan(CLAIMS, visited.append, timeout=TIMEOUT)
        mine = [found for found in visited if found["metadata"]["namespace"] == claims.namespace]
        assert [found["metadata"]["name"] for found in mine] == ["a", "b"]
        assert (mine[0]["apiVersion"], mine[0]["kind"]) == ("v1", "PersistentVolumeClaim")
        assert int(version) >= int(version_of(created[-1]))

    def test_a_scan_of_a_kind_that_is_not_served_is_not_found(self, door: Door) -> None:
        with pytest.raises(NotFound):
            door.scan(WIDGETS, print, timeout=TIMEOUT)

    def test_a_watch_tells_what_happens_after_its_version(self, classes: Classes) -> None:
        classes.create("contract-before")
        events = classes.watch(classes.version())
        created = classes.create("contract-a")
        changed = classes.annotate("contract-a")
        classes.delete("contract-a")
        seen = [next(events) for _ in range(3)]
        assert [event.type for event in seen] == [EventType.ADDED, EventType.MODIFIED, EventType.DELETED]
        assert [event.manifest["metadata"]["name"] for event in seen] == ["contract-a"] * 3
        assert [event.resource_version for event in seen[:2]] == [version_of(created), version_of(changed)]
        assert int(seen[2].resource_version) > int(version_of(changed))
        assert annotations_of(seen[2].manifest) == {KEY: "x"}

    def test_a_watch_goes_on_from_the_version_of_an_event(self, classes: Classes) -> None:
        events = classes.watch(classes.version())
        classes.create("contract-a")
        version = next(events).resource_version
        events.close()
        classes.create("contract-b")
        assert next(classes.watch(version)).manifest["metadata"]["name"] == "contract-b"

    def test_a_quiet_watch_ends_by_itself_and_tells_nothing_but_how_far_it_has_come(self, classes: Classes) -> None:
        version = classes.version()
        for event in classes.watch(version, seconds=1.0):
            assert event.type is EventType.BOOKMARK
            assert int(event.resource_version) >= int(version)

    @pytest.mark.parametrize("version", ["", "0"])
    def test_a_watch_from_no_version_is_a_mistake(self, classes: Classes, version: str) -> None:
        with pytest.raises(ValueError, match="could miss"):
            classes.watch(version)

    def test_a_watch_of_a_kind_that_is_not_served_is_not_found(self, door: Door) -> None:
        with pytest.raises(NotFound):
            door.watch(WIDGETS, resource_version="100", timeout=TIMEOUT, silence=TIMEOUT)

    def test_a_watch_without_time_is_not_begun(self, classes: Classes) -> None:
        with pytest.raises(OutOfTime):
            classes.watch("100", seconds=0)

    def test_every_error_is_one_of_ours(self, claims: Claims) -> None:
        with pytest.raises(WebhookError, match="get persistentvolumeclaims any: 404"):
            claims.get("any")
