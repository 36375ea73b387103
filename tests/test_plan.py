"""`plan`: what would be answered for pods, in sequence, without a server; bad input; exit codes."""

from __future__ import annotations

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

from webhook.cli import main
from webhook.core import keys
from webhook.embedded.reviews import review_of
from webhook.planning.plan import Row, Verdict, all_placed
from webhook.planning.report import as_json, summary
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
    assert result.stderr.startswith("Warning: db-tikv-2 of t1/db/tikv waits apart from its siblings: ")


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


def test_a_generic_pod_without_its_set_is_not_placed(place: Place):
    pod = pods_of_set(a_set("raft", labels={keys.CLASS_LABEL: "quorum"}))[0]

    result = place.plan(a_cluster_with(), pod)

    (answer,) = json.loads(result.stdout)["pods"]
    assert (answer["cause"], answer["verdict"]) == ("UnusableSelector", "not placed")
    assert "StatefulSet raft was not found" in answer["reason"]
    assert result.exit_code == 1


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
        pytest.param(Row("t1", "p", "returned", node="n1"), Verdict.PLACED, id="returned"),
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
    assert json.loads(as_json([row]))["pods"][0]["verdict"] == verdict.value


def test_a_refused_pod_shows_the_refusal(place: Place):
    wanted = a_set()
    wanted["metadata"]["annotations"] = {keys.PREFIX + keys.WHEN_UNPLACEABLE: "Deny"}
    pods = pods_of_set(wanted)
    for pod in pods:
        pod["metadata"]["annotations"] = {keys.PREFIX + keys.WHEN_UNPLACEABLE: "Deny"}

    answers = place.pods(a_cluster_with(wanted, nodes=("n1", "n2")), *pods)

    assert answers[2]["outcome"] == "denied"
    assert "is refused" in answers[2]["reason"]


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


def test_the_table_fits_a_narrow_terminal_without_losing_a_word(tmp_path: Path):
    dump = write(tmp_path / "dump.json", *a_cluster_with())
    file = write(tmp_path / "pods.json", a_set())

    result = run("--cluster", dump, "-f", file, COLUMNS="40")

    assert max(map(len, result.stdout.splitlines())) <= 40
    assert "…" not in result.stdout
    assert "t1/db-tikv-2" in "".join(line[:9].strip() for line in result.stdout.splitlines())
    assert result.stdout.isascii()
