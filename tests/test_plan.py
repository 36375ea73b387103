"""`plan`: what would be answered for pods, in sequence, without a server; bad input; exit codes."""

from __future__ import annotations

import io
import json
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from dumps import (
    CLASS,
    LABELS,
    NAMESPACE,
    Manifest,
    a_cluster_with,
    a_node,
    a_plain_pod,
    a_set,
    pods_of_set,
    write,
)
from rich.console import Console

from webhook.cli import main
from webhook.core import keys
from webhook.embedded.reviews import review_of
from webhook.planning.doubts import Doubt
from webhook.planning.report import as_json, exit_code, print_table, summary
from webhook.planning.rows import Row, Verdict, all_placed, warnings_of
from webhook.settings import Settings, variable

WIDE = {"COLUMNS": "200"}


def run(*arguments: str | Path, stdin: str | bytes | None = None, **variables: str) -> Result:
    absent = {variable(name): None for name in (*(field.name for field in fields(Settings)), "filename", "output")}
    environment = {**absent, **WIDE, **variables}
    return CliRunner(env=environment).invoke(main, ["plan", *map(str, arguments)], input=stdin)


class Place:
    """A folder with a dump and a file of pods."""

    def __init__(self, folder: Path) -> None:
        self.dump = folder / "dump.json"
        self.file = folder / "pods.json"

    def plan(self, dump: list[Manifest], *wanted: Any, output: str = "json") -> Result:
        write(self.dump, *dump)
        write(self.file, *wanted)
        return run("--cluster", self.dump, "-f", self.file, "-o", output)

    def pods(self, dump: list[Manifest], *wanted: Any) -> list[Manifest]:
        result = self.plan(dump, *wanted)
        assert result.exception is None or isinstance(result.exception, SystemExit), result.output
        pods: list[Manifest] = json.loads(result.stdout)["pods"]
        return pods


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


def nodes_of(pods: list[Manifest]) -> list[str]:
    return [pod["node"] for pod in pods]


def test_a_sets_pods_are_decided_in_sequence_each_seeing_those_before_it(place: Place):
    result = place.plan(a_cluster_with(), a_set(replicas=6))

    answer = json.loads(result.stdout)
    assert result.exit_code == 0
    assert answer["allPlaced"] is True
    assert [pod["pod"] for pod in answer["pods"]] == [f"db-tikv-{ordinal}" for ordinal in range(6)]
    assert sorted(nodes_of(answer["pods"])) == ["n1", "n1", "n2", "n2", "n3", "n3"]
    assert [pod["cap"] for pod in answer["pods"]] == [1, 1, 1, 2, 2, 2]


def test_the_table_shows_pod_outcome_node_cap_and_reason(place: Place):
    result = place.plan(a_cluster_with(), a_set(replicas=4, claims=("tikv",)), output="table")

    heading, first, *_, last = result.stdout.splitlines()
    assert heading.split() == ["POD", "OUTCOME", "NODE", "CAP", "REASON"]
    assert first.split()[:4] == ["t1/db-tikv-0", "pinned", first.split()[2], "1"]
    assert "holds 0 member(s), at most 1" in first
    assert last == "4 pod(s): 4 placed"
    assert result.exit_code == 0


def test_a_pod_without_a_place_is_exit_code_1_with_its_warning_on_standard_error(place: Place):
    result = place.plan(a_cluster_with(nodes=("n1", "n2")), a_set(), output="table")

    assert result.exit_code == 1
    waiting = result.stdout.splitlines()[3]
    assert waiting.split()[:3] == ["t1/db-tikv-2", "guarded", "(NoSafeNode)"]
    assert "2 of at least 3 nodes are in use" in waiting
    assert result.stdout.splitlines()[-1] == "3 pod(s): 2 placed, 1 not placed"
    assert result.stderr == (
        "Warning: db-tikv-2 of t1/db/tikv: waits apart from its siblings: no node that can take it is within the cap of"
        " its group. Add a node.\n"
    )


def test_json_has_group_domain_warnings_and_the_patch(place: Place):
    first, _, last = place.pods(a_cluster_with(nodes=("n1", "n2")), a_set())

    assert first["group"] == "t1/db/tikv"
    assert first["domain"] == first["node"]
    assert first["replicas"] == 3
    assert first["verdict"] == "placed"
    assert first["patch"][0]["op"] == "add"
    assert (last["outcome"], last["cause"], last["verdict"]) == ("guarded", "NoSafeNode", "not placed")
    assert len(last["warnings"]) == 1


def test_pods_of_a_set_that_are_there_are_shown_and_only_the_others_are_decided(place: Place):
    there = pods_of_set(a_set())
    running = [
        {**pod, "spec": {**pod["spec"], "nodeName": node}, "status": {"phase": "Running"}}
        for pod, node in zip(there, ("n1", "n2", "n2"), strict=True)
    ]

    pods = place.pods(a_cluster_with(a_set(), *running, nodes=("n1", "n2", "n3")), a_set(replicas=4))

    assert [pod["outcome"] for pod in pods] == ["exists"] * 3 + ["pinned"]
    assert nodes_of(pods)[:3] == ["n1", "n2", "n2"]
    assert nodes_of(pods)[3] == "n3"


def test_a_set_takes_the_place_of_the_one_in_the_dump(place: Place):
    assert len(place.pods(a_cluster_with(a_set(replicas=1)), a_set(replicas=3))) == 3


def test_pods_may_be_given_one_by_one(place: Place):
    pods = place.pods(a_cluster_with(a_set()), *pods_of_set(a_set()))

    assert sorted(nodes_of(pods)) == ["n1", "n2", "n3"]


def test_reviews_may_be_given(tmp_path: Path):
    dump = write(tmp_path / "dump.json", *a_cluster_with(a_set()))
    reviews = [review_of(pod, namespace=NAMESPACE, uid=f"u-{i}") for i, pod in enumerate(pods_of_set(a_set()))]
    file = tmp_path / "reviews.json"
    file.write_text("\n".join(map(json.dumps, reviews)))

    result = run("--cluster", dump, "-f", file, "-o", "json")

    assert sorted(nodes_of(json.loads(result.stdout)["pods"])) == ["n1", "n2", "n3"]


def test_a_dry_runs_review_leaves_nothing_for_the_next(tmp_path: Path):
    dump = write(tmp_path / "dump.json", *a_cluster_with(a_set()))
    review = review_of(pods_of_set(a_set())[0], namespace=NAMESPACE, uid="u", dry_run=True)

    result = run("--cluster", dump, "-f", "-", stdin=json.dumps(review))

    assert "NoLockClaim" in result.stdout
    assert result.exit_code == 1


def test_standard_input_and_several_files_are_read_in_order(tmp_path: Path):
    dump = write(tmp_path / "dump.json", *a_cluster_with())
    file = write(tmp_path / "web.json", a_plain_pod())

    result = run("--cluster", dump, "-f", file, "-f", "-", "-o", "json", stdin=json.dumps(a_set(replicas=1)))

    assert [pod["pod"] for pod in json.loads(result.stdout)["pods"]] == ["web-0", "db-tikv-0"]


def test_flags_may_be_variables(tmp_path: Path):
    dump = write(tmp_path / "dump.json", *a_cluster_with())
    file = write(tmp_path / "pods.json", a_set())

    result = run(TIDB_HA_CLUSTER=str(dump), TIDB_HA_FILENAME=str(file), TIDB_HA_OUTPUT="json")

    assert result.exit_code == 0
    assert json.loads(result.stdout)["allPlaced"] is True


def test_other_schedulers_pods_are_guarded_as_serve_would(tmp_path: Path):
    dump = write(tmp_path / "dump.json", *a_cluster_with())
    wanted = a_set(replicas=3)
    wanted["spec"]["template"]["spec"]["schedulerName"] = "yunikorn"
    file = write(tmp_path / "pods.json", wanted)

    result = run("--cluster", dump, "-f", file, "--other-schedulers", "yunikorn")

    assert result.exit_code == 1
    assert "OtherScheduler" in result.stdout


@pytest.mark.parametrize(
    ("pod", "reason"),
    [
        pytest.param(a_plain_pod(), "", id="no member"),
        pytest.param({**a_plain_pod(), "spec": {"nodeName": "n1"}}, "it has a node already", id="bound"),
        pytest.param(
            a_plain_pod(labels=LABELS, annotations={"kubernetes.io/config.mirror": "a"}),
            "it is the mirror of a static pod",
            id="mirror of a static pod",
        ),
        pytest.param(a_plain_pod(labels=LABELS), "its controller is nobody, not a StatefulSet", id="look-alike"),
    ],
)
def test_a_pod_that_is_left_alone_says_why(place: Place, pod: Manifest, reason: str):
    (answer,) = place.pods(a_cluster_with(), pod)

    assert (answer["outcome"], answer["cause"], answer["verdict"]) == ("untouched", "NotAMember", "left alone")
    assert reason in answer["reason"]
    assert answer["reason"]


def test_a_generic_pod_without_its_set_cannot_be_known(place: Place):
    pod = pods_of_set(a_set("raft", labels={keys.CLASS_LABEL: "quorum"}))[0]

    result = place.plan(a_cluster_with(), pod)

    answers = json.loads(result.stdout)
    (answer,) = answers["pods"]
    assert (answer["cause"], answer["verdict"]) == ("UnusableSelector", "not known")
    assert answer["reason"] == "StatefulSet raft was not found; add it, or give it with -f"
    assert (answers["known"], answers["allPlaced"], result.exit_code) == (False, False, 3)


def test_a_review_of_something_else_is_left_alone(tmp_path: Path):
    dump = write(tmp_path / "dump.json", *a_cluster_with())
    review = review_of(pods_of_set(a_set())[0], namespace=NAMESPACE, uid="u")
    review["request"]["operation"] = "UPDATE"

    result = run("--cluster", dump, "-f", "-", stdin=json.dumps(review))

    assert "only the CREATE of a pod is decided on" in result.stdout


def test_a_name_that_is_made_after_admission_is_shown_by_its_prefix(tmp_path: Path):
    dump = write(tmp_path / "dump.json", *a_cluster_with())
    review = review_of({"metadata": {"generateName": "job-"}}, namespace=NAMESPACE, uid="u")

    result = run("--cluster", dump, "-f", "-", stdin=json.dumps(review))

    assert "t1/job- " in result.stdout


def test_members_that_are_placed_beside_pods_that_are_left_alone_are_a_success(place: Place):
    assert place.plan(a_cluster_with(), a_set(), a_plain_pod()).exit_code == 0


def test_a_file_without_any_member_is_no_success(place: Place):
    assert place.plan(a_cluster_with(), a_plain_pod()).exit_code == 1


def test_a_set_of_none_has_nothing_to_place(place: Place):
    result = place.plan(a_cluster_with(), a_set(replicas=0), output="table")

    assert result.stdout.splitlines()[-1] == "0 pod(s): none to create"


@pytest.mark.parametrize(
    ("row", "verdict"),
    [
        pytest.param(Row("t1", "p", "pinned", node="n1"), Verdict.PLACED, id="pinned"),
        pytest.param(Row("t1", "p", "returned", node="n1", above_cap=True), Verdict.ABOVE_CAP, id="above the cap"),
        pytest.param(Row("t1", "p", "returned", node="n1"), Verdict.MAYBE_ABOVE_CAP, id="a sibling is unknown"),
        pytest.param(Row("t1", "p", "guarded", "ApiTrouble", known=False), Verdict.UNKNOWN, id="no owner"),
        pytest.param(Row("t1", "p", "returned-waiting"), Verdict.NOT_PLACED, id="waits for its data"),
        pytest.param(Row("t1", "p", "guarded", "NoSafeNode"), Verdict.NOT_PLACED, id="guarded"),
        pytest.param(Row("t1", "p", "denied", "NoSafeNode"), Verdict.NOT_PLACED, id="refused"),
        pytest.param(Row("t1", "p", "admitted", "NoSafeNode"), Verdict.NOT_PLACED, id="let in without a place"),
        pytest.param(Row("t1", "p", "unchanged", node="n1"), Verdict.PLACED, id="asked again, pinned"),
        pytest.param(Row("t1", "p", "unchanged"), Verdict.NOT_PLACED, id="asked again, guarded"),
        pytest.param(Row("t1", "p", "untouched", "SetOfOne"), Verdict.LEFT_ALONE, id="set of one"),
        pytest.param(Row("t1", "p", "untouched", "SkipOption"), Verdict.LEFT_ALONE, id="skip"),
        pytest.param(Row("t1", "p", "untouched", "TidbScheduler"), Verdict.NOT_PLACED, id="tidb-scheduler"),
        pytest.param(Row("t1", "p", "exists", node="n1"), Verdict.EXISTS, id="exists"),
    ],
)
def test_an_outcome_has_its_verdict(row: Row, verdict: Verdict):
    assert row.verdict is verdict
    assert verdict.value in summary([row])
    assert all_placed([row]) == (verdict in (Verdict.PLACED, Verdict.EXISTS))
    assert json.loads(as_json([row], ()))["pods"][0]["verdict"] == verdict.value
    left_alone = {Verdict.PLACED: 0, Verdict.EXISTS: 0, Verdict.UNKNOWN: 3}
    assert exit_code([row], ()) == left_alone.get(verdict, 1)


def test_a_refused_pod_shows_the_refusal(place: Place):
    wanted = a_set()
    wanted["metadata"]["annotations"] = {keys.PREFIX + keys.WHEN_UNPLACEABLE: "Deny"}
    pods = pods_of_set(wanted)
    for pod in pods:
        pod["metadata"]["annotations"] = {keys.PREFIX + keys.WHEN_UNPLACEABLE: "Deny"}

    answers = place.pods(a_cluster_with(wanted, nodes=("n1", "n2")), *pods)

    assert answers[2]["outcome"] == "denied"
    assert "is refused" in answers[2]["reason"]


# --- what the dump does not hold


def running(name: str = "db-tikv", *ordinals: int) -> list[Manifest]:
    """Members of a set that run, each on a node of its own, with the claims and volumes of all three."""
    pods = pods_of_set(a_set(name))
    found: list[Manifest] = []
    for ordinal, pod in enumerate(pods):
        claim = {"name": f"tikv-{name}-{ordinal}", "namespace": NAMESPACE, "labels": LABELS}
        found += [
            {
                "apiVersion": "v1",
                "kind": "PersistentVolumeClaim",
                "metadata": claim,
                "spec": {"volumeName": f"v{ordinal}"},
            },
            {"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": f"v{ordinal}"}, "spec": {}},
        ]
        if ordinal in ordinals:
            there = {**pod["spec"], "nodeName": f"n{ordinal + 1}"}
            found.append({**pod, "spec": there, "status": {"phase": "Running"}})
    return found


def without(objects: list[Manifest], *names: str) -> list[Manifest]:
    return [found for found in objects if found["metadata"]["name"] not in names and found["kind"] not in names]


def test_a_whole_dump_is_known(place: Place):
    result = place.plan(a_cluster_with(a_set(), *running("db-tikv", 0, 1, 2)), a_set(replicas=4))

    answer = json.loads(result.stdout)
    assert (answer["known"], answer["allPlaced"], answer["warnings"]) == (True, True, [])
    assert (result.exit_code, result.stderr) == (0, "")


@pytest.mark.parametrize("kind", ["Pod", "Node"])
def test_without_pods_or_nodes_nothing_is_known(place: Place, kind: str):
    result = place.plan(without(a_cluster_with(a_set(), *running("db-tikv", 0, 1, 2)), kind), a_set(replicas=4))

    answer = json.loads(result.stdout)
    assert (answer["known"], answer["allPlaced"], result.exit_code) == (False, False, 3)
    assert answer["warnings"][0].startswith(f"the dump holds no {kind}; is it complete?")
    assert result.stderr.startswith(f"Warning: the dump holds no {kind}; is it complete?")


@pytest.mark.parametrize(
    ("gone", "there", "said"),
    [
        pytest.param(
            ("PersistentVolumeClaim",),
            (0, 1, 2),
            "PersistentVolumeClaim t1/tikv-db-tikv-0, which db-tikv-0 has, is not in the dump (and 2 more such)",
            id="claims of members that are there",
        ),
        pytest.param(
            ("tikv-db-tikv-1",),
            (0, 2),
            "PersistentVolumeClaim t1/tikv-db-tikv-1, which db-tikv-1 has, is not in the dump",
            id="claim of a member that is restarted",
        ),
        pytest.param(
            ("v1",), (0, 2), "PersistentVolume v1, on which data of db-tikv-1 is, is not in the dump", id="volume of it"
        ),
    ],
)
@pytest.mark.parametrize("by", ["set", "pod", "review"])
def test_data_that_a_member_certainly_has_and_that_is_not_there_makes_the_answer_unknown(
    place: Place, gone: tuple[str, ...], there: tuple[int, ...], said: str, by: str
):
    pod = pods_of_set(a_set())[1]
    wanted = {"set": a_set(), "pod": pod, "review": pod}[by]
    write(place.dump, *without(a_cluster_with(a_set(), *running("db-tikv", *there)), *gone))
    if by == "review":
        place.file.write_text(json.dumps(review_of(pod, namespace=NAMESPACE, uid="u")))
    else:
        write(place.file, wanted)

    result = run("--cluster", place.dump, "-f", place.file)

    assert result.exit_code == 3
    assert f"Warning: {said}: where its data is, and so where it must be, is not known" in result.stderr.splitlines()
    assert "the dump lacks what this rests on, see the warnings" in result.stdout.splitlines()[-1]


def test_a_member_that_has_never_been_has_no_data_to_miss(place: Place):
    dump = a_cluster_with(a_set(replicas=1), *running("db-tikv", 0))

    result = place.plan(without(dump, "tikv-db-tikv-1", "tikv-db-tikv-2", "v1", "v2"), a_set(replicas=3))

    assert (result.exit_code, result.stderr) == (0, "")


def test_a_set_that_says_that_it_had_pods_has_their_data(place: Place):
    had = {**a_set(), "status": {"replicas": 2}}

    result = place.plan(a_cluster_with(had), a_set())

    assert result.exit_code == 3
    assert "t1/tikv-db-tikv-0, which db-tikv-0 has, is not in the dump (and 1 more such)" in result.stderr


def test_of_a_set_whose_pods_cannot_be_made_nothing_is_missed(place: Place):
    result = place.plan(a_cluster_with(a_set(replicas="six")), pods_of_set(a_set())[0])

    assert "where its data is" not in result.stderr


def test_a_set_that_is_left_alone_has_no_data_that_matters(place: Place):
    other = a_set("web", labels={"app": "web"})

    assert place.plan(a_cluster_with({**other, "status": {"replicas": 3}}), other, a_set()).exit_code == 0


def test_a_pod_whose_set_is_not_there_cannot_be_known(place: Place):
    result = place.plan(a_cluster_with(), pods_of_set(a_set())[0])

    (answer,) = json.loads(result.stdout)["pods"]
    assert (answer["verdict"], result.exit_code) == ("not known", 3)
    assert answer["reason"] == "StatefulSet t1/db-tikv is not in the dump; add it, or give it with -f"
    assert answer["warnings"] == []


def test_a_pod_of_v2_whose_group_is_not_there_cannot_be_known(place: Place):
    pod = a_plain_pod("kv-tikv-x")
    pod["metadata"]["labels"] = {
        keys.V2_MANAGED_BY: keys.TIDB_OPERATOR,
        keys.V2_CLUSTER: "db",
        keys.V2_COMPONENT: "tikv",
    }
    owner = {"apiVersion": "core.pingcap.com/v1alpha1", "kind": "TiKV", "name": "kv-x", "uid": "u", "controller": True}
    pod["metadata"]["ownerReferences"] = [owner]
    claim = {"name": "data", "namespace": NAMESPACE, "labels": pod["metadata"]["labels"]}

    result = place.plan(
        a_cluster_with({"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": claim, "spec": {}}), pod
    )

    (answer,) = json.loads(result.stdout)["pods"]
    assert answer["reason"] == "no TiKVGroup and no TiKV of t1/db/tikv is in the dump; add them"
    assert result.exit_code == 3


@pytest.mark.parametrize(
    ("namespace", "said"),
    [
        (
            "t2",
            "StatefulSet db-tikv is of namespace t2, and nothing in the dump is; StatefulSet db-tikv is in t1; is the",
        ),
        (None, "StatefulSet db-tikv names no namespace, so default is taken; one of that name is in t1: name the name"),
    ],
)
def test_a_set_that_is_perhaps_meant_for_another_namespace_is_asked_about(
    place: Place, namespace: str | None, said: str
):
    wanted = a_set()
    wanted["metadata"] = {"name": "db-tikv", **({"namespace": namespace} if namespace else {})}

    result = place.plan(a_cluster_with(a_set()), wanted)

    assert result.stderr.startswith(f"Warning: {said}")


def test_a_name_that_is_nowhere_else_is_only_told_its_namespace(place: Place):
    wanted, pod = a_set("new"), a_plain_pod("web-1")
    wanted["metadata"] = {"name": "new", "namespace": "t2"}
    del pod["metadata"]["namespace"]

    assert place.plan(a_cluster_with(), wanted, pod).stderr.splitlines() == [
        "Warning: StatefulSet new is of namespace t2, and nothing in the dump is; is the name right?",
        "Warning: Pod web-1 names no namespace, so default is taken",
    ]


def test_options_on_a_set_of_v1_are_told_to_be_of_no_effect(place: Place):
    wanted = a_set()
    wanted["metadata"]["annotations"] = {keys.PREFIX + keys.PLACEMENT: "Guard", "other": "x"}

    result = place.plan(a_cluster_with(), wanted)

    assert result.stderr == (
        "Warning: annotation tidb-ha-webhook.io/placement of StatefulSet db-tikv is not read there: options of "
        "tidb-operator v1 stand on the TidbCluster or DMCluster\n"
    )


# --- what is said of the answers


def test_each_warning_is_said_once_with_the_pods_that_it_is_about(place: Place):
    wanted = a_set(replicas=5)
    wanted["spec"]["template"]["metadata"]["annotations"] = {keys.PREFIX + "skipp": "true"}

    result = place.plan(a_cluster_with(), wanted)

    assert result.stderr == (
        "Warning: db-tikv-0, db-tikv-1, db-tikv-2 and 2 more of t1/db/tikv: annotation tidb-ha-webhook.io/skipp of the "
        "pod is no option: is skip meant?\n"
    )
    assert json.loads(result.stdout)["pods"][0]["warnings"] == [
        "annotation tidb-ha-webhook.io/skipp of the pod is no option: is skip meant?"
    ]


def test_a_warning_about_a_pod_of_no_group_names_its_namespace():
    row = Row("t1", "web", "untouched", "NotAMember", warnings=("x is y",))

    assert list(warnings_of([row, row])) == ["web, web in t1: x is y"]


def test_a_member_that_goes_back_above_the_cap_is_not_called_placed(place: Place):
    affinity = {"key": keys.HOSTNAME, "operator": "In", "values": ["n1"]}
    dump = a_cluster_with(a_set(), *running("db-tikv", 0, 2))
    for found in dump:
        if found["kind"] == "PersistentVolumeClaim":
            found["status"] = {"phase": "Bound"}
        if found["kind"] == "PersistentVolume" and found["metadata"]["name"] == "v1":
            found["spec"] = {"nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": [affinity]}]}}}

    result = place.plan(dump, a_set(), output="table")

    assert result.exit_code == 1
    assert result.stdout.splitlines()[-1] == "3 pod(s): 1 above the cap, 2 exists"
    assert "its data is in domain n1 only, so it goes back: now 2 of 1" in result.stdout


@pytest.mark.parametrize(
    ("option", "outcome", "reason"),
    [
        ({keys.SKIP: "true"}, "untouched", "the option skip is set (annotation tidb-ha-webhook.io/skip of the pod)"),
        (
            {keys.PLACEMENT: "Guard"},
            "guarded",
            "the option placement is Guard (annotation tidb-ha-webhook.io/placement of the pod)",
        ),
    ],
    ids=["skip", "placement"],
)
def test_an_option_is_named_as_the_reason_with_the_object_that_has_it(
    place: Place, option: dict[str, str], outcome: str, reason: str
):
    wanted = a_set()
    wanted["spec"]["template"]["metadata"]["annotations"] = {
        keys.PREFIX + name: value for name, value in option.items()
    }

    pods = place.pods(a_cluster_with(), wanted)

    assert {(pod["outcome"], pod["reason"]) for pod in pods} == {(outcome, reason)}


def test_a_pod_that_carries_a_decision_already_has_a_reason_too(place: Place):
    (pinned,) = place.pods(a_cluster_with(a_set()), pods_of_set(a_set())[0])
    assert pinned["outcome"] == "pinned"

    wanted = a_set()
    wanted["spec"]["template"]["spec"]["schedulerName"] = keys.TIDB_SCHEDULER
    (first, *_) = place.pods(a_cluster_with(), wanted)

    assert first["reason"].startswith("is left alone: its schedulerName is tidb-scheduler")


def test_a_decisive_doubt_alone_makes_everything_unknown():
    rows = [Row("t1", "p", "pinned", node="n1")]

    assert [exit_code(rows, doubts) for doubts in ((), (Doubt("x"),), (Doubt("x"), Doubt("y", decisive=True)))] == [
        0,
        0,
        3,
    ]


# --- bad input


@pytest.mark.parametrize(
    ("text", "words"),
    [
        pytest.param("", ("no Pod, StatefulSet or AdmissionReview",), id="empty"),
        pytest.param("---\n---\n", ("no Pod, StatefulSet or AdmissionReview",), id="empty documents"),
        pytest.param("kind: [", ("document 1", "cannot be read as YAML", "line"), id="broken YAML"),
        pytest.param('{"kind": ', ("cannot be read as JSON",), id="broken JSON"),
        pytest.param("a plain sentence", ("document 1", "must be an object"), id="text"),
        pytest.param("kind: Pod", ("document 1", "apiVersion: must be a string"), id="no apiVersion"),
        pytest.param("apiVersion: v1\nkind: Pod\nmetadata: 3", ("metadata: must be an object",), id="metadata"),
        pytest.param("apiVersion: v1\nkind: Pod\nmetadata: {}", ("metadata.name: missing",), id="no name"),
        pytest.param(
            "apiVersion: v1\nkind: Pod\nmetadata: {name: a}\n---\napiVersion: v1\nkind: Pod\nmetadata: {name: a}",
            ("document 2 (Pod a)", "given already in", "document 1 (Pod a)"),
            id="twice",
        ),
        pytest.param(
            "apiVersion: v1\nkind: Node\nmetadata: {name: n1}",
            ("(Node n1)", "is a Node of v1", "only Pod, StatefulSet and AdmissionReview"),
            id="another kind",
        ),
        pytest.param(
            "apiVersion: apps.kruise.io/v1\nkind: StatefulSet\nmetadata: {name: s}",
            ("is a StatefulSet of apps.kruise.io/v1",),
            id="another set",
        ),
        pytest.param(
            "apiVersion: apps/v1\nkind: StatefulSet\nmetadata: {name: s}",
            ("(StatefulSet s)", "spec.template.spec: must be an object"),
            id="no template",
        ),
        pytest.param(
            "apiVersion: admission.k8s.io/v1\nkind: AdmissionReview\nrequest: {uid: u}",
            ("document 1", "request.operation"),
            id="half a review",
        ),
        pytest.param(
            "apiVersion: v1\nkind: Pod\nmetadata: {name: a}\nspec: {x: .nan}",
            ("(Pod a)", "NaN is not JSON"),
            id="not a number",
        ),
        pytest.param(
            "apiVersion: v1\nkind: Pod\nmetadata: {name: a}\nspec: {x: !!binary aGk=}",
            ("(Pod a)", "cannot be written as JSON"),
            id="binary",
        ),
        pytest.param(b"\xff\xfe", ("is not UTF-8 text (byte 0)",), id="bytes"),
    ],
)
@pytest.mark.parametrize("by", ["file", "standard input"])
def test_rubbish_is_one_clear_line_and_exit_code_1(tmp_path: Path, text: str | bytes, words: tuple[str, ...], by: str):
    dump = write(tmp_path / "dump.json", *a_cluster_with())
    file = tmp_path / "pods.yaml"
    raw = text if isinstance(text, bytes) else text.encode()
    file.write_bytes(raw)

    result = run("--cluster", dump, "-f", file) if by == "file" else run("--cluster", dump, "-f", "-", stdin=raw)

    assert result.exit_code == 1
    (line,) = result.stderr.splitlines()
    assert line.startswith(f"Error: {file if by == 'file' else 'standard input'}")
    assert [word for word in words if word not in line] == []


@pytest.mark.parametrize(
    ("objects", "words"),
    [
        pytest.param([a_node("n1"), a_node("n1")], ("items[1] (Node n1)", "given already in"), id="duplicates"),
        pytest.param([{"kind": "Node"}], ("items[0]", "apiVersion"), id="field"),
        pytest.param([], ("holds no object",), id="empty"),
    ],
)
def test_a_dump_that_cannot_be_used_is_one_clear_line(place: Place, objects: list[Manifest], words: tuple[str, ...]):
    result = place.plan(objects, a_set())

    assert result.exit_code == 1
    assert [word for word in (f"Error: {place.dump}", *words) if word not in result.stderr] == []
    assert "Traceback" not in result.output


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        pytest.param((), "--cluster", id="nothing"),
        pytest.param(("--cluster", "."), "--filename", id="no file"),
        pytest.param(("--cluster", "/no/such", "-f", "-"), "/no/such", id="no such dump"),
        pytest.param(("--cluster", ".", "-f", "/no/such"), "/no/such", id="no such file"),
        pytest.param(("--cluster", ".", "-f", "-", "-o", "xml"), "'xml'", id="format"),
        pytest.param(
            ("--cluster", ".", "-f", "-", "--other-schedulers", "tidb-scheduler"), "tidb-scheduler", id="setting"
        ),
    ],
)
def test_a_wrong_flag_is_exit_code_2(arguments: tuple[str, ...], word: str):
    result = run(*arguments)

    assert result.exit_code == 2
    assert word in result.stderr


def test_what_is_left_out_of_the_dump_is_said_on_standard_error(place: Place):
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s", "namespace": NAMESPACE}}

    result = place.plan(a_cluster_with(secret), a_set())

    assert "1 Secret" in result.stderr
    assert result.exit_code == 0


def test_a_name_that_makes_those_of_pods_or_claims_too_long_is_refused(place: Place):
    of_pods = place.plan(a_cluster_with(), a_set("s" * 253, claims=()))
    of_claims = place.plan(a_cluster_with(), a_set("s" * 251, replicas=11))

    assert (of_pods.exit_code, of_claims.exit_code) == (1, 1)
    end = "s" * 18
    assert f"the name of a pod of it, ..{end}-0, would have 255 characters; 253 are the most" in of_pods.stderr
    assert f"the name of a claim of it, ..{end}-0, would have 258 characters; 253 are the most" in of_claims.stderr


def test_an_amount_that_cannot_be_read_is_named_wherever_it_stands(place: Place):
    wanted = a_set()
    wanted["spec"]["template"]["spec"]["containers"][0]["resources"]["requests"]["cpu"] = "4 cores"
    review = review_of(pods_of_set(wanted)[0], namespace=NAMESPACE, uid="u")
    field = 'spec.containers[0].resources.requests.cpu: "4 cores" cannot be read; write it as in 4, 500m or 16Gi'

    by_set, by_pod = place.plan(a_cluster_with(), wanted), place.plan(a_cluster_with(), pods_of_set(wanted)[0])
    place.file.write_text(json.dumps(review))
    by_review = run("--cluster", place.dump, "-f", place.file)

    assert [result.exit_code for result in (by_set, by_pod, by_review)] == [1, 1, 1]
    assert f"(StatefulSet db-tikv): spec.template.{field}" in by_set.stderr
    assert f"(Pod db-tikv-0): {field}" in by_pod.stderr
    assert f"document 1, request.object: {field}" in by_review.stderr


# --- odd clusters


def test_a_pod_that_owns_twenty_claims_is_placed(place: Place):
    claims = tuple(f"data{number}" for number in range(20))

    assert place.plan(a_cluster_with(), a_set(claims=claims)).exit_code == 0


def test_names_of_253_characters_are_placed_and_shown_whole(place: Place):
    # With which the claims, tikv-…-0, have 253.
    name = "s" * 246
    nodes = tuple(f"{'n' * 252}{number}" for number in range(3))

    result = place.plan(a_cluster_with(nodes=nodes), a_set(name), output="table")

    assert result.exit_code == 0
    assert result.stdout.count("s") >= 3 * len(name)
    pods = place.pods(a_cluster_with(nodes=nodes), a_set(name))
    assert sorted(nodes_of(pods)) == sorted(nodes)


def test_nodes_without_labels_are_passed_over(place: Place):
    bare = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "bare"}}
    unlabelled = a_node("unlabelled", labels=None)

    pods = place.pods(a_cluster_with(bare, unlabelled), a_set())

    assert sorted(nodes_of(pods)) == ["n1", "n2", "n3"]


def test_claims_without_a_class_are_no_obstacle(place: Place):
    template = {"metadata": {"name": "tikv"}, "spec": {"resources": {"requests": {"storage": "1Gi"}}}}

    result = place.plan(a_cluster_with(), a_set(volumeClaimTemplates=[template]))

    assert len(json.loads(result.stdout)["pods"]) == 3
    assert "Traceback" not in result.output


def test_ten_thousand_nodes_are_read_and_decided_on(place: Place):
    nodes = tuple(f"n{number}" for number in range(10_000))

    pods = place.pods(a_cluster_with(nodes=nodes), a_set())

    assert len(set(nodes_of(pods)) & set(nodes)) == 3


def test_annotations_full_of_rubbish_do_not_matter(place: Place):
    rubbish = {keys.LOCK: "{", keys.ENTRY_PREFIX + "x": "[]"}
    claim = {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {
            "name": "tikv-db-tikv-0",
            "namespace": NAMESPACE,
            "labels": LABELS,
            "annotations": rubbish,
        },
        "spec": {"storageClassName": CLASS},
    }
    wanted = a_set()
    wanted["spec"]["template"]["metadata"]["annotations"] = {keys.DECISION: "{", keys.ASSIGNED_NODE: "nowhere"}

    pods = place.pods(a_cluster_with(claim), wanted)

    assert sorted(nodes_of(pods)) == ["n1", "n2", "n3"]


ROWS = (
    Row("t1", "db-tikv-0", "pinned", node="ip-10-0-1-17.eu-west-1.compute.internal", cap=1, reason="it is " * 20),
    Row("t1", "db-tikv-1", "guarded", "NoSafeNode", reason="no room"),
)


def shown_on_a_terminal(width: int) -> list[str]:
    stream = io.StringIO()
    console = Console(file=stream, width=width, force_terminal=True, color_system=None, highlight=False)
    print_table(ROWS, (), console)
    return stream.getvalue().splitlines()


def test_a_wide_terminal_has_a_table_whose_reasons_alone_are_wrapped():
    lines = shown_on_a_terminal(110)

    assert max(map(len, lines)) <= 110
    assert lines[0].split() == ["POD", "OUTCOME", "NODE", "CAP", "REASON"]
    assert lines[1].split()[:4] == ["t1/db-tikv-0", "pinned", ROWS[0].node, "1"]
    assert " ".join(line[80:].strip() for line in lines[1:6]).count("it is") == 20


@pytest.mark.parametrize("width", [80, 20, 1])
def test_a_narrow_terminal_has_a_paragraph_for_each_pod_in_which_no_name_is_broken(width: int):
    assert shown_on_a_terminal(width) == [
        f"t1/db-tikv-0: pinned, node {ROWS[0].node}, cap 1",
        f"  {ROWS[0].reason}",
        "t1/db-tikv-1: guarded (NoSafeNode), node -, cap -",
        "  no room",
        "2 pod(s): 1 placed, 1 not placed",
    ]


@pytest.mark.parametrize("columns", ["1", "20", "40"])
def test_where_there_is_no_terminal_each_pod_is_one_line(tmp_path: Path, columns: str):
    dump = write(tmp_path / "dump.json", *a_cluster_with())
    file = write(tmp_path / "pods.json", a_set())

    result = run("--cluster", dump, "-f", file, COLUMNS=columns)

    assert len(result.stdout.splitlines()) == 5
    assert "holds 0 member(s), at most 1" in result.stdout.splitlines()[1]
    assert result.stdout.isascii()
    assert result.stdout == "".join(line.rstrip() + "\n" for line in result.stdout.splitlines())
