"""Replicas' keepers over one cluster that behaves."""

from __future__ import annotations

import logging
import random
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from certs import checks, files
from certs.authority import Lifetimes, Pair, issue_authority, issue_leaf, service_names
from certs.cluster import ClusterError
from certs.figures import Figures
from certs.keeper import FILES, Keeper, Surroundings
from certs.material import Material, data_of, material_from
from certs.state import Plan
from certs_.behaving_cluster import BehavingCluster
from certs_.handshakes import handshake

NAMES = service_names("hook", "rel")
PLAN = Plan(NAMES, Lifetimes(leaf=timedelta(days=90)), settle=timedelta(seconds=30))


@dataclass
class Replica:
    """One replica: its keeper, its files, and what its probe presents."""

    keeper: Keeper
    directory: Path
    figures: Figures
    presented: list[Pair] = field(default_factory=list)

    def served(self) -> Pair | None:
        found = files.read(self.directory, FILES)
        return Pair(found["tls.crt"], found["tls.key"]) if len(found) == 2 else None


@dataclass
class Deployment:
    """Replicas, one of which may lead, and the time that they share."""

    directory: Path
    cluster: BehavingCluster = field(default_factory=lambda: BehavingCluster("hook.rel.svc"))
    replicas: list[Replica] = field(default_factory=list)
    leader: int | None = 0
    now: datetime = field(default_factory=lambda: datetime.now(UTC).replace(microsecond=0))
    everybody_leads: bool = False

    def start(self, count: int = 1) -> list[Replica]:
        for _ in range(count):
            number = len(self.replicas)
            presented: list[Pair] = []
            surroundings = Surroundings(
                self.cluster,
                self.leads(number),
                presented.append,
                lambda: self.now,
                lambda: self.now.timestamp(),
            )
            figures, directory = Figures(), self.directory / f"replica-{number}"
            keeper = Keeper(surroundings, PLAN, directory, figures)
            self.replicas.append(Replica(keeper, directory, figures, presented))
        self.cluster.presented = self.first_presented
        return self.replicas

    def leads(self, number: int) -> Callable[[], bool]:
        return lambda: self.everybody_leads or self.leader == number

    def first_presented(self) -> Pair | None:
        presented = self.replicas[0].presented
        return presented[-1] if presented else None

    def look(self, times: int = 1) -> None:
        for _ in range(times):
            for replica in self.replicas:
                replica.keeper.look()
            self.now += timedelta(seconds=5)

    def calls_pass(self) -> None:
        """A call to each replica, by each entry of the configuration, is passed by its certificate."""
        assert self.cluster.published is not None
        for replica in self.replicas:
            served = replica.served()
            assert served is not None
            for _, bundle in self.cluster.published.entries:
                assert checks.leaf_problem(served, checks.certificates_in(bundle), NAMES, self.now) is None

    def material(self) -> Material:
        assert self.cluster.stored is not None
        return material_from(self.cluster.stored.data)


@pytest.fixture
def deployment(tmp_path: Path) -> Deployment:
    return Deployment(tmp_path)


@pytest.fixture
def running(deployment: Deployment) -> Deployment:
    """Two replicas after their first start."""
    deployment.start(2)
    deployment.look(2)
    deployment.calls_pass()
    deployment.cluster.writes.clear()
    return deployment


def test_the_first_start_makes_one_secret_one_bundle_and_files(deployment: Deployment) -> None:
    deployment.start(2)
    deployment.look(2)
    assert deployment.cluster.writes == ["create secret", "patch configuration"]
    deployment.calls_pass()
    assert [replica.keeper.problem() for replica in deployment.replicas] == [None, None]


def test_the_served_certificate_passes_a_strict_handshake(running: Deployment) -> None:
    assert running.cluster.published is not None
    served = running.replicas[1].served()
    assert served is not None
    assert handshake(served, running.cluster.published.entries[0][1], "hook.rel.svc")


def test_in_the_steady_state_nothing_is_written(running: Deployment) -> None:
    running.look(100)
    assert running.cluster.writes == []


@pytest.mark.parametrize("seed", range(20))
def test_three_replicas_that_start_at_once_and_all_believe_to_lead_make_one_authority(
    deployment: Deployment, seed: int
) -> None:
    chance = random.Random(seed)
    deployment.everybody_leads = True
    replicas = deployment.start(3)
    others = iter(chance.sample([replica.keeper.look for replica in replicas[1:]], 2))
    deployment.cluster.before_write = lambda: next(others)()
    chance.choice(replicas).keeper.look()
    deployment.look(2)
    assert deployment.cluster.writes.count("create secret") == 1
    assert len({replica.served() for replica in replicas}) == 1
    deployment.calls_pass()


def test_a_writer_who_was_paused_loses_and_says_so_quietly(
    running: Deployment, caplog: pytest.LogCaptureFixture
) -> None:
    running.cluster.ask_for_rotation()
    stored = running.cluster.stored
    assert stored is not None
    running.cluster.before_write = lambda: running.cluster.put_secret(stored.data, rotate=True)
    with caplog.at_level(logging.INFO):
        running.replicas[0].keeper.look()
    assert "another replica was faster" in caplog.text
    assert running.cluster.writes == []
    assert "certs_failures_total 0.0" in running.replicas[0].figures.exposition().decode()


def test_a_ca_is_changed_without_a_failing_call(running: Deployment) -> None:
    before = running.replicas[0].served()
    running.cluster.ask_for_rotation()
    for _ in range(12):
        running.look()
        running.calls_pass()
    assert running.replicas[0].served() != before
    assert running.replicas[1].served() == running.replicas[0].served()
    assert not running.cluster.stored.rotate  # type: ignore[union-attr]
    running.now += timedelta(days=1)
    running.look()
    assert running.cluster.published is not None
    assert len(checks.certificates_in(running.cluster.published.entries[0][1])) == 1
    running.calls_pass()


def test_a_replica_whose_files_follow_late_is_trusted_all_the_time(running: Deployment) -> None:
    running.cluster.ask_for_rotation()
    late = running.replicas[1]
    for _ in range(12):
        running.replicas[0].keeper.look()
        running.now += timedelta(seconds=5)
        running.calls_pass()
    assert late.served() != running.replicas[0].served()
    late.keeper.look()
    assert late.served() == running.replicas[0].served()


def test_another_leader_observes_anew_before_it_goes_on(running: Deployment) -> None:
    running.cluster.ask_for_rotation()
    running.look(4)
    old = running.replicas[0].served()
    running.leader = 1
    running.look(2)
    assert running.replicas[0].served() == old
    running.look(10)
    assert running.replicas[0].served() != old
    running.calls_pass()


def test_a_certificate_that_the_api_server_refuses_is_not_served(running: Deployment) -> None:
    running.cluster.ask_for_rotation()
    running.look(2)
    old, foreign = running.replicas[0].served(), issue_authority(running.now)
    running.cluster.presented = lambda: issue_leaf(foreign, NAMES, running.now)
    running.look(200)
    assert running.replicas[0].served() == old
    assert 'trust_probes_total{result="distrusted"} 2' in running.replicas[0].figures.exposition().decode()


def test_an_answer_by_another_certificate_does_not_confirm(running: Deployment) -> None:
    running.cluster.ask_for_rotation()
    running.look(2)
    old = running.replicas[0].served()
    running.cluster.presented = lambda: old
    running.look(20)
    assert running.replicas[0].served() == old


@pytest.mark.parametrize(
    "bundles", [(b"", b""), (b"garbage", b"garbage"), (issue_authority(datetime.now(UTC)).certificate,) * 2]
)
def test_a_bundle_that_somebody_changed_is_put_right(running: Deployment, bundles: tuple[bytes, bytes]) -> None:
    before = running.material()
    running.cluster.put_bundles(*bundles)
    running.look()
    running.calls_pass()
    assert running.cluster.writes == ["patch configuration"]
    assert running.material() == before


def test_a_configuration_that_was_deleted_and_made_again_gets_its_bundle(running: Deployment) -> None:
    running.cluster.published = None
    running.look(3)
    assert running.cluster.writes == []
    running.cluster.put_bundles(b"", b"")
    running.look()
    running.calls_pass()


def test_without_a_configuration_nothing_comes_back(running: Deployment, caplog: pytest.LogCaptureFixture) -> None:
    running.cluster.published, running.cluster.stored = None, None
    running.look(20)
    assert running.cluster.stored is None
    assert running.cluster.writes == []
    assert caplog.text.count("nothing is done until there is") == 2


def test_a_deleted_secret_is_made_again_and_no_call_fails(running: Deployment) -> None:
    running.cluster.stored = None
    for _ in range(12):
        running.look()
        running.calls_pass()
    assert running.material().authority is not None


def test_an_empty_secret_is_filled_again_and_no_call_fails(running: Deployment) -> None:
    running.cluster.put_secret({})
    for _ in range(12):
        running.look()
        running.calls_pass()
    assert running.material().authority is not None


def test_a_pair_of_somebody_else_in_the_secret_is_never_handed_out(running: Deployment) -> None:
    served = running.replicas[0].served()
    foreign = issue_authority(running.now)
    material = Material(foreign, issue_leaf(foreign, NAMES, running.now))
    running.leader = None
    running.cluster.put_secret({name: text for name, text in data_of(material).items() if text})
    running.look()
    assert running.replicas[0].served() == served
    running.leader = 0
    running.look(2)
    running.calls_pass()


def test_a_restored_backup_of_the_secret_is_published_before_it_is_served(running: Deployment) -> None:
    backup = running.cluster.stored
    assert backup is not None
    running.cluster.ask_for_rotation()
    running.look(12)
    running.cluster.put_secret(backup.data)
    running.look(2)
    running.calls_pass()


def test_a_new_replica_is_not_ready_before_its_certificate_is_trusted(deployment: Deployment) -> None:
    deployment.leader = None
    replica = deployment.start()[0]
    assert "has not been read" in (replica.keeper.problem() or "")
    replica.keeper.look()
    assert "no certificate" in (replica.keeper.problem() or "")
    assert not replica.keeper.started()
    authority = issue_authority(deployment.now)
    data = data_of(Material(authority, issue_leaf(authority, NAMES, deployment.now)))
    deployment.cluster.put_secret({name: text for name, text in data.items() if text})
    replica.keeper.look()
    assert "does not trust" in (replica.keeper.problem() or "")
    assert replica.keeper.started()
    deployment.cluster.put_bundles(authority.certificate, authority.certificate)
    replica.keeper.look()
    assert "only just been told" in (replica.keeper.problem() or "")
    replica.keeper.look()
    assert replica.keeper.problem() is None


def test_a_ready_replica_stays_ready_when_the_bundle_is_wiped(running: Deployment) -> None:
    running.leader = None
    running.cluster.put_bundles(b"", b"")
    running.look()
    assert running.replicas[0].keeper.problem() is None


def test_a_failing_api_server_is_said_once_and_counted(running: Deployment, caplog: pytest.LogCaptureFixture) -> None:
    running.cluster.failing = ClusterError("get secret", 403, "forbidden")
    running.replicas[0].keeper.look()
    running.replicas[0].keeper.look()
    assert caplog.text.count("get secret: 403 forbidden") == 1
    assert "certs_failures_total 2.0" in running.replicas[0].figures.exposition().decode()
    running.cluster.failing = None
    running.look()
    running.cluster.failing = ClusterError("get secret", 403, "forbidden")
    running.replicas[0].keeper.look()
    assert caplog.text.count("get secret: 403 forbidden") == 2


def test_a_directory_that_cannot_be_written_is_said(deployment: Deployment, caplog: pytest.LogCaptureFixture) -> None:
    replica = deployment.start()[0]
    replica.directory.write_bytes(b"a file")
    replica.keeper.look()
    assert "replica-0: " in caplog.text


def test_a_leaf_is_renewed_and_reaches_every_replica_at_its_next_look(running: Deployment) -> None:
    before = running.replicas[1].served()
    running.now += timedelta(days=61)
    running.look()
    assert running.cluster.writes == ["patch secret"]
    running.calls_pass()
    assert running.replicas[1].served() != before
    assert running.replicas[0].served() == running.replicas[1].served()


def test_the_figures_tell_expiry_stage_sync_and_who_leads(running: Deployment) -> None:
    text = running.replicas[0].figures.exposition().decode()
    leaf = running.material().leaf
    assert leaf is not None
    ends = checks.expires_at(leaf.certificate).timestamp()
    line = next(line for line in text.splitlines() if 'expiry_timestamp_seconds{kind="leaf"}' in line)
    assert float(line.split()[1]) == ends
    assert 'tidb_ha_webhook_rotation_stage{stage="steady"} 1.0' in text
    assert "tidb_ha_webhook_ca_bundle_in_sync 1.0" in text
    assert "tidb_ha_webhook_certs_leader 1.0" in text
    assert "tidb_ha_webhook_certs_leader 0.0" in running.replicas[1].figures.exposition().decode()
