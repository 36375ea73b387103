"""The figures: what each event does to them, with one process and with several, and after some have died."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from prometheus_client import values
from prometheus_client.parser import text_string_to_metric_families

from webhook.audit_metrics import MOST_GROUPS, AuditFigures, GroupMargin
from webhook.core.outcomes import Cause, Outcome
from webhook.errors import SettingsError
from webhook.metrics import DIRECTORY_VARIABLE, Metrics, shared_directory

Samples = dict[str, float]


@pytest.fixture(autouse=True)
def _library_as_it_was() -> Iterator[None]:
    value_class, directory = values.ValueClass, os.environ.get(DIRECTORY_VARIABLE)
    yield
    values.ValueClass = value_class
    os.environ.pop(DIRECTORY_VARIABLE, None)
    if directory is not None:
        os.environ[DIRECTORY_VARIABLE] = directory


def samples_of(exposition: bytes) -> Samples:
    """Each of our samples as `name{label=value,…}` without the prefix."""
    found: Samples = {}
    for family in text_string_to_metric_families(exposition.decode()):
        for sample in family.samples:
            if sample.name.startswith("tidb_ha_webhook_") and not sample.name.endswith("_created"):
                labels = ",".join(f"{key}={value}" for key, value in sorted(sample.labels.items()))
                found[sample.name.removeprefix("tidb_ha_webhook_") + (labels and f"{{{labels}}}")] = sample.value
    return found


def one_of_each(metrics: Metrics) -> None:
    metrics.reviewed(Outcome.PINNED, Cause.NONE, "tikv", 0.003)
    metrics.decided(0.02, 3, 2, 1)
    metrics.responded(200)
    metrics.rescued("pinned", "replaced")
    metrics.stuck(2)
    metrics.leads(True)


def test_every_event_is_counted():
    metrics = Metrics()

    one_of_each(metrics)

    samples = samples_of(metrics.exposition())
    assert {name: value for name, value in samples.items() if value and "bucket" not in name} == {
        "reviews_total{cause=,component=tikv,outcome=pinned}": 1,
        "review_duration_seconds_count{outcome=pinned}": 1,
        "review_duration_seconds_sum{outcome=pinned}": 0.003,
        "lock_wait_seconds_count": 1,
        "lock_wait_seconds_sum": 0.02,
        "rounds_count": 1,
        "rounds_sum": 3,
        "conflicts_total": 2,
        "unknown_outcomes_total": 1,
        "http_responses_total{code=200}": 1,
        "rescues_total{kind=pinned,result=replaced}": 1,
        "stuck_pods": 2,
        "controller_leading": 1,
    }


def test_figures_that_are_still_zero_are_there_from_the_start():
    samples = samples_of(Metrics().exposition())

    assert [samples[name] for name in ("conflicts_total", "unknown_outcomes_total", "queue_waiting")] == [0, 0, 0]


def test_durations_tell_half_a_millisecond_from_one():
    metrics = Metrics()

    metrics.reviewed(Outcome.UNTOUCHED, Cause.NOT_A_MEMBER, "", 0.0004)
    metrics.reviewed(Outcome.UNTOUCHED, Cause.NOT_A_MEMBER, "", 0.0009)

    samples = samples_of(metrics.exposition())
    assert samples["review_duration_seconds_bucket{le=0.0005,outcome=untouched}"] == 1
    assert samples["review_duration_seconds_bucket{le=0.001,outcome=untouched}"] == 2


@pytest.mark.parametrize(
    ("component", "label"),
    [
        ("pd", "pd"),
        ("tikv", "tikv"),
        ("dm-master", "dm-master"),
        ("", "other"),
        ("tiflash", "other"),
        ("x" * 99, "other"),
    ],
)
def test_only_member_components_are_label_values(component: str, label: str):
    metrics = Metrics()

    metrics.reviewed(Outcome.GUARDED, Cause.BUSY, component, 0.1)

    assert samples_of(metrics.exposition())[f"reviews_total{{cause=Busy,component={label},outcome=guarded}}"] == 1


def test_a_review_waits_while_its_block_runs():
    metrics = Metrics()

    with metrics.waiting(), metrics.waiting():
        assert samples_of(metrics.exposition())["queue_waiting"] == 2
    assert samples_of(metrics.exposition())["queue_waiting"] == 0


def test_a_single_process_tells_its_memory_and_processor_time():
    assert b"process_resident_memory_bytes" in Metrics().exposition()


def test_two_sets_of_figures_do_not_mix():
    first, second = Metrics(), Metrics()

    one_of_each(first)

    assert samples_of(second.exposition())["conflicts_total"] == 0


def test_a_directory_that_somebody_else_set_is_not_used_by_a_single_process(tmp_path: Path):
    os.environ[DIRECTORY_VARIABLE] = str(tmp_path / "gone")

    one_of_each(Metrics())

    assert list(tmp_path.iterdir()) == []


def test_one_worker_needs_no_directory():
    with shared_directory(1) as directory:
        assert directory is None


def test_several_workers_share_a_directory_that_goes_afterwards():
    with shared_directory(2) as directory:
        assert directory is not None
        assert directory.stat().st_mode & 0o777 == 0o700
        (directory / "something.db").touch()
    assert not directory.exists()


def test_without_a_writable_temporary_directory_the_flag_and_a_way_out_are_named(tmp_path: Path):
    with pytest.raises(SettingsError, match=r"--workers 2: .*TMPDIR"), shared_directory(2, tmp_path / "gone"):
        pass


def test_several_processes_answer_for_all_of_them(tmp_path: Path):
    first, second = Metrics(tmp_path), Metrics(tmp_path)

    one_of_each(first)
    one_of_each(second)
    second.decided(0.5, 1, 0, 0)

    samples = samples_of(first.exposition())
    assert samples == samples_of(second.exposition())
    assert samples["conflicts_total"] == 4
    assert samples["reviews_total{cause=,component=tikv,outcome=pinned}"] == 2
    assert samples["rounds_bucket{le=2.0}"] == 1
    assert samples["rounds_count"] == 3


def test_a_slot_that_is_taken_over_starts_with_nobody_waiting(tmp_path: Path):
    with Metrics(tmp_path).waiting():
        left_behind = (tmp_path / "gauge_livesum_0.db").read_bytes()
    (tmp_path / "gauge_livesum_1.db").write_bytes(left_behind)

    samples = samples_of(Metrics(tmp_path).exposition())

    assert samples["queue_waiting"] == 0


# Run in processes of their own: each worker does some work and then ends as it is told.
WORKERS = """
import os, signal, sys
from pathlib import Path
from webhook.metrics import Metrics, shared_directory

def worker(directory, conflicts, ending):
    child = os.fork()
    if child == 0:
        metrics = Metrics(directory)
        for _ in range(conflicts):
            metrics.decided(0.1, 2, 1, 0)
        if ending == "exit":
            sys.exit()
        with metrics.waiting():
            os.kill(os.getpid(), signal.SIGKILL)
    os.waitpid(child, 0)

with shared_directory(2) as directory:
    for ending in ("kill", "kill", "exit", "kill"):
        worker(directory, 10, ending)
    metrics = Metrics(directory)
    metrics.decided(0.1, 2, 1, 0)
    files = sorted(path.name for path in directory.glob("*.db"))
    sys.stderr.write(" ".join(files))
    sys.stdout.buffer.write(metrics.exposition())
"""


@pytest.fixture(scope="module")
def after_deaths() -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", WORKERS], capture_output=True, text=True, check=True)


def test_what_dead_workers_counted_stays(after_deaths: subprocess.CompletedProcess[str]):
    assert samples_of(after_deaths.stdout.encode())["conflicts_total"] == 41


def test_a_dead_workers_waiting_reviews_do_not_stay(after_deaths: subprocess.CompletedProcess[str]):
    assert samples_of(after_deaths.stdout.encode())["queue_waiting"] == 0


def test_workers_that_die_leave_no_files_behind_for_good(after_deaths: subprocess.CompletedProcess[str]):
    assert after_deaths.stderr.split() == ["counter_0.db", "gauge_livesum_0.db", "histogram_0.db"]


def test_the_last_audit_is_shown_and_nothing_before_it():
    metrics = Metrics()
    assert "\ntidb_ha_webhook_audit_timestamp_seconds " not in metrics.exposition().decode()

    margins = tuple(GroupMargin("t1", f"db{number:03}", "tikv", "kubernetes.io/hostname", 1) for number in range(250))
    poor = GroupMargin("t1", "poor", "pd", "kubernetes.io/hostname", 0)
    figures = AuditFigures(
        at=1_800_000_000,
        seconds=0.5,
        groups={"well": 250, "breached": 1, "unknown": 0},
        findings={"Stacked": 1},
        guarded={"running": 2, "waiting": 0},
        margins=(*margins, poor),
        records=3,
        oldest_record=17,
    )
    metrics.audited(figures)
    shown = metrics.exposition().decode()
    for line in (
        'tidb_ha_webhook_audit_groups{state="breached"} 1.0',
        'tidb_ha_webhook_audit_findings{kind="Stacked"} 1.0',
        'tidb_ha_webhook_guarded_pods{state="running"} 2.0',
        "tidb_ha_webhook_audit_timestamp_seconds 1.8e+09",
        "tidb_ha_webhook_audit_duration_seconds 0.5",
        "tidb_ha_webhook_ledger_records 3.0",
        "tidb_ha_webhook_ledger_oldest_record_seconds 17.0",
        "tidb_ha_webhook_group_margins_left_out 51.0",
    ):
        assert line in shown
    assert shown.count("tidb_ha_webhook_group_margin{") == MOST_GROUPS
    assert 'cluster="poor"' in shown

    metrics.audited(None)
    assert "tidb_ha_webhook_group_margin{" not in metrics.exposition().decode()


def test_swept_claims_are_counted():
    metrics = Metrics()
    metrics.swept(2)
    metrics.swept(0)
    assert "tidb_ha_webhook_swept_claims_total 2.0" in metrics.exposition().decode()
