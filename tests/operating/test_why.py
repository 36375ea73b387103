"""`why`: the answer first, for pods of every kind; what cannot be known, or read, is said."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from cluster_objects import (
    SPACE,
    a_claim,
    a_generic_pod,
    a_node,
    a_pod,
    a_v1_world,
    a_v2_pod,
    a_v2_world,
    a_volume,
    an_object,
    claims,
    generic_world,
    labels_v1,
    nodes,
    v2_instances,
    with_floor,
)
from dumps import a_set as a_whole_set
from operating.asked import an_event, connected, dump, run
from stand import Stand

from webhook.cluster.door import EVENTS, NODES, PODS, TIKV_GROUPS, TIKVS, V2_CLUSTERS
from webhook.core import keys
from webhook.errors import Forbidden, SettingsError, UnknownOutcome
from webhook.operating.why import tell
from webhook.operating.why_page import page_of


def page(stand: Stand, name: str = "db-tikv-0", **settings: object) -> str:
    """What `why` prints."""
    return page_of(tell(connected(stand, **settings), SPACE, name))


def head(text: str) -> list[str]:
    """The first five lines."""
    return text.splitlines()[:5]


def fact(text: str, name: str) -> str:
    """What one of the lines below the first says."""
    return next(line.strip().removeprefix(name).strip() for line in head(text) if line.strip().startswith(name))


def stored(stand: Stand, *pods: object) -> Stand:
    """The stand with pods that nobody was asked about."""
    for pod in pods:
        stand.cluster.admit(pod, namespace=SPACE)  # type: ignore[arg-type]
    return stand


def with_record(record: object, name: str = "db-tikv-0", **parts: object) -> dict[str, object]:
    written = record if isinstance(record, str) else json.dumps(record)
    return a_pod(name, annotations={keys.DECISION: written}, **parts)  # type: ignore[arg-type]


def test_a_placed_pod_is_explained_in_the_first_five_lines():
    stand = Stand(*a_v1_world())
    node = stand.admit(a_pod()).node
    stand.bind("db-tikv-0", node)

    text = page(stand)

    assert head(text)[0] == f"shop/db-tikv-0 of shop/db/tikv was pinned to {node}, and is there"
    assert "holds 0 member(s), at most 1; cap 1 for 3 replicas by kubernetes.io/hostname" in head(text)[1]
    assert head(text)[2].split(maxsplit=1) == ["present", f"Running, on {node}"]
    assert f"the same if it were created now: pinned to {node}" in head(text)[3]
    assert head(text)[4].split() == ["to", "do", "nothing"]


def test_the_rest_shows_record_group_nodes_and_answers_in_flight():
    stand = Stand(*a_v1_world())
    first = stand.admit(a_pod("db-tikv-0"))
    stand.bind("db-tikv-0", first.node)
    stand.review(a_pod("db-tikv-1"))
    stand.admit(a_pod("db-tikv-2"))

    text = page(stand, "db-tikv-2")

    assert "members then: " in text
    assert "nodes passed over: 1 domain" in text
    assert f"db-tikv-0  {first.node}    Running  pin to {first.node}" in text
    assert "Answers in flight:" in text
    assert "db-tikv-1 to n" in text
    full = f"1 not possible: domain {first.node} already holds 1 of at most 1 member(s): {first.node}"
    assert full in text


def test_a_running_pod_that_would_go_elsewhere_is_said_not_to_be_moved():
    stand = Stand(*a_v1_world())
    node = stand.admit(a_pod()).node
    stand.bind("db-tikv-0", node)
    stand.patch(NODES, node, {"spec": {"unschedulable": True}})

    line = head(page(stand))[3]

    assert "if it were created now: pinned to n" in line
    assert "what runs is not moved" in line


def beside_each_other(*nodes_of: str, **parts: object) -> Stand:
    """Members of PD that nobody placed, on these nodes."""
    stand = Stand(*a_v1_world(len(nodes_of), "pd"))
    return stored(stand, *(a_pod(f"db-pd-{n}", nodeName=node, **parts) for n, node in enumerate(nodes_of)))  # type: ignore[arg-type]


def test_who_is_in_the_way_is_named_in_the_first_line_with_the_command_that_helps():
    stand = Stand(*a_v1_world(6))
    stored(stand, *(with_floor(a_pod(f"db-tikv-{n}", nodeName=f"n{n + 1}")) for n in range(3)))
    stand.admit(a_pod("db-tikv-3"))

    text = page(stand, "db-tikv-3")

    assert head(text)[0].endswith("db-tikv-0 and 2 more of its group are in the way on the nodes that could take it")
    assert "kubectl delete pod -n shop db-tikv-0, which is in the way (and so are 2 more)" in fact(text, "to do")


def test_a_topology_key_that_no_node_has_is_to_be_mended_before_the_pod_is_created_anew():
    stand = stored(Stand(*a_v1_world(topology_key="rack")), with_floor(a_pod("db-tikv-0")))

    said = fact(page(stand, "db-tikv-0"), "to do")

    assert said.startswith(
        "Give the nodes the label rack, or correct the option topology-key. Until then it waits again"
    )


def test_a_running_pod_that_is_stacked_is_said_to_be_with_how_to_move_it():
    text = page(beside_each_other("n1", "n1", "n2"), "db-pd-1")

    assert "stacked: node n1 holds 2 members of its group (db-pd-0, db-pd-1), at most 1 may be there" in fact(
        text, "present"
    )
    assert "one at a time, when all others run: kubectl delete pod -n shop db-pd-1; it would go to n3" in fact(
        text, "to do"
    )
    assert fact(page(beside_each_other("n1", "n1", "n2"), "db-pd-2"), "to do") == "nothing"


def test_a_stacked_pod_without_another_node_says_what_it_needs_first():
    text = page(beside_each_other("n1", "n1", "n2", "n3"), "db-pd-1")

    assert "first: Add a node. Then, one at a time, when all others run: kubectl delete pod" in fact(text, "to do")


def test_a_stacked_pod_whose_data_is_there_is_moved_with_its_data():
    mine = [a_claim(f"pd-db-pd-{n}", labels_v1("pd"), volume="" if n else "pv-0") for n in range(3)]
    stand = Stand(*a_v1_world(3, "pd")[:-3], *mine, a_volume("pv-0", "n1"))
    stored(stand, *(a_pod(f"db-pd-{n}", nodeName=node) for n, node in enumerate(("n1", "n1", "n2"))))

    assert "Move a sibling's data to another domain" in fact(page(stand, "db-pd-0"), "to do")


def test_a_pod_whose_node_is_gone_is_not_said_to_be_all_right():
    text = page(beside_each_other("n1", "n2", "n9"), "db-pd-2")

    assert "on n9, a node that is not there (any more)" in fact(text, "present")
    assert "bring n9 back; if it is gone for good: kubectl delete pod -n shop db-pd-2" in fact(text, "to do")


def test_a_pod_on_a_node_without_the_topology_label_names_the_label():
    stand = Stand(*a_v1_world(3, "pd", **{"pd.topology-key": "rack"}))
    stored(stand, a_pod("db-pd-0", nodeName="n1"))
    text = page(stand, "db-pd-0")

    assert "on n1, a node without the label rack" in fact(text, "present")
    assert "kubectl label node n1 rack=…, or correct the option topology-key" in fact(text, "to do")


def test_a_guarded_pod_names_the_cause_and_what_helps():
    stand = Stand(*a_v1_world(node_count=2))
    for number in range(2):
        stand.bind(f"db-tikv-{number}", stand.admit(a_pod(f"db-tikv-{number}")).node)
    stand.admit(a_pod("db-tikv-2"))

    text = page(stand, "db-tikv-2")

    assert "waits apart from its siblings: no node that can take it is within the cap" in head(text)[0]
    assert "the same if it were created now: guarded" in head(text)[3]
    assert "Add a node" in head(text)[4]
    assert "guard by kubernetes.io/hostname" in text


def test_a_guarded_pod_for_which_there_is_a_place_now_may_be_freed():
    stand = Stand(*a_v1_world(node_count=2), a_node("n3", unschedulable=True))
    for number in range(2):
        stand.bind(f"db-tikv-{number}", stand.admit(a_pod(f"db-tikv-{number}")).node)
    stand.admit(a_pod("db-tikv-2"))
    stand.patch(NODES, "n3", {"spec": {"unschedulable": None}})

    text = page(stand, "db-tikv-2")

    assert "if it were created now: pinned to n3" in head(text)[3]
    assert "n3 is possible" in head(text)[4]
    assert "kubectl delete pod -n shop db-tikv-2" in head(text)[4]


def a_place_for_a_guarded_pod() -> Stand:
    """The third member of a v2 group is guarded, and there is a place for it by now."""
    suffixes = ("a1b2c3", "d4e5f6", "g7h8i9")
    stand = Stand(*a_v2_world(), *v2_instances(*suffixes), a_node("n4", unschedulable=True))
    stand.delete(NODES, "n3")
    for suffix in suffixes:
        answer = stand.admit(a_v2_pod(suffix))
        if answer.node:
            stand.bind(f"kv-tikv-{suffix}", answer.node)
    stand.patch(NODES, "n4", {"spec": {"unschedulable": None}})
    return stand


def test_a_pod_that_the_controller_does_not_free_is_not_to_be_deleted_before_that_is_mended():
    stand = a_place_for_a_guarded_pod()
    event = an_event("e1", "TiKV", "kv-tikv-g7h8i9 of shop/db/tikv is not deleted", involved="kv-g7h8i9")
    stand.cluster.create(EVENTS, {**event, "reason": "PodNotFreed"}, namespace=SPACE, timeout=1)

    to_do = head(page(stand, "kv-tikv-g7h8i9"))[4]

    assert "n4 is possible; but mend first what the event PodNotFreed below names" in to_do
    assert "kubectl delete" not in to_do


def test_a_pod_whose_owner_is_paused_is_said_to_wait_for_that():
    stand = a_place_for_a_guarded_pod()
    stand.cluster.create(V2_CLUSTERS, an_object(V2_CLUSTERS, "db", spec={"paused": True}), namespace=SPACE, timeout=1)

    to_do = head(page(stand, "kv-tikv-g7h8i9"))[4]

    assert "let its owner go on: its owner would not create it again: its Cluster is paused (spec.paused)" in to_do


def test_a_pin_that_cannot_be_kept_shows_the_schedulers_word_and_where_else_it_would_go():
    stand = Stand(*a_v1_world())
    pin = stand.admit(a_pod()).node
    stand.patch(NODES, pin, {"spec": {"unschedulable": True}})
    condition = {"type": "PodScheduled", "status": "False", "message": "0/3 nodes are available"}
    stand.patch(PODS, "db-tikv-0", {"status": {"conditions": [condition]}})

    text = page(stand)

    assert f"was pinned to {pin}, and is not bound yet" in head(text)[0]
    assert "the scheduler says: 0/3 nodes are available" in head(text)[2]
    assert "is possible" in head(text)[4]


def test_a_pod_whose_volume_is_not_made_yet_is_to_be_waited_for():
    stand = Stand(*a_v1_world())
    node = stand.admit(a_pod()).node

    assert f"wait: it can run on {node}" in head(page(stand))[4]


@pytest.mark.parametrize(
    ("pod", "because"),
    [
        pytest.param(a_pod("web-0", labels={"app": "web"}), "no labels of tidb-operator", id="labels"),
        pytest.param(
            a_pod("db-tiflash-0"), "component tiflash of tidb-operator v1 is not kept apart", id="other component"
        ),
        pytest.param(
            a_pod(owner={"apiVersion": "batch/v1", "kind": "Job", "name": "backup", "uid": "u", "controller": True}),
            "its controller is Job backup",
            id="owner",
        ),
    ],
)
def test_a_pod_that_is_no_member_is_told_why(pod: dict[str, object], because: str):
    stand = stored(Stand(*a_v1_world()), pod)
    name = pod["metadata"]["name"]  # type: ignore[index]

    text = page(stand, name)

    assert "is left alone: not a member, because" in head(text)[0]
    assert because in head(text)[0]
    assert "again" not in text


def test_a_pod_that_nobody_controls_and_that_has_a_members_labels_is_said_to_be_counted():
    free = a_pod("free", labels=labels_v1("pd"))
    del free["metadata"]["ownerReferences"]

    said = fact(page(stored(Stand(*a_v1_world()), free), "free"), "to do")

    assert "audit and can-drain count it by its labels" in said
    assert f"take the label {keys.V1_MANAGED_BY} off it" in said


def test_a_generic_sets_pod_is_recognised_by_its_set():
    stand = Stand(*generic_world())
    stand.admit(a_generic_pod())

    assert "of shop/raft/quorum was pinned to" in head(page(stand, "raft-0"))[0]


def test_a_generic_pod_whose_set_is_gone_is_said_to_be_unusable():
    stand = stored(Stand(*nodes()), a_generic_pod())

    text = page(stand, "raft-0")

    assert "StatefulSet raft was not found" in head(text)[0]
    assert "matchLabels" in text


def test_a_v2_pod_is_explained():
    stand = Stand(*a_v2_world())
    stand.admit(a_v2_pod())

    assert "of shop/db/tikv was pinned to" in head(page(stand, "kv-tikv-a1b2c3"))[0]


@pytest.mark.parametrize(
    ("pod", "said"),
    [
        pytest.param(a_pod(), "the webhook was never asked about it", id="never asked"),
        pytest.param(with_floor(a_pod()), "carries the guard of the floor", id="floor"),
        pytest.param(a_pod(annotations={keys.PREFIX + keys.SKIP: "true"}), "the option skip is set", id="skip"),
        pytest.param(a_pod(schedulerName="tidb-scheduler"), "its schedulerName is tidb-scheduler", id="tidb-scheduler"),
        pytest.param(a_pod(annotations={keys.MIRROR_POD: "x"}), "mirror of a static pod", id="mirror"),
    ],
)
def test_a_member_without_a_record_is_told_apart(pod: dict[str, object], said: str):
    assert said in head(page(stored(Stand(*a_v1_world()), pod)))[0]


def test_a_set_of_one_is_left_alone():
    assert "is left alone: its set has one member" in head(page(stored(Stand(*a_v1_world(1)), a_pod())))[0]


@pytest.mark.parametrize(
    ("record", "said"),
    [
        pytest.param("{", "is not JSON", id="no JSON"),
        pytest.param("[" * 100_000, "is not JSON", id="too deep"),
        pytest.param({"v": 2, "member": "db-tikv-0"}, "is of version 2, newer than", id="newer"),
        pytest.param({"v": 1}, "is not a decision of ours", id="incomplete"),
        pytest.param([], "is not a decision of ours", id="a list"),
        pytest.param({"v": 1, "member": "db-tikv-7", "outcome": "pinned"}, "copied template", id="another's"),
    ],
)
def test_garbage_in_a_record_is_said_and_nothing_is_concluded(record: object, said: str):
    text = page(stored(Stand(*a_v1_world()), with_record(record)))

    assert said in head(text)[0]
    assert "nothing is concluded from it" in head(text)[0]
    assert "if it were created now: pinned" in head(text)[3]
    assert "unreadable record" in text


@pytest.mark.parametrize(
    ("record", "node", "said"),
    [
        ({"outcome": "pinned", "node": "n1"}, "n2", "was pinned to n1, but is on n2"),
        ({"outcome": "returned", "node": "n1"}, "n1", "went back to its data on n1, and is there"),
        (
            {"outcome": "returned", "node": "n1", "aboveCap": True},
            "n1",
            "went back to its data on n1, above the cap, and is there",
        ),
        ({"outcome": "returned-waiting", "domain": "n1"}, "", "waits for the node of its data (domain n1)"),
        ({"outcome": "returned-waiting", "domain": "n1"}, "n1", "came back to its data on n1"),
        ({"outcome": "guarded", "cause": "Busy"}, "", "waits apart from its siblings: too many pods of its group"),
        ({"outcome": "guarded", "cause": "Busy"}, "n3", "was guarded (too many pods"),
        ({"outcome": "admitted", "cause": "NoSafeNode"}, "", "was let in without a place: no node"),
        ({"outcome": "untouched", "cause": "SetOfOne"}, "", "is left alone: its set has one member"),
        ({"outcome": "untouched", "cause": "OfALaterVersion"}, "", "is left alone: OfALaterVersion"),
        ({"outcome": "of-a-later-version"}, "", "was of-a-later-version"),
    ],
)
def test_every_outcome_has_its_sentence(record: dict[str, str], node: str, said: str):
    written = {"v": 1, "member": "db-tikv-0", "topologyKey": keys.HOSTNAME, **record}
    stand = stored(Stand(*a_v1_world()), with_record(written))
    if node:
        stand.bind("db-tikv-0", node)

    assert said in head(page(stand))[0]


def test_everything_that_a_record_says_is_shown():
    written = {
        **{"v": 1, "member": "db-tikv-0", "outcome": "guarded", "cause": "NoSafeNode", "topologyKey": keys.HOSTNAME},
        **{"replicas": 5, "cap": None, "counts": {"n1": 2, "n2": "x"}, "moreCounts": 7, "detail": "told\nso"},
        **{"reasons": ["3 of one"], "moreReasons": 4, "problems": ["an option"], "aboveCap": True, "guardToo": True},
    }

    text = page(stored(Stand(*a_v1_world()), with_record(written)))

    assert "told so; no cap for 5 replicas" in head(text)[1]
    assert "members then: n1 2 and 7 more domains" in text
    assert "nodes passed over: 3 of one; 4 more reasons" in text
    assert "problem: an option" in text
    assert "above the cap: yes" in text
    assert "guarded too: yes" in text


def test_control_characters_of_others_do_not_reach_the_terminal():
    written = {"v": 1, "member": "db-tikv-0", "outcome": "pinned", "node": "\x1b[31mn1", "topologyKey": "k"}

    assert "\x1b" not in page(stored(Stand(*a_v1_world()), with_record(written)))


def test_unreadable_and_newer_entries_are_named():
    claim, other = claims(2)
    claim["metadata"]["annotations"] = {keys.LOCK: "{"}
    other["metadata"]["annotations"] = {keys.ENTRY_PREFIX + "x" * 10: json.dumps({"v": 9})}
    world = [found for found in a_v1_world(2) if found["kind"] != "PersistentVolumeClaim"]
    stand = stored(Stand(*world, claim, other), a_pod())

    text = page(stand)

    assert "not known what would be decided now" in text
    stand = stored(Stand(*world, claim, claims(2)[1]), a_pod())
    assert "claim tikv-db-tikv-0: annotation tidb-ha-webhook.io/lock cannot be read" in page(stand)


def test_options_that_are_not_the_default_are_shown():
    stand = Stand(*a_v1_world(placement="Guard", min_domains="2"))
    stand.admit(a_pod())

    text = page(stand)

    assert "placement Guard, min-domains 2" in text
    assert "waits apart from its siblings: the option placement is Guard" in text


def test_another_scheduler_is_known_by_its_setting():
    stand = Stand(*a_v1_world(), other_schedulers=("volcano",))
    stand.admit(a_pod(schedulerName="volcano"))

    text = page(stand, other_schedulers=("volcano",))

    assert "the same if it were created now: guarded, because its schedulerName is one" in text


# --- pods that do not exist


def test_a_refused_pod_is_explained_by_its_set_and_its_events():
    world = [found for found in a_v1_world(3, node_count=2, when_unplaceable="Deny") if found["kind"] != "StatefulSet"]
    whole = a_whole_set()
    whole["metadata"]["namespace"] = SPACE
    labels = a_pod()["metadata"]["labels"]
    whole["spec"] |= {"template": {"metadata": {"labels": labels}, "spec": {"containers": []}}}
    whole["metadata"]["ownerReferences"] = [{**_owner("TidbCluster", "pingcap.com/v1alpha1"), "name": "db"}]
    refused = an_event(
        "e1", "StatefulSet", "create Pod db-tikv-2 in StatefulSet db-tikv failed: denied", involved="db-tikv", count=4
    )
    other = an_event("e2", "StatefulSet", "create Pod db-tikv-20 failed", involved="db-tikv")
    stand = Stand(*world, whole, refused, other)
    for number in range(2):
        stand.bind(f"db-tikv-{number}", stand.admit(a_pod(f"db-tikv-{number}")).node)

    text = page(stand, "db-tikv-2")

    assert "does not exist; StatefulSet db-tikv wants it (3 replicas): its create was refused" in head(text)[0]
    assert "if it were created now: denied, because no node" in text
    assert "when-unplaceable" in text
    assert "NoSafeNode on StatefulSet db-tikv (4 times): create Pod db-tikv-2" in text
    assert "db-tikv-20" not in text


def _owner(kind: str, version: str) -> dict[str, object]:
    return {"apiVersion": version, "kind": kind, "name": kind.lower(), "uid": "u", "controller": True}


def test_a_pod_that_is_not_there_yet_and_has_no_claims_is_left_to_plan():
    whole = a_whole_set()
    whole["metadata"]["namespace"] = SPACE
    stand = Stand(*nodes(), whole)

    text = page(stand, "db-tikv-0")

    assert "plan` shows what it would get" in text
    assert "its owner tries again by itself" in text
    assert "replicas 3, cap 1 for this pod" in text


def test_a_pod_beyond_the_replicas_is_not_wanted():
    whole = a_whole_set(replicas=2)
    whole["metadata"]["namespace"] = SPACE

    text = page(Stand(whole), "db-tikv-5")

    assert "StatefulSet db-tikv does not want it: its replicas are 2" in text
    assert "events below" not in text


def test_a_set_without_a_template_cannot_create_it():
    assert "cannot create it: spec.template.spec" in page(Stand(*a_v1_world()), "db-tikv-1")


def test_a_v2_pod_that_is_not_there_is_known_by_its_instance():
    instance = an_object(TIKVS, "kv-a1b2c3", spec={"cluster": {"name": "db"}})
    event = an_event("e", "TiKV", "cannot create pod kv-tikv-a1b2c3: refused", involved="kv-a1b2c3")
    group = an_object(TIKV_GROUPS, "kv", spec={"cluster": {"name": "db"}, "replicas": 3})

    text = page(Stand(*nodes(), group, instance, event), "kv-tikv-a1b2c3")

    assert "does not exist; TiKV kv-a1b2c3 has it" in text
    assert "cannot create pod kv-tikv-a1b2c3" in text


@pytest.mark.parametrize(
    ("name", "namespace", "said"),
    [
        ("db-tkv-0", SPACE, "no pod 'db-tkv-0' in namespace shop; did you mean db-tikv-0"),
        ("zzz", SPACE, "no pod 'zzz' in namespace shop; there are db-tikv-0"),
        ("db-tikv-0", "shp", "it is in shop: -n shop"),
        ("dbtikv", "shp", "no namespace 'shp'; did you mean shop?"),
    ],
)
def test_a_name_that_nobody_knows_gets_near_matches(name: str, namespace: str, said: str):
    stand = stored(Stand(*a_v1_world()), a_pod())

    with pytest.raises(SettingsError) as caught:
        tell(connected(stand), namespace, name)

    assert said in str(caught.value)


def test_names_are_asked_for_in_the_namespace_alone_where_more_is_not_allowed():
    stand = stored(Stand(*a_v1_world()), a_pod())
    scans = iter([Forbidden("list", "pods", status=403)])

    class Limited(type(stand.cluster)):  # type: ignore[misc]
        def scan(self, *arguments: object, **parameters: object) -> None:
            raise next(scans)

    stand.cluster.__class__ = Limited

    with pytest.raises(SettingsError, match="did you mean db-tikv-0"):
        tell(connected(stand), SPACE, "db-tkv-0")


# --- what cannot be read


def test_events_that_may_not_be_read_are_said_to_be_missing():
    stand = stored(Stand(*a_v1_world()), a_pod())
    stand.door.fails("list events", Forbidden("list", "events", status=403, detail="no"))

    text = page_of(tell(connected(stand.door), SPACE, "db-tikv-0"))  # type: ignore[arg-type]

    assert "not shown: not allowed to list events" in text


@pytest.mark.parametrize(
    ("call", "error", "said"),
    [
        ("list nodes", Forbidden("list", "nodes", status=403), "not known what would be decided now: not allowed to"),
        ("get statefulsets", UnknownOutcome("get", "statefulsets"), "not known what would be decided now"),
    ],
)
def test_what_the_decision_rests_on_may_be_unreadable(call: str, error: Exception, said: str):
    stand = stored(Stand(*a_v1_world()), a_pod())
    stand.door.fails(call, error)
    # An unknown outcome is asked again for as long as there is time.
    connection = connected(stand.door, seconds=4.0, expiry=120.0)  # type: ignore[arg-type]

    text = page_of(tell(connection, SPACE, "db-tikv-0"))

    assert said in text
    assert "mend what keeps" in text


# --- limits


def test_a_large_group_on_many_nodes_fits_into_a_hundred_lines():
    stand = Stand(*nodes(300), *a_v1_world(100)[3:])
    events = [
        an_event(f"e{n}", "StatefulSet", f"db-tikv-0 told {n} " + "so " * 300, involved="db-tikv") for n in range(60)
    ]
    for event in events:
        stand.cluster.create(EVENTS, event, namespace=SPACE, timeout=1)
    for number in range(99):
        stand.bind(f"db-tikv-{number}", stand.admit(a_pod(f"db-tikv-{number}")).node)

    lines = page(stand).splitlines()

    assert len(lines) <= 100
    assert "and 74 more members" in "\n".join(lines)
    assert "more lines" in lines[-1]


# --- the command line


@pytest.fixture
def placed(tmp_path: Path) -> Path:
    stand = Stand(*a_v1_world())
    stand.bind("db-tikv-0", stand.admit(a_pod()).node)
    return dump(tmp_path / "dump.json", stand.cluster)


def test_the_command_explains_a_pod_of_a_dump(placed: Path):
    result = run("why", "pod/db-tikv-0", "-n", SPACE, "--cluster", placed)

    assert result.exit_code == 0
    assert result.output.splitlines()[1].startswith("shop/db-tikv-0 of shop/db/tikv was pinned to")


def test_a_dump_without_some_kinds_is_said_to_be_so(placed: Path):
    result = run("why", "db-tikv-0", "-n", SPACE, "--cluster", placed)

    assert "Note: the dump holds no persistentvolumes: what follows takes it that there are none" in result.stderr


def test_a_dump_without_the_owner_says_what_is_missing(tmp_path: Path):
    stand = stored(Stand(*nodes(), *claims(3)), a_pod())

    result = run("why", "db-tikv-0", "-n", SPACE, "--cluster", dump(tmp_path / "d.json", stand.cluster))

    assert result.exit_code == 0
    assert "not known what would be decided now: get statefulsets db-tikv: 404" in result.output


def test_a_wrong_name_is_exit_code_2(placed: Path):
    result = run("why", "db-tkv-0", "-n", SPACE, "--cluster", placed)

    assert result.exit_code == 2
    assert result.stderr.splitlines()[-1].startswith("Error: there is no pod 'db-tkv-0'")


def test_a_dump_that_cannot_be_used_is_exit_code_3(tmp_path: Path):
    (tmp_path / "dump.yaml").write_text("kind: [")

    result = run("why", "db-tikv-0", "--cluster", tmp_path / "dump.yaml")

    assert result.exit_code == 3
    assert "cannot be read as YAML" in result.stderr


def test_an_empty_cluster_is_a_sentence(tmp_path: Path):
    result = run("why", "db-tikv-0", "--cluster", dump(tmp_path / "d.json", Stand(a_node("n1")).cluster))

    assert result.exit_code == 2
    assert "there is no pod at all" in result.stderr


def test_without_nodes_there_are_none():
    assert "The nodes for it now:\n  there are none" in page(stored(Stand(*a_v1_world(node_count=0)), a_pod()))


def test_readiness_and_deletion_are_shown():
    stand = stored(Stand(*a_v1_world()), a_pod())
    stand.bind("db-tikv-0", "n1")
    ready = {"status": {"conditions": [{"type": "Ready", "status": "True"}]}}
    stand.patch(PODS, "db-tikv-0", {**ready, "metadata": {"finalizers": ["example.com/hold"]}})
    stand.delete(PODS, "db-tikv-0")

    assert "Running, Ready, being deleted, on n1" in "\n".join(head(page(stand)))


def test_data_above_the_cap_and_data_without_a_node_are_told_apart():
    bound = [a_claim(f"pd-db-pd-{number}", labels_v1("pd"), volume=f"pv{number}") for number in range(3)]
    volumes = [a_volume(f"pv{number}", "n1") for number in range(3)]
    world = [found for found in a_v1_world(3, "pd") if found["kind"] != "PersistentVolumeClaim"]
    stand = Stand(*world, *bound, *volumes)
    for number in range(3):
        stand.admit(a_pod(f"db-pd-{number}"))

    assert "sent back to its data on n1, above the cap" in head(page(stand, "db-pd-1"))[3]
    stand.patch(NODES, "n1", {"spec": {"unschedulable": True}})
    assert "left to wait for the node of its data (domain n1)" in head(page(stand, "db-pd-1"))[3]
