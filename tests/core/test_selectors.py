from __future__ import annotations

import pytest
from builders import label_in, make_node, make_pod, pinned_to

from webhook.core.objects import LabelSelector, NodeSelector, NodeSelectorTerm, Requirement, Taint, Toleration
from webhook.core.selectors import is_usable, matches_labels, matches_node, pinned_node, tolerates

NAMES_N1 = Requirement("metadata.name", "In", ("n1",))
LABELS = {"zone": "za", "cores": "16", "empty": ""}

REQUIREMENTS = [
    pytest.param("zone", "In", ("za", "zb"), True, id="In finds one of its values"),
    pytest.param("zone", "In", ("zb",), False, id="In does not find another value"),
    pytest.param("rack", "In", ("r1",), False, id="In needs the label"),
    pytest.param("zone", "In", (), False, id="In without values matches nothing"),
    pytest.param("empty", "In", ("",), True, id="In takes an empty value"),
    pytest.param("rack", "In", ("",), False, id="In does not take an absent label for an empty one"),
    pytest.param("zone", "NotIn", ("zb",), True, id="NotIn takes another value"),
    pytest.param("zone", "NotIn", ("za",), False, id="NotIn refuses its value"),
    pytest.param("rack", "NotIn", ("r1",), True, id="NotIn takes an absent label"),
    pytest.param("zone", "NotIn", (), False, id="NotIn without values is no requirement"),
    pytest.param("zone", "Exists", (), True, id="Exists"),
    pytest.param("empty", "Exists", (), True, id="Exists takes an empty value"),
    pytest.param("rack", "Exists", (), False, id="Exists needs the label"),
    pytest.param("zone", "Exists", ("za",), False, id="Exists with values is no requirement"),
    pytest.param("rack", "DoesNotExist", (), True, id="DoesNotExist"),
    pytest.param("zone", "DoesNotExist", (), False, id="DoesNotExist refuses the label"),
    pytest.param("rack", "DoesNotExist", ("r1",), False, id="DoesNotExist with values is no requirement"),
    pytest.param("zone", "in", ("za",), False, id="operators are spelt exactly"),
    pytest.param("zone", "Matches", ("za",), False, id="an unknown operator matches nothing"),
    pytest.param("rack", "NotIn", ("a b",), False, id="a value that no label can have"),
    pytest.param("rack", "NotIn", ("r" * 64,), False, id="a value longer than labels are"),
    pytest.param("rack", "NotIn", ("-r",), False, id="a value that begins with a hyphen"),
    pytest.param("rack", "NotIn", ("",), True, id="an empty value is one"),
    pytest.param("", "DoesNotExist", (), False, id="no key"),
    pytest.param("a b", "DoesNotExist", (), False, id="a key that no label can have"),
    pytest.param("example.com/rack", "DoesNotExist", (), True, id="a key with a prefix"),
    pytest.param("Example.com/rack", "DoesNotExist", (), False, id="a prefix that is no domain"),
    pytest.param("/rack", "DoesNotExist", (), False, id="an empty prefix"),
]
NUMBERS = [
    pytest.param("cores", "Gt", ("8",), True, id="16 > 8"),
    pytest.param("cores", "Gt", ("16",), False, id="16 is not > 16"),
    pytest.param("cores", "Lt", ("32",), True, id="16 < 32"),
    pytest.param("cores", "Lt", ("16",), False, id="16 is not < 16"),
    pytest.param("cores", "Gt", ("-1",), False, id="no label can be a negative number"),
    pytest.param("cores", "Gt", ("8", "9"), False, id="two values are no requirement"),
    pytest.param("cores", "Gt", ("0" * 40 + "8",), True, id="any number of zeros before"),
    pytest.param("cores", "Lt", ("9" * 20,), False, id="no more than 64 bits"),
    pytest.param("cores", "Gt", ("1_0",), False, id="no underscores"),
    pytest.param("cores", "Gt", (" 8",), False, id="no spaces"),
    pytest.param("cores", "Gt", ("٨",), False, id="no digits of other scripts"),
    pytest.param("cores", "Lt", ("9223372036854775807",), True, id="the greatest 64-bit integer"),
    pytest.param("cores", "Lt", ("9223372036854775808",), False, id="beyond 64 bits"),
    pytest.param("zone", "Gt", ("8",), False, id="a word is no number"),
    pytest.param("rack", "Lt", ("8",), False, id="an absent label is no number"),
]


@pytest.mark.parametrize(("key", "operator", "values", "expected"), [*REQUIREMENTS, *NUMBERS])
def test_a_node_is_matched_by_its_labels_as_the_scheduler_does(key, operator, values, expected):
    selector = NodeSelector((NodeSelectorTerm(match_expressions=(Requirement(key, operator, values),)),))

    assert matches_node(selector, make_node(labels=LABELS)) is expected


@pytest.mark.parametrize(("key", "operator", "values", "expected"), REQUIREMENTS)
def test_a_label_selector_takes_the_same_operators(key, operator, values, expected):
    selector = LabelSelector(match_expressions=(Requirement(key, operator, values),))

    assert matches_labels(selector, LABELS) is expected


@pytest.mark.parametrize("operator", ["Gt", "Lt"])
def test_a_label_selector_does_not_compare_numbers(operator):
    selector = LabelSelector(match_expressions=(Requirement("cores", operator, ("8" if operator == "Gt" else "32",)),))

    assert not matches_labels(selector, LABELS)


@pytest.mark.parametrize(
    ("selector", "expected"),
    [
        pytest.param(None, False, id="no selector selects nothing"),
        pytest.param(LabelSelector(), True, id="an empty selector selects everything"),
        pytest.param(LabelSelector({"zone": "za"}), True, id="a label"),
        pytest.param(LabelSelector({"zone": "za", "rack": "r1"}), False, id="all labels must match"),
        pytest.param(
            LabelSelector({"zone": "za"}, (Requirement("rack", "Exists"),)), False, id="labels and expressions"
        ),
    ],
)
def test_a_label_selector_needs_all_of_its_parts(selector, expected):
    assert matches_labels(selector, LABELS) is expected


@pytest.mark.parametrize(
    "selector",
    [
        LabelSelector({"zone": "z a"}),
        LabelSelector({"zo ne": "za"}),
        LabelSelector(match_expressions=(Requirement("zone", "Gt", ("1",)),)),
        LabelSelector(match_expressions=(Requirement("zone", "Unknown"),)),
    ],
    ids=["value", "key", "comparison", "operator"],
)
def test_a_label_selector_that_the_scheduler_cannot_use_is_told_from_one_that_matches_nothing(selector):
    assert not is_usable(selector)
    assert not matches_labels(selector, {"zone": "z a", "zo ne": "za"})
    assert is_usable(LabelSelector({"zone": "za"}))


def field(operator: str, *values: str, key: str = "metadata.name") -> NodeSelector:
    return NodeSelector((NodeSelectorTerm(match_fields=(Requirement(key, operator, values),)),))


@pytest.mark.parametrize(
    ("selector", "expected"),
    [
        pytest.param(None, True, id="no selector restricts nothing"),
        pytest.param(NodeSelector(()), False, id="no terms match nothing"),
        pytest.param(NodeSelector((NodeSelectorTerm(),)), False, id="an empty term matches nothing"),
        pytest.param(NodeSelector((NodeSelectorTerm(), *pinned_to("n1").terms)), True, id="one term suffices"),
        pytest.param(pinned_to("n2", "n1"), True, id="terms are alternatives"),
        pytest.param(field("In", "n1"), True, id="the name"),
        pytest.param(field("In", "n2"), False, id="another name"),
        pytest.param(field("NotIn", "n2"), True, id="not another name"),
        pytest.param(field("NotIn", "n1"), False, id="not the name"),
        pytest.param(field("In", "n1", "n2"), False, id="a field takes exactly one value"),
        pytest.param(field("Exists"), False, id="a field takes In and NotIn only"),
        pytest.param(field("In", "n1", key="spec.name"), False, id="there is one field only"),
        pytest.param(
            NodeSelector((NodeSelectorTerm((Requirement("zone", "In", ("zb",)),), (NAMES_N1,)),)),
            False,
            id="fields and labels of a term must both match",
        ),
    ],
)
def test_a_node_selector_is_read_as_the_scheduler_reads_it(selector, expected):
    assert matches_node(selector, make_node("n1", labels={"zone": "za"})) is expected


@pytest.mark.parametrize(
    ("toleration", "expected"),
    [
        pytest.param(Toleration("dedicated", "Equal", "tikv", "NoSchedule"), True, id="equal"),
        pytest.param(Toleration("dedicated", "", "tikv", "NoSchedule"), True, id="the operator defaults to Equal"),
        pytest.param(Toleration("dedicated", "Equal", "pd", "NoSchedule"), False, id="another value"),
        pytest.param(Toleration("dedicated", "Exists", "", "NoSchedule"), True, id="any value"),
        pytest.param(Toleration("dedicated", "Exists"), True, id="no effect is every effect"),
        pytest.param(Toleration("dedicated", "Exists", "", "NoExecute"), False, id="another effect"),
        pytest.param(Toleration("other", "Exists"), False, id="another key"),
        pytest.param(Toleration("", "Exists"), True, id="no key and Exists tolerates everything"),
        pytest.param(Toleration("", "Exists", "", "NoExecute"), False, id="no key, but another effect"),
        pytest.param(Toleration("", "Equal", "tikv"), True, id="no key is every key"),
        pytest.param(Toleration("", "Equal", "pd"), False, id="no key, but another value"),
        pytest.param(Toleration("dedicated", "Lt", "9"), False, id="an unknown operator tolerates nothing"),
    ],
)
def test_a_toleration_tolerates_exactly_what_the_scheduler_says(toleration, expected):
    assert tolerates((toleration,), Taint("dedicated", "tikv", "NoSchedule")) is expected


def test_one_of_several_tolerations_suffices():
    tolerations = (Toleration("other", "Exists"), Toleration("dedicated", "Exists"))

    assert tolerates(tolerations, Taint("dedicated", "tikv", "NoSchedule"))


@pytest.mark.parametrize(
    ("affinity", "expected"),
    [
        pytest.param(None, "", id="no affinity"),
        pytest.param(NodeSelector(()), "", id="no terms"),
        pytest.param(pinned_to("n1"), "n1", id="one term"),
        pytest.param(pinned_to("n1", "n1"), "n1", id="every term names it"),
        pytest.param(pinned_to("n1", "n2"), "", id="terms name different nodes"),
        pytest.param(NodeSelector((*pinned_to("n1").terms, *label_in("zone", "za").terms)), "", id="a term names none"),
        pytest.param(NodeSelector((NodeSelectorTerm(), *pinned_to("n1").terms)), "n1", id="empty terms do not count"),
        pytest.param(NodeSelector((NodeSelectorTerm(),)), "", id="only an empty term"),
        pytest.param(field("NotIn", "n1"), "", id="not a node"),
        pytest.param(field("In", "n1", "n2"), "", id="two values are no pin"),
        pytest.param(label_in("kubernetes.io/hostname", "n1"), "", id="a label is no pin by name"),
        pytest.param(
            NodeSelector((NodeSelectorTerm((Requirement("zone", "Exists"),), (NAMES_N1,)),)),
            "n1",
            id="besides the user's requirements",
        ),
    ],
)
def test_a_pin_is_the_one_node_that_every_term_names(affinity, expected):
    assert pinned_node(make_pod(node_affinity=affinity)) == expected
