"""`doctor`: each thing that can be wrong is found, named, and comes with what to do."""

from __future__ import annotations

import base64
import datetime
import itertools
import json
import socket
import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
import trustme
import yaml
from cluster_objects import (
    SPACE,
    a_pod,
    a_v1_world,
    claims,
    generic_world,
    labels_v1,
    nodes,
    own_guard,
    with_floor,
)
from dumps import a_set as a_whole_set
from fake_api_server import fake_api_server, json_reply, status_reply
from kubernetes.client import Configuration
from operating.asked import dump, run
from operating.authorities import a_ca
from operating.ward import (
    AUTHORITY,
    NAME,
    SYSTEM,
    About,
    Ward,
    a_replica,
    a_webhook,
    bundle,
    installed,
    level,
    lines_of,
    said,
)
from stand import START, Stand

from webhook.cluster.about import ServerAbout
from webhook.cluster.door import ADVANCED_STATEFUL_SETS, NAMESPACES, PODS, WEBHOOKS, Resource
from webhook.cluster.kinds import BUILT_IN, CUSTOM
from webhook.cluster.patience import Patience
from webhook.core import keys
from webhook.errors import Forbidden, NotFound, UnknownOutcome
from webhook.operating.doctor.lines import Level, exit_code, fail, unread, verdict
from webhook.operating.doctor.patient import BINDINGS, LEASES, POLICIES, SERVICES
from webhook.operating.doctor.permissions import RESCUING, SERVING
from webhook.operating.doctor.server import OLDEST


def placed(*, floor: bool = True, world: list[Any] | None = None) -> Ward:
    """A set of three PD members, each placed by the webhook and running."""
    stand = Stand(*(world or a_v1_world(3, "pd")))
    for number in range(3):
        name = f"db-pd-{number}"
        stand.bind(name, stand.admit(a_pod(name)).node)
        stand.patch(PODS, name, {"status": {"conditions": [{"type": "Ready", "status": "True"}]}})
    objects: list[Any] = []
    for resource in (*BUILT_IN, *CUSTOM):
        if resource.kind != "StorageClass":
            objects += stand.cluster.list(resource, timeout=1).items
    ward = Ward(objects, floor=floor)
    ward.add(NAMESPACES, SPACE, metadata={"labels": {"kubernetes.io/metadata.name": SPACE}})
    return ward


def with_a_floor(ward: Ward, *, bound: bool = True, name: str = "floor") -> Ward:
    patch = f'JSONPatch{{op: "add", path: "/metadata/annotations/{keys.GUARD.replace("/", "~1")}"}}'
    ward.add(POLICIES, name, spec={"mutations": [{"jsonPatch": {"expression": patch}}]})
    if bound:
        ward.add(BINDINGS, name, spec={"policyName": name})
    return ward


def test_a_sound_cluster_gets_no_warning_but_for_what_cannot_be_seen_from_outside():
    lines = lines_of(with_a_floor(installed(placed())))

    found = {about: level(lines, about) for about in lines}
    assert {about: levels for about, levels in found.items() if set(levels.split()) != {"ok"}} == {"certificate": "--"}
    assert "hook.tidb-ha-system has pods.tidb-ha-webhook.io" in said(lines, "configuration")
    assert "replicas and this program: 0.1.0" in said(lines, "versions")
    assert "hook-0_1a2b3c4d leads" in said(lines, "controller")
    assert "1 group: all as they should be" in said(lines, "groups")


def test_every_warning_and_failure_says_what_to_do():
    ward = installed(Ward([*a_v1_world(3, "pd"), a_pod("db-pd-0"), a_pod("db-pd-1")]), a_webhook(timeoutSeconds=1))
    ward.denied |= {("list", "nodes")}

    for lines in lines_of(ward, now=START + 1000).values():
        assert [line for line in lines if line.level.value in ("warn", "fail") and not line.to_do] == []


# --- the API server


@pytest.mark.parametrize(
    ("version", "wanted", "word"),
    [
        ({"major": "1", "minor": "36+", "gitVersion": "v1.36.3-eks"}, "ok", "reachable, v1.36.3-eks"),
        ({"major": "1", "minor": "31", "gitVersion": "v1.31.0"}, "ok", "the floor needs 1.36"),
        ({"major": "1", "minor": "29", "gitVersion": "v1.29.0"}, "fail", "older than 1.30"),
        ({"major": "1", "minor": "40", "gitVersion": "v1.40.0"}, "warn", "newer than 1.36"),
        ({}, "warn", "of an unknown version"),
        ({"major": 1, "minor": []}, "warn", "of an unknown version"),
    ],
)
def test_versions_are_known_or_not(version: object, wanted: str, word: str):
    lines = lines_of(placed(), about=About(version))

    assert level(lines, "API server") == wanted
    assert word in said(lines, "API server")


def test_the_oldest_version_is_the_charts():
    chart = yaml.safe_load((Path(__file__).parents[2] / "charts/tidb-ha-webhook/Chart.yaml").read_text())

    assert f">=1.{OLDEST}.0-0" == chart["kubeVersion"]


def test_the_version_is_asked_of_the_server():
    with fake_api_server() as server:
        configuration = Configuration()
        configuration.host = server.url
        server.answer_with(json_reply({"major": "1"}), status_reply(403, "no"))
        about = ServerAbout(configuration, Patience())

        assert about.version(5.0) == {"major": "1"}
        assert server.asked[0].path == "/version"
        with pytest.raises(Forbidden, match="get version: 403 no"):
            about.version(5.0)
    configuration.host = "http://127.0.0.1:1"
    with pytest.raises(UnknownOutcome, match="get version: no answer"):
        ServerAbout(configuration, Patience()).version(5.0)


def test_a_clock_that_is_off_is_told():
    assert "30 s apart" in said(lines_of(placed(), now=START + 30), "clock")


@pytest.mark.parametrize(
    ("times", "wanted"),
    [
        ([START - 1], "ok"),
        ([START - 1, START - 9], "ok"),
        ([START - 1, START - 40], "warn"),
        ([START - 1, START - 200], "fail"),
        ([START - 1, None], "ok"),
    ],
)
def test_clocks_of_several_api_servers_are_compared_by_their_leases(times: list[float | None], wanted: str):
    ward = placed()
    for number, when in enumerate(times):
        renewed = datetime.datetime.fromtimestamp(when, datetime.UTC).isoformat() if when else "never"
        label = {"labels": {"apiserver.kubernetes.io/identity": "kube-apiserver"}}
        ward.add(LEASES, f"apiserver-{number}", "kube-system", metadata=label, spec={"renewTime": renewed})

    assert level(lines_of(ward), "API servers' clocks") == wanted


# --- permissions


def test_what_one_may_not_read_is_named():
    ward = placed()
    ward.denied = {("list", "nodes"), ("list", "statefulsets")}

    text = said(lines_of(ward), "your permissions")

    assert "you may not list nodes, list statefulsets.apps" in text


def test_the_service_account_of_the_replicas_is_asked_about():
    ward = installed(placed())
    ward.denied = {("patch", "persistentvolumeclaims")}

    lines = lines_of(ward)

    assert level(lines, "webhook's permissions") == "fail"
    assert f"system:serviceaccount:{SYSTEM}:{NAME} may not patch persistentvolumeclaims" in said(
        lines, "webhook's permissions"
    )


def test_the_service_account_of_whoever_leads_the_controller_is_asked_about():
    ward = installed(placed())
    for right in (("delete", "pods"), ("get", "mutatingwebhookconfigurations"), ("list", "endpointslices")):
        ward.denied = {right}

        lines = lines_of(ward)

        assert level(lines, "controller's permissions") == "fail"
        assert f"may not {' '.join(right)}" in said(lines, "controller's permissions")
        assert level(lines, "webhook's permissions") == "ok"


def test_where_the_leading_pod_is_not_known_its_rights_are_not_asked_about():
    for holder in ("hook-9_1a2b3c4d", "somebody", ""):
        ward = installed(placed())
        patch = {"spec": {"holderIdentity": holder}}
        ward.merge_patch(LEASES, "tidb-ha-webhook-controller", patch, namespace=SYSTEM, timeout=1)
        assert level(lines_of(ward), "controller's permissions") == "--"
    assert level(lines_of(placed()), "controller's permissions") == "--"


def test_who_may_not_ask_about_others_is_told_so():
    ward = installed(placed())
    ward.forbidden = {"subjectaccessreviews"}

    text = said(lines_of(ward), "webhook's permissions")

    assert "not checked: not allowed to create subjectaccessreviews" in text
    assert "kubectl auth can-i create subjectaccessreviews" in text


def granted_by_the_chart(*places: int) -> set[tuple[str, str, str]]:
    """Verb, resource and group of each rule of these documents of the chart's roles, but for those on Leases."""
    chart = Path(__file__).parents[2] / "charts/tidb-ha-webhook/templates/rbac.yaml"
    documents = chart.read_text().split("\n---")
    found = set()
    for place in places:
        text = "\n".join(line for line in documents[place].splitlines() if "{{" not in line)
        for rule in yaml.safe_load(text)["rules"]:
            found |= set(itertools.product(rule["verbs"], rule["resources"], rule["apiGroups"]))
    return {right for right in found if right[1] != "leases"}


def test_the_rights_that_are_asked_for_are_the_charts():
    assert {(right.verb, right.resource, right.group) for right in SERVING} == granted_by_the_chart(0)
    assert {(right.verb, right.resource, right.group) for right in RESCUING} == granted_by_the_chart(2, 4)


# --- registration


def test_without_a_configuration_nobody_is_placed():
    lines = lines_of(placed())

    assert level(lines, "configuration") == "fail"
    assert "nobody is placed" in said(lines, "configuration")
    assert level(lines, "selectors") == level(lines, "CA bundle") == level(lines, "certificate") == "--"
    assert level(lines, "replicas") == level(lines, "controller") == "--"
    assert level(lines, "webhook's permissions") == "--"


def test_two_releases_are_one_too_many():
    ward = installed(placed())
    ward.add(WEBHOOKS, "another", webhooks=[a_webhook()])

    assert "another, hook.tidb-ha-system are all ours" in said(lines_of(ward), "configuration")


def test_a_timeout_that_is_too_short_is_told():
    assert "has 2 s to answer" in said(lines_of(installed(placed(), a_webhook(timeoutSeconds=2))), "configuration")


def test_ignore_without_a_floor_protects_nobody():
    for ward in (placed(), placed(floor=False)):
        lines = lines_of(installed(ward, a_webhook(failurePolicy="Ignore")))

        assert level(lines, "while we are away") == "fail"
        assert "members are placed unguarded" in said(lines, "while we are away")


def test_a_floor_needs_its_binding():
    assert "has no MutatingAdmissionPolicyBinding" in said(
        lines_of(with_a_floor(installed(placed()), bound=False)), "while we are away"
    )


def test_fail_without_a_floor_is_fine():
    assert "failurePolicy Fail" in said(lines_of(installed(placed())), "while we are away")


def test_without_a_configuration_and_without_a_floor_nobody_keeps_members_apart():
    lines = lines_of(placed())

    assert level(lines, "while we are away") == "fail"
    assert "nobody keeps members apart" in said(lines, "while we are away")
    assert level(lines_of(with_a_floor(placed())), "while we are away") == "ok"


@pytest.mark.parametrize(
    "fields",
    [
        {"namespaceSelector": {"matchExpressions": [{"key": "kubernetes.io/metadata.name", "operator": "NotIn"}]}},
        {"namespaceSelector": {"matchLabels": {"x": "y"}}},
        {"objectSelector": {"matchLabels": {"x": "y"}}},
    ],
)
def test_selectors_that_leave_members_out_are_found(fields: Any):
    if "matchExpressions" in fields.get("namespaceSelector", {}):
        fields["namespaceSelector"]["matchExpressions"][0]["values"] = [SPACE]

    lines = lines_of(installed(placed(), a_webhook(**fields)))

    assert level(lines, "selectors") == "fail"
    assert "leave out shop/db/pd" in said(lines, "selectors")


def test_another_entry_may_select_what_the_first_leaves_out():
    first = a_webhook(objectSelector={"matchLabels": {"x": "y"}})

    assert level(lines_of(installed(placed(), first, a_webhook("generic.tidb-ha-webhook.io"))), "selectors") == "ok"


def test_namespaces_that_may_not_be_listed_are_told():
    ward = installed(placed())
    ward.forbidden = {"namespaces"}

    assert "not checked: not allowed to list namespaces" in said(lines_of(ward), "selectors")


def test_other_webhooks_and_policies_that_touch_affinity_are_named():
    ward = with_a_floor(installed(placed()))
    rules = [{"apiGroups": ["*"], "operations": ["*"], "resources": ["*/*"]}]
    ward.add(WEBHOOKS, "mesh", webhooks=[{"name": "mesh.example.com", "rules": rules}])
    ward.add(WEBHOOKS, "none", webhooks=[{"name": "none.example.com", "rules": [{"resources": ["secrets"]}]}])
    ward.add(POLICIES, "spread", spec={"mutations": [{"expression": "Object{spec: {affinity: {}}}"}]})

    lines = lines_of(ward)

    assert level(lines, "other mutators") == "warn ok"
    assert "spread may change the affinity of pods" in said(lines, "other mutators")
    assert "mesh see pods too; no member has lost its pin" in said(lines, "other mutators")


def test_a_pin_that_was_taken_off_is_found():
    ward = installed(placed())
    ward.merge_patch(PODS, "db-pd-1", {"spec": {"affinity": None}}, namespace=SPACE, timeout=1)

    lines = lines_of(ward)

    assert level(lines, "other mutators") == "fail"
    assert "taken the pin off shop/db-pd-1" in said(lines, "other mutators")


# --- who answers


@pytest.mark.parametrize(
    ("ready", "wanted"), [([], "--"), ([False, False], "fail"), ([True, False], "warn"), ([True, True], "ok")]
)
def test_replicas_must_be_ready(ready: list[bool], wanted: str):
    ward = installed(placed(), replicas=0)
    for number, is_ready in enumerate(ready):
        ward.add(PODS, f"hook-{number}", SYSTEM, **a_replica("hook:0.1.0", ready=is_ready))

    assert level(lines_of(ward), "replicas") == wanted


def test_a_service_without_a_selector_has_no_replicas():
    ward = installed(placed(), replicas=0)
    ward.merge_patch(SERVICES, NAME, {"spec": {"selector": None}}, namespace=SYSTEM, timeout=1)

    assert level(lines_of(ward), "replicas") == "--"


@pytest.mark.parametrize(
    ("images", "wanted"),
    [
        (["r:0.1.0", "r:v0.2.0"], "replicas run 0.1.0, v0.2.0"),
        (["example.com:5000/r:9.9.9"] * 2, "replicas run 9.9.9, this program is 0.1.0"),
        (["r:v0.1.0"], "replicas and this program: 0.1.0"),
        (["r:0.1.0@sha256:abc"], "replicas and this program: 0.1.0"),
        (["r@sha256:abc"], "images are named by digest alone; this program is 0.1.0"),
    ],
)
def test_versions_of_the_replicas_are_compared(images: list[str], wanted: str):
    ward = installed(placed(), replicas=0)
    for number, image in enumerate(images):
        ward.add(PODS, f"hook-{number}", SYSTEM, **a_replica(image))

    assert wanted in said(lines_of(ward), "versions")


def test_the_charts_controller_has_a_lease_by_the_releases_name():
    ward = installed(placed())
    lease = ward.get(LEASES, "tidb-ha-webhook-controller", namespace=SYSTEM, timeout=1)
    ward.delete(LEASES, "tidb-ha-webhook-controller", namespace=SYSTEM, timeout=1)
    ward.add(LEASES, "hook-controller", SYSTEM, spec={**lease["spec"], "holderIdentity": "hook-controller-0"})
    assert "hook-controller-0 leads" in said(lines_of(ward), "controller")


def test_without_a_leader_nobody_is_rescued():
    ward = installed(placed())
    ward.delete(LEASES, "tidb-ha-webhook-controller", namespace=SYSTEM, timeout=1)
    assert "nobody leads" in said(lines_of(ward), "controller")

    for renewed in ("2027-01-15T07:00:00Z", "garbage"):
        other = installed(placed())
        patch = {"spec": {"renewTime": renewed}}
        other.merge_patch(LEASES, "tidb-ha-webhook-controller", patch, namespace=SYSTEM, timeout=1)
        assert "has not been renewed" in said(lines_of(other), "controller")


# --- certificates


@contextmanager
def tls_server(authority: trustme.CA, *names: str) -> Iterator[int]:
    """A server that presents a certificate for these names, as often as it is asked; its port."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert(*names).configure_cert(context)
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve() -> None:
            while True:
                try:
                    plain, _ = listener.accept()
                except OSError:
                    return
                with plain:
                    try:
                        context.wrap_socket(plain, server_side=True).close()
                    except OSError:
                        continue

        thread = Thread(target=serve, daemon=True)
        thread.start()
        yield listener.getsockname()[1]
        listener.shutdown(socket.SHUT_RDWR)
        thread.join()


def by_url(port: int, authority: trustme.CA = AUTHORITY) -> Any:
    return a_webhook(clientConfig={"url": f"https://localhost:{port}/mutate", "caBundle": bundle(authority)})


def test_a_certificate_that_the_bundle_trusts_is_fine():
    with tls_server(AUTHORITY, "localhost") as port:
        lines = lines_of(installed(placed(), by_url(port), {**by_url(port), "name": "generic.tidb-ha-webhook.io"}))

    assert level(lines, "certificate") == "ok"
    assert f"that of localhost:{port} is good for" in said(lines, "certificate")


def test_a_certificate_of_another_authority_or_name_would_be_refused():
    with tls_server(trustme.CA(), "localhost") as port:
        lines = lines_of(installed(placed(), by_url(port)))
    assert level(lines, "certificate") == "fail"
    assert "would be refused" in said(lines, "certificate")

    with tls_server(AUTHORITY, "elsewhere") as port:
        assert "would be refused" in said(lines_of(installed(placed(), by_url(port))), "certificate")


def test_nobody_there_is_a_failure_but_a_name_from_inside_the_cluster_is_not():
    with socket.create_server(("127.0.0.1", 0)) as closed:
        port = closed.getsockname()[1]

    lines = lines_of(installed(placed(), by_url(port)))

    assert level(lines, "certificate") == "fail"
    assert "cannot be reached: Connection refused" in said(lines, "certificate")
    assert "a name inside the cluster" in said(lines_of(installed(placed())), "certificate")


@pytest.mark.parametrize(
    ("days", "wanted"), [(365 * 200, "ok"), (7, "warn"), (-1, "fail")], ids=["good", "ends soon", "expired"]
)
def test_bundles_must_not_expire(days: int, wanted: str):
    now = datetime.datetime.fromtimestamp(START, datetime.UTC)
    pem = a_ca(now - datetime.timedelta(days=400), now + datetime.timedelta(days=days))
    config = {"url": "https://localhost:1/mutate", "caBundle": base64.b64encode(pem).decode()}

    lines = lines_of(installed(placed(), a_webhook(clientConfig=config)))

    assert level(lines, "CA bundle") == wanted


@pytest.mark.parametrize("written", ["", "bm90IHBlbQ==", "%%%", "\xff"])
def test_a_bundle_must_be_one(written: str):
    config = {"url": "https://localhost:1/mutate", "caBundle": written}

    lines = lines_of(installed(placed(), a_webhook(clientConfig=config)))

    assert level(lines, "CA bundle") == "fail"
    assert level(lines, "certificate") == "fail"


# --- the groups


def test_breaches_are_counted_and_left_to_the_audit():
    lines = lines_of(Ward([*a_v1_world(3, "pd"), a_pod("db-pd-0")]))

    assert level(lines, "groups") == "fail"
    assert "shop/db/pd" in said(lines, "groups")


@pytest.mark.parametrize("served", [True, False])
def test_a_set_that_opted_in_by_a_class_that_is_none_is_named_with_what_is_right(served: bool):
    world = generic_world()
    (made,) = (found for found in world if found["kind"] == "StatefulSet")
    right = lines_of(Ward(world))
    made["spec"]["template"] = {"metadata": {"labels": {"app": "raft", keys.CLASS_LABEL: "quorumm"}}}
    ward = Ward(world) if served else WithoutAdvancedSets(world)

    lines = lines_of(ward)

    assert level(right, "classes") == "ok"
    assert level(lines, "classes") == "fail"
    assert 'shop/raft ("quorumm") opted in by a class that is none' in said(lines, "classes")
    assert "to quorum or replicated" in said(lines, "classes")


def test_a_class_on_a_set_that_the_operators_labels_make_a_group_does_not_matter():
    world = generic_world()
    (made,) = (found for found in world if found["kind"] == "StatefulSet")
    made["spec"]["template"] = {"metadata": {"labels": {**labels_v1("pd"), keys.CLASS_LABEL: "quorumm"}}}

    assert level(lines_of(Ward(world)), "classes") == "ok"


class WithoutAdvancedSets(Ward):
    """A cluster on which tidb-operator's own StatefulSets are not installed."""

    def list(self, resource: Resource, **parameters: Any) -> Any:
        if resource == ADVANCED_STATEFUL_SETS:
            raise NotFound("list", resource.plural, status=404)
        return super().list(resource, **parameters)


def test_strangers_and_running_guards_are_named():
    guarded = with_floor(a_pod("db-pd-0"))
    guarded["spec"] |= {"nodeName": "n1", "affinity": own_guard(labels_v1("pd"))}
    guarded["status"] = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
    lines = lines_of(Ward([*a_v1_world(3, "pd"), guarded]))

    assert "1 never passed us: shop/db-pd-0" in said(lines, "members")
    assert "shop/db-pd-0 keep others off" in said(lines, "guarded and running")


def test_tikv_whose_isolation_is_not_known_is_named():
    ready = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
    stores = [a_pod(f"db-tikv-{number}", nodeName=f"n{number % 3 + 1}") for number in range(6)]
    lines = lines_of(Ward([*a_v1_world(6), *({**store, "status": ready} for store in stores)]))

    assert "of shop/db/tikv it is not known whether PD keeps copies apart" in said(lines, "PD's isolation")


def test_groups_without_a_lock_claim_are_named():
    world = [found for found in generic_world() if found["kind"] != "PersistentVolumeClaim"]
    pod = a_pod("raft-0", labels={"app": "raft", keys.CLASS_LABEL: "quorum"})

    assert "shop/raft/quorum have no claim" in said(lines_of(Ward([*world, pod])), "lock claims")


def test_what_could_not_be_checked_is_no_all_clear():
    lines = [line for about in lines_of(installed(placed())).values() for line in about if line.level is not Level.FAIL]
    blind = unread("groups", "not checked: not allowed to list nodes", "ask somebody who may")

    assert exit_code(lines) == 0
    assert exit_code([*lines, blind]) == 3
    assert verdict([*lines, blind]).endswith("; not checked: groups")
    assert exit_code([blind, fail("replicas", "none", "")]) == 1


def test_an_empty_cluster_has_no_members_that_passed_us():
    assert level(lines_of(Ward([])), "members") == "--"


def test_a_lease_that_nobody_ever_held_is_not_one_that_was_not_renewed():
    ward = installed(placed())
    ward.merge_patch(LEASES, "tidb-ha-webhook-controller", {"spec": None}, namespace=SYSTEM, timeout=1)

    assert "nobody holds it -> just after an install wait a minute" in said(lines_of(ward), "controller")


def test_a_set_whose_pods_have_not_come_yet_needs_no_claim_yet():
    whole = a_whole_set("db-pd", labels=labels_v1("pd"), claims=("pd",))
    whole["metadata"]["namespace"] = SPACE

    assert level(lines_of(Ward([*nodes(), whole])), "lock claims") == "ok"


def test_a_dump_without_claims_says_nothing_of_them(tmp_path: Path):
    world = [found for found in a_v1_world(3, "pd") if found["kind"] != "PersistentVolumeClaim"]
    ward = Ward([*world, a_pod("db-pd-0")])

    assert (
        "--    lock claims: the dump holds no claims" in run("doctor", "--cluster", dump(tmp_path / "d", ward)).stdout
    )


def an_entry(token: str, time: float) -> str:
    entry = {"token": token, "member": "db-pd-7", "claim": "", "node": "n1", "domain": "n1", "key": keys.HOSTNAME}
    return json.dumps({"v": 1, **entry, "time": int(time)})


def records(*annotations: dict[str, str]) -> dict[str, Any]:
    world = [found for found in a_v1_world(3, "pd") if found["kind"] != "PersistentVolumeClaim"]
    named = claims(3, "pd")
    for claim, written in zip(named, annotations, strict=False):
        claim["metadata"]["annotations"] = written
    return lines_of(Ward([*world, *named, a_pod("db-pd-0")]))


def test_records_of_every_kind_are_told_apart():
    prefix = keys.ENTRY_PREFIX
    lines = records(
        {keys.LOCK: "{"},
        {
            f"{prefix}aaaaaaaa": an_entry("aaaaaaaa", START + 1000),
            f"{prefix}bbbbbbbb": an_entry("bbbbbbbb", START - 1000),
        },
        {f"{prefix}cccccccc": json.dumps({"v": 7})},
    )

    assert level(lines, "records") == "warn warn warn"
    assert "1 dated in the future, of shop/db/pd" in said(lines, "records")
    assert "1 that cannot be read" in said(lines, "records")
    assert "1 of a newer version" in said(lines, "records")


def test_entries_that_are_over_are_only_counted():
    lines = records({f"{keys.ENTRY_PREFIX}bbbbbbbb": an_entry("bbbbbbbb", START - 1000)})

    assert level(lines, "records") == "ok"
    assert "1 is over, and goes with the next decision" in said(lines, "records")


def test_karpenter_is_told_of_where_members_are_pinned():
    world = a_v1_world(3, "pd")
    for found in world:
        if found["kind"] == "Node":
            found["metadata"]["labels"]["karpenter.sh/nodepool"] = "default"

    assert "Karpenter cannot move the pinned pods of shop/db/pd" in said(lines_of(placed(world=world)), "autoscalers")


# --- what cannot be read


def test_what_fails_on_the_way_is_a_line():
    class Failing(Ward):
        def list(self, resource: Any, **parameters: Any) -> Any:
            if resource == WEBHOOKS:
                raise UnknownOutcome("list", resource.plural, status=500, detail="oh")
            if resource == LEASES:
                raise NotFound("list", resource.plural, status=404)
            return super().list(resource, **parameters)

    lines = lines_of(Failing([*nodes()]))

    assert "not checked: list mutatingwebhookconfigurations: 500 oh" in said(lines, "configuration")
    assert level(lines, "API servers' clocks") == "--"


# --- the command line


def test_on_a_dump_only_the_groups_are_looked_at(tmp_path: Path):
    path = dump(tmp_path / "dump.json", placed())

    result = run("doctor", "--cluster", path)

    assert result.exit_code == 0
    assert "--    API server: this is a dump" in result.stdout
    assert "ok    groups: 1 group: all as they should be" in result.stdout


def test_a_failure_is_exit_code_1_and_json_has_the_lines(tmp_path: Path):
    path = dump(tmp_path / "dump.json", Ward([*a_v1_world(3, "pd"), a_pod("db-pd-0")]))

    result = run("doctor", "--cluster", path, "-o", "json")
    told = json.loads(result.stdout)
    assert (result.exit_code, told["fit"]) == (1, False)
    assert {"level", "about", "found", "toDo"} == set(told["lines"][0])

    result = run("doctor", "--cluster", path)
    assert "\n      -> tidb-ha-webhook audit has the details" in result.stdout


def test_an_api_server_that_does_not_answer_is_exit_code_3(tmp_path: Path):
    config = tmp_path / "config"
    document = {
        "clusters": [{"name": "c", "cluster": {"server": "http://127.0.0.1:1"}}],
        "users": [{"name": "u", "user": {}}],
        "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
        "current-context": "x",
    }
    config.write_text(json.dumps(document))

    result = run("doctor", "--kubeconfig", config)

    assert result.exit_code == 3
    assert "get version: no answer from the API server of" in result.stderr
