"""Dumps as `kubectl get` prints them, and what is said of those that cannot be used."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from webhook.cluster.door import NODES, PODS
from webhook.cluster.dump import Dump, load
from webhook.cluster.memory import MemoryCluster
from webhook.errors import DumpError, SettingsError

NODE = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n1"}}
POD = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "namespace": "t"}}
CONFIG_MAP = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}}

Write = Callable[..., Path]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """A function that writes a file of text, or of a value as JSON, and gives its path."""

    def write_file(content: object, name: str = "dump.yaml") -> Path:
        path = tmp_path / name
        path.write_text(content if isinstance(content, str) else json.dumps(content), encoding="utf-8")
        return path

    return write_file


def names(dump: Dump) -> list[str]:
    return [found["metadata"]["name"] for found in dump.objects]


def a_list(*items: Any, kind: str = "List") -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": kind, "metadata": {"resourceVersion": ""}, "items": list(items)}


@pytest.mark.parametrize("print_as", [json.dumps, yaml.safe_dump], ids=["json", "yaml"])
def test_what_kubectl_prints_becomes_a_cluster(write: Write, print_as: Callable[[object], str]) -> None:
    cluster = MemoryCluster(load(write(print_as(a_list(NODE, POD)))).objects)
    assert len(cluster.list(NODES, timeout=1).items) == 1
    assert cluster.get(PODS, "p", namespace="t", timeout=1)["kind"] == "Pod"


def test_a_file_may_hold_several_documents(write: Write) -> None:
    text = "---\n" + "\n---\n".join(yaml.safe_dump(each) for each in (NODE, POD)) + "---\n---\n# nothing\n"
    assert names(load(write(text))) == ["n1", "p"]


def test_a_file_may_hold_several_json_documents(write: Write) -> None:
    assert names(load(write(f" {json.dumps(NODE)}\n{json.dumps(a_list(POD))}\n", "dump.json"))) == ["n1", "p"]


def test_a_file_may_begin_with_a_byte_order_mark(write: Write) -> None:
    assert names(load(write("\ufeff" + json.dumps(NODE)))) == ["n1"]


def test_a_directorys_files_are_read_in_order_of_their_names(write: Write, tmp_path: Path) -> None:
    write(POD, "b.yml")
    write(NODE, "a.json")
    write("not read", ".hidden.yaml")
    write("not read", "notes.txt")
    dump = load(tmp_path)
    assert names(dump) == ["n1", "p"]
    assert dump.notes == (f"{tmp_path}/notes.txt: not read, its name ends in none of .yaml, .yml, .json",)


def test_the_items_of_a_typed_list_get_its_kind(write: Write) -> None:
    item = {"metadata": {"name": "n1"}}
    assert load(write(a_list(item, kind="NodeList"))).objects == ({"apiVersion": "v1", "kind": "Node", **item},)


@pytest.mark.parametrize(
    "empty", [{"kind": "List"}, {"kind": "List", "items": None}, {"kind": "PodList", "items": []}], ids=str
)
def test_a_list_without_items_is_empty(write: Write, empty: dict[str, Any]) -> None:
    assert names(load(write(json.dumps(empty | {"apiVersion": "v1"}) + json.dumps(NODE)))) == ["n1"]


def test_a_kind_may_be_called_a_list_and_be_none(write: Write) -> None:
    access_list = {"apiVersion": "example.com/v1", "kind": "AccessList", "metadata": {"name": "a"}}
    path = write(a_list(access_list) | {"items": [access_list, NODE]})
    assert load(path).notes == (f"{path}: objects of kinds that are not used: 1 AccessList",)
    with pytest.raises(DumpError, match="no object of a kind"):
        load(write(access_list))


def test_objects_of_no_use_are_counted(write: Write) -> None:
    secret = {**CONFIG_MAP, "kind": "Secret"}
    other = {**CONFIG_MAP, "metadata": {"name": "d"}}
    path = write(a_list(CONFIG_MAP, NODE, other, secret))
    assert load(path).notes == (f"{path}: objects of kinds that are not used: 2 ConfigMap, 1 Secret",)


def test_values_keep_their_types(write: Write) -> None:
    text = """
apiVersion: v1
kind: Node
metadata:
  name: n1
  creationTimestamp: 2026-01-02T03:04:05Z
  labels: {quoted: "1", tagged: !!str 2, "plain": yes it is}
  annotations: &shared
    a: "true"
spec: {unschedulable: true, n: 12, f: 1.5, e: ~, "null": null, time: 2026-01-02}
status: *shared
"""
    assert load(write(text)).objects == (
        {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {
                "name": "n1",
                "creationTimestamp": "2026-01-02T03:04:05Z",
                "labels": {"quoted": "1", "tagged": "2", "plain": "yes it is"},
                "annotations": {"a": "true"},
            },
            "spec": {"unschedulable": True, "n": 12, "f": 1.5, "e": None, "null": None, "time": "2026-01-02"},
            "status": {"a": "true"},
        },
    )


PLAIN = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text()
VALUES = st.recursive(PLAIN, lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner), max_leaves=20)


@given(VALUES, st.booleans())
def test_yaml_is_read_as_it_was_written(tmp_path_factory: pytest.TempPathFactory, value: object, flow: bool) -> None:
    path = tmp_path_factory.mktemp("dumps", numbered=True) / "dump.yaml"
    node = {**NODE, "spec": {"value": value}}
    path.write_text("# as YAML\n" + yaml.safe_dump(node, default_flow_style=flow), encoding="utf-8")
    assert load(path).objects == (node,)


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        ("", ": holds no object at all; did kubectl find none, or fail?"),
        ("---\n---\n", ": holds no object at all; did kubectl find none, or fail?"),
        (a_list(), ": holds no object at all; did kubectl find none, or fail?"),
        (CONFIG_MAP, "holds no object of a kind that is used here"),
        ("a: [", ", document 1: cannot be read as YAML: line 2, column 1: "),
        (f"{json.dumps(NODE)[1:-1]}\n---\na: b: c\n", "cannot be read as YAML: line "),
        ("a: 1\na: 2\n", ", document 1: cannot be read as YAML: line 2, column 1: key 'a' twice"),
        ("? [a]\n: 1\n", "cannot be read as YAML: line 1, column 3: a key must be a scalar"),
        ("a: *b\n", "cannot be read as YAML: line 1, column 4: no anchor b"),
        ("a: &a [*a]\n", "cannot be read as YAML: line 1, column 8: no anchor a"),
        (
            "a: !!python/object:os.system {}\nb: !secret 1\n",
            "cannot be read as YAML: could not determine a constructor",
        ),
        ("a: !!int x\n", "cannot be read as YAML: "),
        ('{"a": ', ": cannot be read as JSON: Expecting value: line 1 column 7"),
        ('{"a": ' + "[" * 100_000, ": cannot be read as JSON: "),
        ("[" * 5_000, "cannot be read as YAML: "),
        ("- a\n", ", document 1: must be an object, is a list"),
        ("text\n", ", document 1: must be an object, is a string"),
        ("---\n---\n5\n", ", document 2: must be an object, is a number"),
        ({"kind": "Node", "metadata": {"name": "a"}}, ", document 1: apiVersion: must be a string, is missing or null"),
        ({**NODE, "kind": ["Node"]}, ", document 1: kind: must be a string, is a list"),
        ({**NODE, "metadata": None}, ", document 1: metadata: must be an object, is missing or null"),
        ({**NODE, "metadata": {}}, " (Node None): metadata.name: missing"),
        ({**NODE, "metadata": {"name": 5}}, ", document 1 (Node 5): metadata.name: must be a string, is a number"),
        ({**NODE, "metadata": {"name": "a", "uid": True}}, "(Node a): metadata.uid: must be a string, is a boolean"),
        ({**NODE, "metadata": {"name": "a", "labels": []}}, "metadata.labels: must be an object, is a list"),
        (
            {**NODE, "metadata": {"name": "a", "labels": {"x": 1}}},
            "metadata.labels.x: must be a string, is a number; quote it",
        ),
        (
            {**NODE, "metadata": {"name": "a", "annotations": {"x": {}}}},
            "metadata.annotations.x: must be a string, is an object",
        ),
        ({**NODE, "spec": []}, "(Node n1): spec: must be an object, is a list"),
        ({**NODE, "status": "up"}, "(Node n1): status: must be an object, is a string"),
        ({**a_list(), "items": {}}, ", document 1: items: must be a list, is an object"),
        (a_list(NODE, 5), ", document 1, items[1]: must be an object, is a number"),
        (a_list({"metadata": {"name": "a"}}), ", document 1, items[0]: apiVersion: must be a string"),
    ],
)
def test_what_cannot_be_used_is_named(write: Write, content: object, complaint: str) -> None:
    path = write(content)
    with pytest.raises(DumpError) as caught:
        load(path)
    assert str(caught.value).startswith(str(path))
    assert complaint in str(caught.value)
    assert "\n" not in str(caught.value)


WHOLE = a_list(*({**NODE, "metadata": {"name": f"node-{number}", "labels": {"a": "b"}}} for number in range(3)))
KUBECTLS = yaml.safe_dump(WHOLE)
INDENTED = json.dumps(WHOLE, indent=4)


@pytest.mark.parametrize("text", [KUBECTLS, INDENTED], ids=["YAML", "JSON"])
def test_a_dump_that_was_cut_off_anywhere_is_asked_about(write: Write, text: str) -> None:
    begun = text.index("node-0")
    for end in range(begun, text.index("node-2") + 6):
        with pytest.raises(DumpError, match=r"was the (dump|file) cut off\?$"):
            load(write(text[:end]))


@pytest.mark.parametrize("text", ["a: [}\nb: this is a second line\n", '{"a": } "b": "this is more"}'])
def test_an_error_in_the_middle_of_a_file_is_none_of_its_end(write: Write, text: str) -> None:
    with pytest.raises(DumpError) as caught:
        load(write(text))
    assert "cut off" not in str(caught.value)


FORBIDDEN = 'Error from server (Forbidden): nodes is forbidden: User "x" cannot list resource "nodes"'


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        ("No resources found in db namespace.\n", 1, "No resources found in db namespace."),
        (f"{FORBIDDEN}\n", 1, FORBIDDEN),
        (f"{FORBIDDEN}\n{KUBECTLS}", 1, FORBIDDEN),
        (f"{FORBIDDEN}\n{INDENTED}", 1, FORBIDDEN),
        (f"{KUBECTLS}{FORBIDDEN}\n", KUBECTLS.count("\n") + 1, FORBIDDEN),
        (f"{INDENTED}\n{FORBIDDEN}\n", INDENTED.count("\n") + 2, FORBIDDEN),
        (
            'error: the server doesn\'t have a resource type "tidbclusters"',
            1,
            'error: the server doesn\'t have a resource type "tidbclusters"',
        ),
        ("E1130 20:01:02.000001 1 memcache.go:265] x\ta: b", 1, "E1130 20:01:02.000001 1 memcache.go:265] x a: b"),
        ("Unable to connect to the server: " + "x" * 300, 1, "Unable to connect to the server: " + "x" * 167 + ".."),
    ],
    ids=["none found", "forbidden", "and YAML", "and JSON", "after YAML", "after JSON", "kind", "log", "long"],
)
def test_a_message_of_kubectl_in_the_place_of_objects_is_shown(
    write: Write, text: str, line: int, message: str
) -> None:
    path = write(text)
    with pytest.raises(DumpError) as caught:
        load(path)
    assert str(caught.value) == (
        f"{path}: line {line} is a message of kubectl, and no object: {message!r}; mend what it says, then make the "
        "file anew"
    )


CLAIM = {**POD, "kind": "PersistentVolumeClaim"}
VOLUME = {**NODE, "kind": "PersistentVolume"}
SET = {**POD, "apiVersion": "apps/v1", "kind": "StatefulSet"}
BAD = {"resources": {"limits": {"cpu": "x" * 300}}}


@pytest.mark.parametrize(
    ("content", "field"),
    [
        ({**NODE, "status": {"allocatable": {"cpu": "16 cores"}}}, '(Node n1): status.allocatable.cpu: "16 cores"'),
        ({**NODE, "status": {"allocatable": {"pods": 1, "cpu": True}}}, "(Node n1): status.allocatable.cpu: True"),
        ({**NODE, "status": {"allocatable": {"cpu": ["4"]}}}, "(Node n1): status.allocatable.cpu: ['4']"),
        ({**POD, "spec": {"overhead": {"memory": "1 Gi"}}}, '(Pod p): spec.overhead.memory: "1 Gi"'),
        (
            {**POD, "spec": {"initContainers": [{}, BAD]}},
            f'spec.initContainers[1].resources.limits.cpu: "{"x" * 60}.."',
        ),
        ({**POD, "spec": BAD}, "(Pod p): spec.resources.limits.cpu"),
        ({**SET, "spec": {"template": {"spec": {"containers": [BAD]}}}}, "spec.template.spec.containers[0].resources"),
        ({**SET, "spec": {"volumeClaimTemplates": [{"spec": BAD}]}}, "spec.volumeClaimTemplates[0].spec.resources"),
        (
            {**CLAIM, "spec": {"resources": {"requests": {"storage": "500 Gi"}}}},
            'spec.resources.requests.storage: "500',
        ),
        ({**VOLUME, "spec": {"capacity": {"storage": "1Gb"}}}, '(PersistentVolume n1): spec.capacity.storage: "1Gb"'),
    ],
)
def test_an_amount_that_cannot_be_read_is_named(write: Write, content: object, field: str) -> None:
    with pytest.raises(DumpError) as caught:
        load(write(content))
    assert field in str(caught.value)
    assert str(caught.value).endswith(" cannot be read; write it as in 4, 500m or 16Gi")


def test_amounts_as_they_may_be_written_are_in_order(write: Write) -> None:
    amounts = {"cpu": 4, "memory": "128e6", "pods": 1.5, "a": None, "b": "5Gi", "c": ".5", "d": "100m"}
    assert load(write({**NODE, "status": {"allocatable": amounts}}))


@pytest.mark.parametrize(
    ("metadata", "said"),
    [
        ({"name": "n" * 254}, f"(Pod {'n' * 60}..): metadata.name: has 254 characters; 253 are the most"),
        ({"name": "Node_1"}, "(Pod Node_1): metadata.name: no cluster has such a name; it is made of lower-case"),
        ({"name": "a", "namespace": "n" * 64}, "(Pod a): metadata.namespace: has 64 characters; 63 are the most"),
        ({"name": "a", "namespace": "a b"}, "(Pod a): metadata.namespace: no cluster has such a name"),
    ],
)
def test_a_name_that_no_cluster_has_is_refused(write: Write, metadata: dict[str, Any], said: str) -> None:
    with pytest.raises(DumpError) as caught:
        load(write({**POD, "metadata": metadata}))
    assert said in str(caught.value)


def test_names_of_kinds_that_are_not_used_may_be_any(write: Write) -> None:
    role = {**CONFIG_MAP, "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole"}
    assert load(write(a_list(NODE, {**role, "metadata": {"name": "system:node"}})))


def test_an_object_given_twice_is_named_with_both_places(write: Write, tmp_path: Path) -> None:
    write(a_list(NODE, POD), "a.yaml")
    write(a_list(NODE), "b.yaml")
    with pytest.raises(DumpError) as caught:
        load(tmp_path)
    first, second = f"{tmp_path}/a.yaml, document 1, items[0]", f"{tmp_path}/b.yaml, document 1, items[0]"
    assert str(caught.value) == f"{second} (Node n1): given already in {first} (Node n1)"


def test_no_namespace_is_the_default_namespace(write: Write) -> None:
    with pytest.raises(DumpError, match="given already"):
        load(write(a_list(*({**POD, "metadata": {"name": "p", **more}} for more in ({}, {"namespace": "default"})))))


@pytest.mark.parametrize(
    "other", [{"metadata": {"name": "p", "namespace": "u"}}, {"kind": "PersistentVolumeClaim"}], ids=str
)
def test_one_name_in_two_places_is_no_duplicate(write: Write, other: dict[str, Any]) -> None:
    assert len(load(write(a_list(POD, {**POD, **other}))).objects) == 2


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match=r"nowhere\.yaml: No such file or directory; give a file that is there"):
        load(str(tmp_path / "nowhere.yaml"))


def test_a_file_that_is_no_text_is_named(tmp_path: Path) -> None:
    (tmp_path / "dump.yaml").write_bytes(b"a: \xff")
    with pytest.raises(DumpError, match="is not UTF-8 text"):
        load(tmp_path / "dump.yaml")


def test_a_directory_without_a_dump_is_named(tmp_path: Path) -> None:
    with pytest.raises(DumpError, match=r"holds no file whose name ends in \.yaml, \.yml, \.json"):
        load(tmp_path)


def test_ten_thousand_nodes_are_one_list(write: Write) -> None:
    items = [{**NODE, "metadata": {"name": f"n{number:05}"}} for number in range(10_000)]
    cluster = MemoryCluster(load(write(a_list(*items))).objects)
    assert len(cluster.list(NODES, timeout=1).items) == 10_000
