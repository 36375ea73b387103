"""Which claim is the lock, and where second records go."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from webhook.core.keys import PVC_DEFER_DELETING
from webhook.core.lock_claim import by_precedence, second_record_claim
from webhook.core.objects import Claim


def claim(name: str = "pd-db-pd-0", **fields: object) -> Claim:
    values: dict = {
        "namespace": "shop",
        "uid": f"uid-{name}",
        "resource_version": "7",
        "created": "2026-01-01T00:00:00Z",
    }
    return Claim(name=name, **{**values, **fields})


class TestPrecedence:
    """The first claim by a pure, stable rule is the lock claim."""

    def test_a_bound_claim_comes_before_an_older_unbound_one(self) -> None:
        unbound = claim("a", created="2020-01-01T00:00:00Z")
        bound = claim("b", phase="Bound", volume_name="pv")
        assert by_precedence([unbound, bound]) == (bound, unbound)

    def test_of_equal_claims_the_oldest_comes_first_then_the_name(self) -> None:
        young, old, twin = claim("a", created="2026-02-02T00:00:00Z"), claim("c"), claim("b")
        assert by_precedence([young, old, twin]) == (twin, old, young)

    def test_a_claim_marked_for_deferred_deletion_comes_last_even_if_it_is_bound(self) -> None:
        deferred = claim("a", phase="Bound", volume_name="pv", annotations={PVC_DEFER_DELETING: "now"})
        assert by_precedence([deferred, claim("b")])[-1] is deferred

    def test_a_claim_that_is_being_deleted_is_never_the_lock_claim(self) -> None:
        assert by_precedence([claim(deleting=True)]) == ()

    @given(st.permutations([claim("a"), claim("b", phase="Bound", volume_name="v"), claim("c", created="2020")]))
    def test_every_order_of_the_list_gives_the_same_order(self, claims: list[Claim]) -> None:
        assert [c.name for c in by_precedence(claims)] == ["b", "c", "a"]


class TestSecondRecordClaim:
    """Second records lie on another claim than the lock, preferably a placed member's own."""

    def test_the_own_claim_of_a_placed_member_is_preferred(self) -> None:
        lock, other, own = claim("a"), claim("b"), claim("c")
        assert second_record_claim([lock, other, own], lock, {own.uid, lock.uid}) is own

    def test_else_the_next_in_order_is_taken(self) -> None:
        lock, other, last = claim("a"), claim("b"), claim("c")
        assert second_record_claim([last, other, lock], lock, {lock.uid}) is other

    def test_a_group_with_one_claim_has_none(self) -> None:
        assert second_record_claim([claim()], claim(), set()) is None
