"""From one maker of certificates to another: whoever answers is trusted all the time."""

from __future__ import annotations

import logging
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from certs import checks, files, stages
from certs.authority import Pair, issue_authority, issue_leaf, service_names
from certs.cluster import Published
from certs.figures import Figures
from certs.keeper import FILES, Keeper, Surroundings
from certs.material import EMPTY, Material, Retired, material_from
from certs.state import Mode, Plan, Publish, Rest, Stage, State, Store
from certs_.behaving_cluster import BehavingCluster

NOW = datetime.now(UTC).replace(microsecond=0)
NAMES = service_names("hook", "rel")
OURS, THEIRS, BEFORE = issue_authority(NOW), issue_authority(NOW), issue_authority(NOW)
OUR_LEAF, THEIR_LEAF = issue_leaf(OURS, NAMES, NOW), issue_leaf(THEIRS, NAMES, NOW)
PLAN = Plan(NAMES[2:3], mode=Mode.EXISTING)
GIVEN = (THEIRS.certificate,)


def steps_from(state: State, plan: Plan = PLAN, now: datetime = NOW) -> State:
    """Where the steps lead, until nothing is to be done."""
    for _ in range(10):
        step = stages.next_step(state, plan, now)
        if isinstance(step, Store):
            state = replace(state, material=step.material)
        elif isinstance(step, Publish):
            state = replace(state, bundles=tuple(step.bundle for _ in state.bundles))
        else:
            assert isinstance(step, Rest)
            return state
    raise AssertionError("no end")


def trusted(state: State) -> list[set[bytes]]:
    return [set(checks.certificates_in(bundle)) for bundle in state.bundles]


def test_the_authority_of_somebody_else_is_published_and_nothing_stored() -> None:
    after = steps_from(State(EMPTY, (b"", b""), given=GIVEN))
    assert trusted(after) == [{THEIRS.certificate}] * 2
    assert after.material == EMPTY
    assert stages.stage_of(after) is Stage.STEADY


def test_without_an_authority_a_bundle_is_left_as_it_is() -> None:
    state = State(Material(OURS, OUR_LEAF), (OURS.certificate,), given=())
    assert steps_from(state) == state


def test_our_own_authority_stays_trusted_for_a_while_and_its_key_goes() -> None:
    after = steps_from(State(Material(OURS, OUR_LEAF), (OURS.certificate,), given=GIVEN))
    assert trusted(after) == [{OURS.certificate, THEIRS.certificate}]
    assert after.material == Material(retired=(Retired(OURS.certificate, NOW + PLAN.overlap),))
    assert stages.stage_of(after) is Stage.RETIRE
    later = steps_from(after, now=NOW + PLAN.overlap)
    assert trusted(later) == [{THEIRS.certificate}]
    assert later.material == EMPTY


def test_what_another_mode_has_published_stays_trusted_until_this_one_has_long_been_ready() -> None:
    after = steps_from(State(EMPTY, (BEFORE.certificate,), fresh=True, given=GIVEN))
    assert trusted(after) == [{BEFORE.certificate, THEIRS.certificate}]
    assert trusted(steps_from(replace(after, fresh=False))) == trusted(after)


def test_an_unknown_authority_in_the_bundle_of_a_ready_replica_goes_at_once() -> None:
    state = State(EMPTY, (BEFORE.certificate + THEIRS.certificate,), given=GIVEN)
    assert trusted(steps_from(state)) == [{THEIRS.certificate}]


def test_the_authority_that_is_kept_in_the_secret_comes_back_beside_the_one_in_use() -> None:
    """As after a time with cert-manager alone, in which nobody touched our Secret."""
    plan = Plan(NAMES)
    after = steps_from(State(Material(OURS, OUR_LEAF), (THEIRS.certificate,), fresh=True), plan)
    assert trusted(after) == [{OURS.certificate, THEIRS.certificate}]
    assert after.material.leaf == OUR_LEAF
    assert trusted(steps_from(replace(after, fresh=False), plan, NOW + plan.overlap)) == [{OURS.certificate}]


@pytest.mark.parametrize("broken", [b"", b"garbage"])
def test_a_broken_bundle_is_put_right(broken: bytes) -> None:
    assert trusted(steps_from(State(EMPTY, (broken,), given=GIVEN))) == [{THEIRS.certificate}]


class Replica:
    """A keeper whose server reads a certificate that somebody else has put there."""

    def __init__(self, cluster: BehavingCluster, directory: Path, pair: Pair, given: tuple[bytes, ...] | None) -> None:
        self.given = given
        self.figures = Figures()
        files.write(directory, dict(zip(FILES, (pair.certificate, pair.key), strict=True)))
        surroundings = Surroundings(
            cluster, lambda: True, lambda _pair: None, lambda: NOW, NOW.timestamp, lambda: self.given
        )
        self.keeper = Keeper(surroundings, PLAN if given is not None else Plan(NAMES), directory, self.figures)


@pytest.fixture
def cluster() -> BehavingCluster:
    return BehavingCluster("hook.rel.svc", published=Published("1", (("pods", OURS.certificate),), "existingSecret"))


def test_a_replica_is_ready_one_look_after_its_certificate_was_made_trusted(
    cluster: BehavingCluster, tmp_path: Path
) -> None:
    replica = Replica(cluster, tmp_path, THEIR_LEAF, GIVEN)
    replica.keeper.look()
    assert cluster.writes == ["create secret", "patch configuration"]
    assert "only just been told" in (replica.keeper.problem() or "")
    replica.keeper.look()
    assert replica.keeper.problem() is None
    shown = replica.figures.exposition().decode().splitlines()
    expiry = next(line for line in shown if 'expiry_timestamp_seconds{kind="leaf"}' in line)
    assert float(expiry.split()[1]) == checks.expires_at(THEIR_LEAF.certificate).timestamp()
    assert replica.keeper.started()


def test_a_replica_of_the_mode_before_goes_on_serving_and_writes_nothing(
    cluster: BehavingCluster, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    old = Replica(cluster, tmp_path, OUR_LEAF, None)
    with caplog.at_level(logging.INFO):
        old.keeper.look()
        old.keeper.look()
    assert cluster.writes == []
    assert caplog.text.count("the affair of mode existingSecret now") == 1
    assert files.read(tmp_path, FILES)["tls.crt"] == OUR_LEAF.certificate
    assert old.keeper.problem() is None


def test_while_the_authority_is_missing_nothing_is_written_and_it_is_said_once(
    cluster: BehavingCluster, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    replica = Replica(cluster, tmp_path, THEIR_LEAF, ())
    replica.keeper.look()
    replica.keeper.look()
    assert cluster.writes == []
    assert caplog.text.count("no CA yet") == 1
    replica.given = GIVEN
    replica.keeper.look()
    assert cluster.stored is not None
    assert [each.certificate for each in material_from(cluster.stored.data).retired] == [OURS.certificate]
