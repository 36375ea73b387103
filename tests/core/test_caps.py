from __future__ import annotations

from itertools import count, product

import pytest

from webhook.core.caps import cap, least_domains, quorum_problem, width
from webhook.core.model import Family, Group, MemberClass

QUORUM, REPLICATED = MemberClass.QUORUM, MemberClass.REPLICATED
MANY = 99
EVERY_SIZE = list(product(range(1, 13), range(7)))


def quorum_cap(replicas: int, min_domains: int | None = None) -> int | None:
    return cap(QUORUM, replicas, domains=MANY, in_use=0, copies=3, min_domains=min_domains)


def replicated_cap(
    replicas: int, *, domains: int, in_use: int, copies: int = 3, min_domains: int | None = None
) -> int | None:
    return cap(REPLICATED, replicas, domains=domains, in_use=in_use, copies=copies, min_domains=min_domains)


@pytest.mark.parametrize(
    ("replicas", "expected"),
    [(1, 1), (2, 1), (3, 1), (4, 1), (5, 2), (6, 2), (7, 3), (8, 3), (9, 4), (10, 4), (11, 5), (12, 5)],
)
def test_a_quorum_domain_holds_less_than_half(replicas, expected):
    assert quorum_cap(replicas) == expected


@pytest.mark.parametrize("replicas", range(3, 30))
def test_the_quorum_cap_is_the_greatest_loss_that_leaves_a_majority(replicas):
    losses = [lost for lost in range(replicas) if 2 * (replicas - lost) > replicas]

    assert quorum_cap(replicas) == max(losses)


@pytest.mark.parametrize(
    ("in_use", "expected"),
    [
        pytest.param(0, [None, None, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1], id="no domain in use"),
        pytest.param(1, [None, None, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1], id="one domain in use"),
        pytest.param(2, [None, None, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1], id="two domains in use"),
        pytest.param(3, [None, None, 1, 2, 2, 2, 3, 3, 3, 4, 4, 4], id="three domains in use"),
        pytest.param(6, [None, None, 1, 2, 2, 2, 3, 3, 3, 4, 4, 4], id="more bring nothing"),
    ],
)
@pytest.mark.parametrize("domains", range(1, 7))
def test_three_copies_go_to_three_domains_before_any_takes_two(in_use, expected, domains):
    caps = [replicated_cap(replicas, domains=domains, in_use=in_use) for replicas in range(1, 13)]

    assert caps == expected


@pytest.mark.parametrize(
    ("copies", "spread"),
    [
        pytest.param(1, [1, 1, 1, 1, 1, 1], id="one copy: no placement helps"),
        pytest.param(2, [1, 2, 2, 2, 2, 2], id="two copies: no majority without both"),
        pytest.param(3, [3, 3, 3, 3, 3, 3], id="three copies"),
        pytest.param(4, [4, 4, 4, 4, 4, 4], id="four copies: no domain may hold two"),
        pytest.param(5, [3, 3, 3, 4, 5, 5], id="five copies: a domain may hold two"),
    ],
)
def test_the_width_lies_between_what_is_needed_and_what_is_there(copies, spread):
    widths = [width(REPLICATED, 6, domains=domains, copies=copies, min_domains=None) for domains in range(1, 7)]

    assert widths == spread


EVERY_SPREAD = pytest.mark.parametrize(("domains", "copies"), list(product(range(1, 7), range(1, 6))))


@EVERY_SPREAD
def test_the_replicated_cap_is_the_rule_as_written(domains, copies):
    needed = next((d for d in range(1, copies + 1) if -(-copies // d) <= (copies - 1) // 2), 1)
    k = max(needed, min(copies, domains))
    table = {(replicas, in_use): 1 if in_use < k else -(-replicas // k) for replicas, in_use in EVERY_SIZE}
    table |= {(replicas, in_use): None for replicas, in_use in EVERY_SIZE if replicas < copies}

    assert table == {
        (replicas, in_use): replicated_cap(replicas, domains=domains, in_use=in_use, copies=copies)
        for replicas, in_use in EVERY_SIZE
    }


@EVERY_SPREAD
def test_members_that_fill_the_cap_survive_the_loss_of_a_domain(domains, copies):
    for replicas in range(copies, 13):
        k = width(REPLICATED, replicas, domains=domains, copies=copies, min_domains=None)
        full = replicated_cap(replicas, domains=domains, in_use=k, copies=copies)

        assert full is not None
        assert full * k >= replicas, "k domains hold them all"
        # Copies lie in different domains where they can, so a domain's share of them is at most ⌈copies/k⌉.
        assert copies < 3 or 2 * -(-copies // k) < copies, "no domain holds half of the copies"


@pytest.mark.parametrize("copies", range(3, 40))
def test_the_least_domains_are_the_first_that_leave_a_majority(copies):
    assert least_domains(copies) == next(d for d in count(1) if 2 * (copies - -(-copies // d)) > copies)


@pytest.mark.parametrize(
    ("replicas", "min_domains", "quorum", "in_first", "in_all"),
    [
        (3, 1, 3, 1, 3),
        (3, 2, 2, 1, 2),
        (4, 2, 2, 1, 2),
        (5, 2, 3, 1, 3),
        (5, 5, 1, 1, 1),
        (2, 1, 2, None, None),
    ],
)
def test_min_domains_sets_the_width_knowingly(replicas, min_domains, quorum, in_first, in_all):
    assert quorum_cap(replicas, min_domains) == quorum
    assert replicated_cap(replicas, domains=6, in_use=min_domains - 1, min_domains=min_domains) == in_first
    assert replicated_cap(replicas, domains=6, in_use=min_domains, min_domains=min_domains) == in_all


@pytest.mark.parametrize(("replicas", "expected"), [(0, 1), (1, 1), (3, 3), (5, 3), (7, 3), (9, 3), (12, 3)])
def test_the_width_of_a_quorum_is_what_its_cap_needs(replicas, expected):
    assert width(QUORUM, replicas, domains=MANY, copies=3, min_domains=None) == expected


@pytest.mark.parametrize("member_class", MemberClass)
@pytest.mark.parametrize("min_domains", [None, 1])
def test_no_replicas_says_nothing_so_one_goes_to_a_domain(member_class, min_domains):
    assert cap(member_class, 0, domains=3, in_use=2, copies=3, min_domains=min_domains) == 1


def a_group(component: str, member_class: MemberClass) -> Group:
    return Group("t1", "db", component, Family.OPERATOR_V1, member_class, ())


@pytest.mark.parametrize("replicas", range(1, 13))
@pytest.mark.parametrize("min_domains", range(1, 9))
def test_a_cap_that_lets_one_domain_take_the_quorum_along_is_a_problem_and_no_other(replicas, min_domains):
    most = quorum_cap(replicas, min_domains)
    takes_it = replicas > 2 and 2 * (replicas - min(most, replicas)) <= replicas

    assert bool(quorum_problem(a_group("pd", QUORUM), replicas, most, min_domains)) == takes_it
    assert quorum_problem(a_group("tikv", REPLICATED), replicas, most, min_domains) == ""
    assert quorum_problem(a_group("pd", QUORUM), replicas, quorum_cap(replicas), None) == ""


@pytest.mark.parametrize(
    ("component", "meant"),
    [("pd", "write tikv.min-domains if only TiKV is meant"), ("dm-master", "leave it out to keep that")],
)
def test_the_problem_says_what_is_lost_and_what_to_write(component, meant):
    assert quorum_problem(a_group(component, QUORUM), 3, 2, 2) == (
        f"min-domains 2 lets one domain hold 2 of 3 members, and so the quorum of {component}: {meant}"
    )
    assert "hold 3 of 3 members" in quorum_problem(a_group(component, QUORUM), 3, 3, 1)
