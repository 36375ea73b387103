"""The stages, walked over a model of what API servers trust and replicas serve."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta

import pytest

from certs import checks, stages
from certs.authority import Lifetimes, Pair, issue_authority, issue_leaf, service_names
from certs.material import EMPTY, Material, Retired, data_of, material_from
from certs.state import Plan, Probe, Publish, Rest, Stage, State, Step, Store

START = datetime(2026, 9, 15, 12, 0, tzinfo=UTC)
NAMES = service_names("hook", "rel")
PLAN = Plan(NAMES)
GARBAGE = b"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"
TICK = timedelta(seconds=5)


@dataclass
class World:
    """One Secret, two entries of a configuration, and the pairs that replicas serve."""

    now: datetime = START
    material: Material = EMPTY
    bundles: tuple[bytes, ...] = (b"", b"")
    rotate: bool = False
    reachable: bool = True
    """Whether an observed call meets the next certificate."""
    trusting: bool = True
    """Whether the API server uses the bundle as it is now."""
    served: Pair | None = None
    in_place: timedelta = timedelta()
    trusted: timedelta | None = None
    distrusted: bool = False
    steps: list[Step] = field(default_factory=list)

    def state(self) -> State:
        return State(self.material, self.bundles, self.rotate, self.in_place, self.trusted, self.distrusted)

    def step(self) -> Step:
        step = stages.next_step(self.state(), PLAN, self.now)
        self.steps.append(step)
        if isinstance(step, Store):
            # Through the Secret's own form and back.
            self.material = material_from(data_of(step.material))
            self.rotate = self.rotate and not step.rotated
            self.in_place, self.trusted, self.distrusted = timedelta(), None, False
        elif isinstance(step, Publish):
            self.bundles = tuple(step.bundle for _ in self.bundles)
            self.in_place, self.trusted, self.distrusted = timedelta(), None, False
        elif isinstance(step, Probe):
            self.probe(step)
        self.serve()
        return step

    def probe(self, step: Probe) -> None:
        assert self.material.next_leaf is not None
        assert step.fingerprint == checks.fingerprint(self.material.next_leaf.certificate)
        met = self.reachable and self.trusting
        self.trusted = (self.trusted or timedelta()) + TICK if met else None
        self.distrusted = self.reachable and not self.trusting
        self.in_place += TICK
        self.now += TICK

    def serve(self) -> None:
        """A replica serves what is stored, and goes on with what it has where that is no whole pair."""
        leaf = self.material.leaf
        if leaf is not None and checks.is_pair(leaf):
            self.served = leaf

    def settle(self) -> list[Step]:
        """Step until there is nothing to do; the steps taken."""
        begun = len(self.steps)
        for _ in range(500):
            if isinstance(self.step(), Rest):
                return self.steps[begun:-1]
        raise AssertionError(f"no end: {self.steps[-3:]}")

    def trusts(self, pair: Pair | None) -> bool:
        """Whether every entry of the configuration leads to a call that the pair's server passes."""
        return pair is not None and all(
            checks.leaf_problem(pair, checks.certificates_in(bundle), NAMES, self.now) is None
            for bundle in self.bundles
        )


@pytest.fixture
def world() -> World:
    """A world after the first start."""
    begun = World()
    begun.settle()
    return begun


def kinds(steps: list[Step]) -> list[str]:
    return [type(step).__name__ for step in steps if not isinstance(step, Probe)]


def reasons(steps: list[Step]) -> str:
    return "; ".join(step.why for step in steps if isinstance(step, (Store, Publish)))


def test_the_first_start_stores_a_pair_and_publishes_it() -> None:
    world = World()
    assert kinds(world.settle()) == ["Store", "Publish"]
    assert world.trusts(world.served)
    assert stages.stage_of(world.state()) is Stage.STEADY


def test_in_the_steady_state_nothing_is_written(world: World) -> None:
    world.now += timedelta(days=30)
    assert world.settle() == []


def test_a_leaf_is_renewed_at_two_thirds_by_the_same_authority(world: World) -> None:
    before = world.material
    world.now += timedelta(days=61)
    assert kinds(world.settle()) == ["Store"]
    assert world.material.authority == before.authority
    assert world.material.leaf != before.leaf
    assert world.trusts(world.served)


def test_a_ca_is_changed_in_four_stages_and_each_certificate_is_trusted_while_it_is_served(world: World) -> None:
    old, seen = world.material, []
    world.rotate = True
    while not isinstance(world.step(), Rest):
        assert world.trusts(world.served)
        if stages.stage_of(world.state()) not in seen:
            seen.append(stages.stage_of(world.state()))
    assert seen == [Stage.PUBLISH, Stage.CONFIRM, Stage.RETIRE]
    assert world.served != old.leaf
    assert world.trusts(old.leaf)
    world.now += PLAN.overlap
    assert kinds(world.settle()) == ["Store", "Publish"]
    assert world.trusts(world.served)
    assert not world.trusts(old.leaf)
    assert stages.stage_of(world.state()) is Stage.STEADY
    assert not world.rotate


def test_a_ca_is_changed_at_two_thirds_of_its_life(world: World) -> None:
    world.now += timedelta(days=1217)
    assert "two thirds of the CA's life" in reasons(world.settle())
    assert world.trusts(world.served)


def test_a_new_certificate_is_served_only_after_the_settling_time(world: World) -> None:
    world.rotate = True
    world.settle()
    probes = [step for step in world.steps if isinstance(step, Probe)]
    assert len(probes) == PLAN.settle / TICK


def test_a_new_certificate_is_never_served_while_the_api_server_refuses_it(world: World) -> None:
    old = world.served
    world.rotate, world.trusting = True, False
    for _ in range(1000):
        world.step()
    assert world.served == old
    world.trusting = True
    world.settle()
    assert world.served != old


def test_calls_that_nobody_answers_hold_up_a_rotation_for_ten_minutes_only(world: World) -> None:
    world.rotate, world.reachable = True, False
    steps = world.settle()
    assert sum(isinstance(step, Probe) for step in steps) == PLAN.patience / TICK
    assert world.trusts(world.served)


def test_one_failed_probe_begins_the_settling_time_again(world: World) -> None:
    world.rotate = True
    while not (world.trusted and world.trusted > PLAN.settle / 2):
        world.step()
    world.reachable = False
    world.step()
    world.reachable = True
    assert sum(isinstance(step, Probe) for step in world.settle()) == PLAN.settle / TICK


def test_a_bundle_is_written_only_when_it_differs_in_more_than_order(world: World) -> None:
    world.rotate = True
    world.settle()
    bundle = checks.certificates_in(world.bundles[0])
    assert len(bundle) == 2
    world.bundles = tuple(b"".join(reversed(bundle)) for _ in world.bundles)
    assert world.settle() == []


DAMAGES: dict[str, Callable[[World], None]] = {
    "bundle wiped": lambda world: setattr(world, "bundles", (b"", b"")),
    "bundle of one entry wiped": lambda world: setattr(world, "bundles", (world.bundles[0], b"")),
    "bundle garbage": lambda world: setattr(world, "bundles", (GARBAGE, GARBAGE)),
    "bundle of somebody else": lambda world: setattr(world, "bundles", (issue_authority(START).certificate,) * 2),
    "secret deleted": lambda world: setattr(world, "material", EMPTY),
    "leaf missing": lambda world: setattr(world, "material", replace(world.material, leaf=None)),
    "leaf garbage": lambda world: setattr(world, "material", replace(world.material, leaf=Pair(GARBAGE, b"?"))),
    "leaf of somebody else": lambda world: setattr(
        world, "material", replace(world.material, leaf=issue_leaf(issue_authority(START), NAMES, START))
    ),
    "leaf with another key": lambda world: setattr(
        world,
        "material",
        replace(world.material, leaf=world.material.leaf and replace(world.material.leaf, key=b"?")),
    ),
    "authority missing": lambda world: setattr(world, "material", replace(world.material, authority=None)),
    "authority garbage": lambda world: setattr(
        world, "material", replace(world.material, authority=Pair(GARBAGE, b"?"))
    ),
    "authority with another key": lambda world: setattr(
        world,
        "material",
        replace(
            world.material,
            authority=world.material.authority and replace(world.material.authority, key=issue_authority(START).key),
        ),
    ),
    "next authority garbage": lambda world: setattr(
        world, "material", replace(world.material, next_authority=Pair(GARBAGE, b"?"))
    ),
    "next leaf missing": lambda world: setattr(world, "material", replace(world.material, next_leaf=None)),
    "next authority missing": lambda world: setattr(world, "material", replace(world.material, next_authority=None)),
    "retired garbage": lambda world: setattr(
        world,
        "material",
        replace(world.material, retired=(Retired(GARBAGE, START + timedelta(days=1)), *world.material.retired)),
    ),
}
UNHARMFUL = {name for name in DAMAGES if "bundle" not in name and "leaf of somebody" not in name}


@pytest.mark.parametrize("moment", ["steady", "rotating"])
@pytest.mark.parametrize("damage", DAMAGES)
def test_whatever_is_broken_is_mended(world: World, moment: str, damage: str) -> None:
    if moment == "rotating":
        world.rotate = True
        while not world.trusted:
            world.step()
    DAMAGES[damage](world)
    world.trusted = None
    for _ in range(500):
        step = world.step()
        if damage in UNHARMFUL:
            assert world.trusts(world.served)
        if isinstance(step, Rest):
            break
    assert world.trusts(world.served)
    assert stages.in_sync(world.state())
    assert world.material.authority is not None
    assert checks.authority_problem(world.material.authority, world.now) is None


@pytest.mark.parametrize("seed", range(10))
def test_any_mixture_of_damage_in_any_stage_is_mended(seed: int) -> None:
    chance, world = random.Random(seed), World()
    for _ in range(40):
        for _ in range(chance.randrange(1, 12)):
            world.step()
        DAMAGES[chance.choice(sorted(DAMAGES))](world)
        world.rotate = world.rotate or chance.random() < 0.2
        world.reachable = chance.random() < 0.7
        world.now += timedelta(minutes=chance.choice([-10, 0, 10, 600]))
    world.reachable = True
    world.settle()
    assert world.trusts(world.served), f"seed {seed}"
    assert stages.in_sync(world.state())


def test_with_no_certificate_to_serve_the_patience_is_short() -> None:
    world = World(bundles=(issue_authority(START).certificate,), reachable=False)
    steps = world.settle()
    assert sum(isinstance(step, Probe) for step in steps) == PLAN.urgency / TICK
    assert world.trusts(world.served)


def test_an_expired_secret_and_bundle_are_replaced_at_once() -> None:
    old = issue_authority(START - timedelta(days=2000))
    material = Material(authority=old, leaf=issue_leaf(old, NAMES, START - timedelta(days=2000)))
    world = World(material=material, bundles=(old.certificate,))
    assert kinds(world.settle()) == ["Store", "Publish"]
    assert world.trusts(world.served)


def test_other_names_make_a_new_leaf_of_the_same_authority(world: World) -> None:
    plan = replace(PLAN, names=(*NAMES, "other.rel.svc"))
    step = stages.next_step(world.state(), plan, world.now)
    assert isinstance(step, Store)
    assert step.material.authority == world.material.authority
    assert "other.rel.svc" in step.why


def test_other_names_during_a_rotation_change_the_next_certificate_too(world: World) -> None:
    world.rotate = True
    world.step()
    step = stages.next_step(world.state(), replace(PLAN, names=(*NAMES, "other.rel.svc")), world.now)
    assert isinstance(step, Store)
    assert step.material.next_authority == world.material.next_authority


def test_a_stray_next_certificate_is_forgotten(world: World) -> None:
    world.material = replace(world.material, next_leaf=world.material.leaf)
    assert reasons([world.step()]) == "a stray certificate"


@pytest.mark.parametrize("minutes", [-10, 10])
def test_another_writer_whose_clock_is_ten_minutes_off_changes_nothing(world: World, minutes: int) -> None:
    world.now += timedelta(minutes=minutes)
    assert world.settle() == []


def test_lifetimes_of_the_plan_are_used() -> None:
    plan = replace(PLAN, lifetimes=Lifetimes(timedelta(days=3), timedelta(days=1)))
    step = stages.next_step(State(EMPTY, (b"",)), plan, START)
    assert isinstance(step, Store)
    assert step.material.leaf is not None
    assert checks.expires_at(step.material.leaf.certificate) == START + timedelta(days=1)
