"""Others write to the claims that the webhook locks on, or delete them: nobody stacks."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

import pytest

from e2e import objects
from e2e.api import Api, ApiError
from e2e.disturbed import Rounds
from e2e.evidence import was_beaten
from e2e.objects import ENTRY_PREFIX, LOCK, Object
from e2e.place import Place
from e2e.replicas import Webhook
from e2e.rounds import rounds, times
from e2e.waiting import wait_until

pytestmark = [pytest.mark.e2e, pytest.mark.usefixtures("advanced_sets")]

Tell = Callable[[str], None]
TIMES = times(50, sets=3)


@pytest.mark.timeout(120 + 15 * TIMES)
@pytest.mark.parametrize(
    ("time_out", "seconds", "pinned"), [(4, 60.0, 0.0), (10, 1.5, 0.8)], ids=["without-end", "for-a-moment"]
)
def test_a_stranger_who_writes_the_lock_claim_all_the_time_makes_nobody_stack(
    api: Api, frail: Webhook, frail_place: Place, tell: Tell, seconds: float, pinned: float
) -> None:
    scenario = Rounds(frail_place, frail, hit=was_beaten)
    written = 0

    for _ in range(TIMES):
        with (
            scenario.one() as one,
            writing(api, [members.claim_name(0) for members in one.sets], frail_place.namespace, seconds) as writes,
        ):
            one.wait()
        written += writes.count

    tell(f"{scenario.finish()}; {written} foreign writes")
    # Who writes without end takes the whole budget of everybody; that is no reason to stack.
    assert scenario.share_pinned() >= pinned


@pytest.mark.timeout(120 + 15 * rounds(50))
def test_annotations_that_are_put_back_to_an_older_copy_stack_nobody(
    api: Api, frail: Webhook, frail_place: Place, tell: Tell
) -> None:
    scenario = Rounds(frail_place, frail, sizes=(3,), slow=0.1)
    undone = 0

    for number in range(rounds(50)):
        # The lock claim's ledger, or the second records of the next claim: one record may be lost per admission.
        with scenario.one() as one:
            undone += put_back(api, frail_place.namespace, one.sets[0].claim_name(number % 2))

    tell(f"{scenario.finish()}; {undone} times undone")
    assert undone > 0
    assert scenario.share_pinned() == 1.0


@pytest.mark.timeout(120 + 15 * TIMES)
@pytest.mark.parametrize("again", [False, True], ids=["deleted", "deleted-and-created-again"])
def test_a_lock_claim_that_is_deleted_in_the_middle_of_a_round_stacks_nobody(
    api: Api, frail: Webhook, frail_place: Place, tell: Tell, again: bool
) -> None:
    # Long enough that no pod is created before its claim is taken away.
    scenario = Rounds(frail_place, frail, slow=0.8)

    for _ in range(TIMES):
        with scenario.one() as one:
            one.in_the_middle()
            for members in one.sets:
                one.lose_claim(members, 0)
                if again:
                    create_again(api, objects.member_claims(members.set, 0)[0])

    tell(scenario.finish())
    # Whoever has lost his own claim for good has nothing to lock on.
    assert scenario.share_pinned() >= (0.9 if again else 2 / 3)


class Writes:
    """How many writes somebody made."""

    count = 0


@contextmanager
def writing(api: Api, claims: Sequence[str], namespace: str, seconds: float) -> Iterator[Writes]:
    """Change an annotation of some claims again and again, for so long or as long as the `with` block."""
    done, stop = Writes(), threading.Event()
    end = time.monotonic() + seconds

    def write() -> None:
        while not stop.is_set() and time.monotonic() < end:
            done.count += 1
            patch = {"metadata": {"annotations": {"example.test/touched": str(done.count)}}}
            for claim in claims:
                api.patch("PersistentVolumeClaim", claim, patch, namespace)

    thread = threading.Thread(target=write)
    thread.start()
    try:
        yield done
    finally:
        stop.set()
        thread.join()


def put_back(api: Api, namespace: str, claim: str) -> int:
    """What tidb-operator v1 does after a conflict: the newest claim with the annotations of an older copy, once.

    How often one of ours was undone.
    """
    old = api.get("PersistentVolumeClaim", claim, namespace)

    def changed() -> bool:
        return bool(ours(api.get("PersistentVolumeClaim", claim, namespace)) - ours(old))

    try:
        wait_until(changed, "a record of ours", 2)
    except TimeoutError:
        # No record came to this claim.
        return 0
    while True:
        newest = api.get("PersistentVolumeClaim", claim, namespace)
        undone = len(ours(newest) - ours(old))
        newest["metadata"]["annotations"] = old["metadata"].get("annotations", {})
        try:
            api.replace(newest)
        except ApiError as error:
            if error.status != 409:
                raise
            continue
        return min(undone, 1)


def ours(claim: Object) -> set[tuple[str, str]]:
    """The records on a claim."""
    annotations: dict[str, str] = claim["metadata"].get("annotations", {})
    return {(key, value) for key, value in annotations.items() if key == LOCK or key.startswith(ENTRY_PREFIX)}


def create_again(api: Api, claim: Object) -> None:
    """Create a claim as soon as the one of its name is gone."""

    def created() -> bool:
        try:
            api.create(claim)
        except ApiError as error:
            if error.status != 409:
                raise
            return False
        return True

    wait_until(created, "the claim's name to be free", 15)
