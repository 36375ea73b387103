"""`audit`: as a table, as JSON, and as a page; exit codes; and what cannot be judged."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from cluster_objects import (
    SPACE,
    a_cluster,
    a_generic_pod,
    a_node,
    a_pod,
    a_set,
    a_v1_world,
    claims,
    generic_world,
    labels_v1,
    with_floor,
)
from operating.asked import connected, dump, run
from rich.console import Console
from stand import Stand

from webhook.cluster.door import NODES, PODS
from webhook.core import keys
from webhook.operating.audit_page import page_of
from webhook.operating.audit_text import print_table
from webhook.operating.auditing import read_report
from webhook.operating.picture import MOST_COLUMNS, sheets_of


def running(stand: Stand, name: str, node: str, pod: dict[str, Any] | None = None) -> None:
    """A member that nobody was asked about runs on a node."""
    stand.cluster.admit(pod or a_pod(name), namespace=SPACE)
    stand.bind(name, node)
    stand.patch(PODS, name, {"status": {"conditions": [{"type": "Ready", "status": "True"}]}})


def placed(stand: Stand, *names: str) -> Stand:
    """The members are placed by the webhook, and run."""
    for name in names:
        node = stand.admit(a_pod(name)).node
        stand.bind(name, node)
        stand.patch(PODS, name, {"status": {"conditions": [{"type": "Ready", "status": "True"}]}})
    return stand


def well() -> Stand:
    return placed(Stand(*a_v1_world(3, "pd")), "db-pd-0", "db-pd-1", "db-pd-2")


def stacked() -> Stand:
    stand = Stand(*a_v1_world(3, "pd"))
    for number, node in enumerate(("n1", "n1", "n2")):
        running(stand, f"db-pd-{number}", node)
    return stand


def audited(tmp_path: Path, stand: Stand, *arguments: str) -> Any:
    return run("audit", "--cluster", dump(tmp_path / "dump.json", stand.cluster), *arguments, COLUMNS="150")


def words(text: str) -> str:
    return " ".join(text.split())


def test_a_set_whose_class_is_none_is_audited_and_its_class_named(tmp_path: Path):
    stand = Stand(*generic_world())
    for ordinal in range(3):
        running(stand, f"raft-{ordinal}", f"n{ordinal + 1}", stand.review(a_generic_pod(ordinal, "quorumm")).pod)

    result = audited(tmp_path, stand)

    assert "shop/raft/quorum 3/3" in words(result.stdout)
    assert f'note: OptionProblem: the label {keys.CLASS_LABEL} is "quorumm"' in words(result.stdout)
    assert result.exit_code == 0


def test_where_all_is_well_the_exit_code_is_0(tmp_path: Path):
    result = audited(tmp_path, well())

    assert result.exit_code == 0
    assert "shop/db/pd 3/3 1 n1: 1 survives the loss of 1 node" in words(result.stdout)
    assert result.stdout.splitlines()[-1] == "1 group: all as they should be"


def test_a_breach_is_told_with_its_members_and_exit_code_1(tmp_path: Path):
    result = audited(tmp_path, stacked())

    assert result.exit_code == 1
    assert "breach: Stacked: node n1 holds 2 members (db-pd-0, db-pd-1), at most 1 may be there" in words(result.stdout)
    assert "note: NeverPassed: never passed the webhook: db-pd-0, db-pd-1, db-pd-2" in words(result.stdout)
    assert result.stdout.splitlines()[-1] == "1 group: 1 with breaches"


def test_what_is_piped_has_each_thing_on_one_line_with_its_group(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delenv("COLUMNS", raising=False)
    piped = StringIO()

    print_table(read_report(connected(stacked())), Console(file=piped))

    lines = piped.getvalue().splitlines()
    said = "breach: Stacked: node n1 holds 2 members (db-pd-0, db-pd-1), at most 1 may be there"
    assert f"shop/db/pd  {said}" in lines


def test_groups_with_breaches_come_first(tmp_path: Path):
    stand = Stand(*a_v1_world(3, "pd"), a_set("pd", cluster="aa"), *claims(3, "pd", "aa"))
    for number, node in enumerate(("n1", "n1", "n2")):
        running(stand, f"db-pd-{number}", node)
        name = f"aa-pd-{number}"
        running(stand, name, f"n{number + 1}", a_pod(name, labels=labels_v1("pd", "aa")))

    lines = [line for line in audited(tmp_path, stand).stdout.splitlines() if line.startswith("shop/")]

    assert [line.split()[0] for line in lines] == ["shop/db/pd", "shop/aa/pd"]


def test_json_has_everything_in_it(tmp_path: Path):
    result = audited(tmp_path, stacked(), "-o", "json")

    told = json.loads(result.stdout)
    (group,) = told["groups"]
    assert (result.exit_code, told["allWell"], told["summary"]) == (1, False, "1 group: 1 with breaches")
    assert (group["group"], group["replicas"], group["running"], group["cap"]) == ("shop/db/pd", 3, 3, 1)
    assert group["counts"] == {"n1": 2, "n2": 1}
    assert group["margins"][0] == {
        "topologyKey": keys.HOSTNAME,
        "domain": "node",
        "domainsInUse": 2,
        "survives": 0,
        "survivesIfIsolated": 0,
        "isolation": None,
    }
    assert group["members"][0] == {"name": "db-pd-0", "node": "n1", "domain": "n1", "running": True}
    assert {"Stacked", "NoMargin", "NeverPassed"} == {finding["kind"] for finding in group["findings"]}
    assert told["notJudged"] == []


def test_what_pd_would_have_to_do_is_named_in_json(tmp_path: Path):
    stand = placed(Stand(*a_v1_world(6)), *(f"db-tikv-{number}" for number in range(6)))

    (group,) = json.loads(audited(tmp_path, stand, "-o", "json").stdout)["groups"]

    assert group["margins"][0]["isolation"] == "not-checked"
    assert group["margins"][0]["survivesIfIsolated"] == 1
    assert group["survives"] == "survives the loss of 0 nodes (1 if PD isolates by host: not checked)"


def test_a_group_without_owner_cannot_be_judged_and_is_no_success(tmp_path: Path):
    stand = Stand(a_node("n1"))
    running(stand, "db-tikv-0", "n1")

    result = audited(tmp_path, stand)

    assert result.exit_code == 1
    assert "breach: cannot be judged: what its owners want is not known" in words(result.stdout)
    assert result.stdout.splitlines()[-1] == "1 group: 1 that could not be judged"
    assert json.loads(audited(tmp_path, stand, "-o", "json").stdout)["notJudged"][0]["group"] == "shop/db/tikv"


def test_both_kinds_of_trouble_are_in_the_summary():
    stand = stacked()
    running(stand, "xx-tikv-0", "n1", a_pod("xx-tikv-0", labels=labels_v1(cluster="xx")))

    assert read_report(connected(stand)).summary == "2 groups: 1 with breaches and 1 that could not be judged"


def test_only_the_namespace_that_was_asked_for_is_audited(tmp_path: Path):
    assert "shop/db/pd" in audited(tmp_path, stacked(), "-n", SPACE).stdout
    assert "shop/db/pd" in audited(tmp_path, stacked()).stdout


def test_a_namespace_that_is_not_there_gets_near_matches(tmp_path: Path):
    result = audited(tmp_path, stacked(), "-n", "shp")

    assert result.exit_code == 2
    assert "there is no namespace 'shp'; did you mean shop?" in result.stderr


def test_a_namespace_without_groups_is_fine(tmp_path: Path):
    stand = Stand(a_node("n1"), a_set(replicas=0))

    result = audited(tmp_path, stand, "-n", SPACE)

    assert (result.exit_code, result.stdout.startswith("no group was found")) == (0, True)


def test_an_empty_cluster_is_a_sentence(tmp_path: Path):
    for output in ("table", "json", "html"):
        result = audited(tmp_path, Stand(a_node("n1")), "-o", output)

        assert result.exit_code == 0
        assert "no group was found" in result.stdout


# --- the page


class Page(HTMLParser):
    """What a page refers to, and the marks on it."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.references: list[str] = []
        self.marks: list[tuple[str, str]] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        self.tags.append(tag)
        self.references += [str(given[name]) for name in ("src", "href", "action") if name in given]
        if tag == "span" and "role" in given:
            self.marks.append((str(given["class"]), str(given["title"])))


def html_of(stand: Stand) -> str:
    return page_of(read_report(connected(stand)), "the cluster <x>")


def test_the_page_needs_nothing_from_anywhere():
    text = html_of(stacked())
    page = Page(text)

    assert page.references == []
    assert not {"script", "link", "img", "iframe"} & set(page.tags)
    assert "default-src 'none'" in text
    assert not re.search(r"url\(|@import|https?://", text)


def test_the_page_shows_members_as_marks_and_breaches_red():
    text = html_of(stacked())

    assert Page(text).marks == [("mark running", f"db-pd-{number}: running") for number in range(3)]
    assert text.count('class="place stacked"') == 1
    assert '<span class="count">2</span>' in text
    assert '<tr class="breach">' in text
    assert "at most 1 may be there" in text


def test_the_page_of_a_cluster_that_is_well_has_nothing_red():
    text = html_of(well())

    assert 'class="well"' in text
    assert 'class="place stacked"' not in text
    assert '<tr class="breach">' not in text


def test_the_page_tells_members_apart():
    stand = Stand(*a_v1_world(4, "pd"))
    running(stand, "db-pd-0", "n1", with_floor(a_pod("db-pd-0", labels=labels_v1("pd"))))
    stand.cluster.admit(a_pod("db-pd-1"), namespace=SPACE)
    running(stand, "db-pd-7", "n2")

    marks = dict(reversed(mark) for mark in Page(html_of(stand)).marks)  # type: ignore[misc]

    assert marks["db-pd-1: waiting"] == "mark waiting"
    assert marks["db-pd-7: unwanted"] == "mark unwanted"
    assert marks["a member without a pod: missing"] == "mark missing"


def test_what_others_have_written_cannot_become_markup():
    stand = Stand(a_node("n1", zone="<b>zone</b>"), a_set("pd", 1), *claims(1, "pd"), a_cluster(skip="<i>"))
    running(stand, "db-pd-0", "n1")

    text = html_of(stand)

    assert "<b>" not in text
    assert "<i>" not in text
    assert "&lt;b&gt;zone&lt;/b&gt;" in text
    assert "the cluster &lt;x&gt;" in text


def test_nodes_are_ordered_by_zone_and_unusable_ones_are_marked():
    stand = Stand(a_node("n1", zone="z2"), a_node("n2", zone="z1"), a_node("n3"), *a_v1_world(1, "pd", node_count=0))
    running(stand, "db-pd-0", "n1")
    stand.patch(NODES, "n2", {"spec": {"unschedulable": True}})

    (sheet,) = sheets_of(read_report(connected(stand)))

    assert [(column.name, column.usable) for column in sheet.columns] == [("n3", True), ("n2", False), ("n1", True)]
    assert sheet.zones == (("no zone", 1), ("z1", 1), ("z2", 1))


def test_on_many_nodes_each_cluster_has_a_table_of_its_own():
    many = [a_node(f"m{number:03}") for number in range(MOST_COLUMNS)]
    stand = Stand(*many, *a_v1_world(3, "pd"), *generic_world()[3:])
    running(stand, "db-pd-0", "n1")
    running(stand, "db-pd-1", "gone")

    report = read_report(connected(stand))
    sheets = sheets_of(report)

    assert [(sheet.title, [column.name for column in sheet.columns]) for sheet in sheets] == [("shop/db", ["n1"])]
    assert "db-pd-1: waiting" in page_of(report, "it")
    assert "<h2>shop/db</h2>" in page_of(report, "it")


@pytest.mark.parametrize("missing", ["PersistentVolume", "StorageClass"])
def test_a_dump_without_some_kinds_is_audited_all_the_same(tmp_path: Path, missing: str):
    path = dump(tmp_path / "dump.json", stacked().cluster)
    listed = json.loads(path.read_text())
    listed["items"] = [found for found in listed["items"] if found["kind"] != missing]
    path.write_text(json.dumps(listed))

    result = run("audit", "--cluster", path)

    assert result.exit_code == 1
    assert "Note: the dump holds no " in result.stderr
