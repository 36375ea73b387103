"""What can be set, with which defaults, and what is refused with which words."""

from __future__ import annotations

from dataclasses import FrozenInstanceError, asdict
from pathlib import Path
from typing import Any

import pytest

from webhook.errors import SettingsError
from webhook.settings import ClusterSource, LogFormat, Settings, settings_from, variable

CERT, KEY = Path("tls.crt"), Path("tls.key")


def test_the_defaults_are_these():
    assert asdict(Settings()) == {
        "bind": "localhost:8443",
        "health_bind": "localhost:8081",
        "tls_cert": None,
        "tls_key": None,
        "kubeconfig": None,
        "in_cluster": False,
        "cluster": None,
        "workers": 1,
        "threads": 64,
        "log_format": "json",
        "expiry": 120.0,
        "clock_allowance": 60.0,
        "budget_margin": 1.0,
        "drain_seconds": 10.0,
        "other_schedulers": (),
        "controller": False,
        "controller_namespace": "",
        "controller_lease": "tidb-ha-webhook-controller",
        "controller_configuration": "",
    }


def test_the_default_expiry_leaves_the_api_servers_default_request_timeout():
    assert Settings().request_timeout == 60.0


def test_settings_cannot_be_changed():
    with pytest.raises(FrozenInstanceError):
        Settings().workers = 2  # type: ignore[misc]


def test_the_variable_of_a_setting_has_the_prefix():
    assert variable("clock_allowance") == "TIDB_HA_CLOCK_ALLOWANCE"


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        pytest.param({"workers": 0}, ("--workers 0", "from 1 to 32"), id="no worker"),
        pytest.param({"workers": 33}, ("--workers 33", "from 1 to 32"), id="too many workers"),
        pytest.param({"workers": 1_000_000}, ("--workers 1000000:",), id="a million workers"),
        pytest.param({"threads": 1}, ("--threads 1", "from 2 to 1024", "half"), id="one thread"),
        pytest.param({"threads": 5000}, ("--threads 5000", "from 2 to 1024"), id="too many threads"),
        pytest.param({"expiry": -1.0}, ("--expiry -1", "from 30 s"), id="negative expiry"),
        pytest.param({"expiry": float("nan")}, ("--expiry nan", "from 30 s"), id="expiry not a number"),
        pytest.param({"expiry": float("inf")}, ("--expiry inf", "1 day"), id="endless expiry"),
        pytest.param({"clock_allowance": -0.5}, ("--clock-allowance -0.5", "from 0 s"), id="negative allowance"),
        pytest.param({"budget_margin": 0.0}, ("--budget-margin 0", "from 0.1 s to 10 s"), id="no margin"),
        pytest.param({"budget_margin": 11.0}, ("--budget-margin 11", "to 10 s"), id="margin too large"),
        pytest.param({"drain_seconds": -1.0}, ("--drain-seconds -1", "from 0 s"), id="negative drain"),
        pytest.param({"drain_seconds": 601.0}, ("--drain-seconds 601", "10 minutes"), id="drain too long"),
        pytest.param(
            {"expiry": 89.0},
            ("--expiry 89 s", "--clock-allowance 60 s", "leaves 29 s", "at least 30 s"),
            id="expiry too near to the allowance",
        ),
        pytest.param({"expiry": 40.0}, ("--expiry 40 s", "leaves -20 s"), id="expiry shorter than the allowance"),
        pytest.param({"tls_cert": CERT}, ("--tls-cert tls.crt", "--tls-key is missing"), id="certificate without key"),
        pytest.param({"tls_key": KEY}, ("--tls-key tls.key", "--tls-cert is missing"), id="key without certificate"),
        pytest.param(
            {"bind": "0.0.0.0:8443"},
            ("--bind 0.0.0.0:8443", "loopback only", "localhost:8443"),
            id="plain HTTP to the world",
        ),
        pytest.param({"bind": ":8443"}, ("--bind :8443", "loopback only"), id="plain HTTP to all interfaces"),
        pytest.param({"bind": "somewhere:8443"}, ("--bind somewhere:8443", "loopback only"), id="plain HTTP to a name"),
        pytest.param({"bind": "8443"}, ("--bind 8443", "HOST:PORT"), id="bind without colon"),
        pytest.param({"health_bind": "localhost:x"}, ("--health-bind localhost:x", "PORT"), id="bad port"),
        pytest.param(
            {"health_bind": "localhost:8443"},
            ("--health-bind localhost:8443", "--bind uses", "another port"),
            id="both addresses the same",
        ),
        pytest.param(
            {"kubeconfig": Path("kc"), "in_cluster": True},
            ("--kubeconfig kc and --in-cluster", "only one of", "TIDB_HA_KUBECONFIG"),
            id="two sources",
        ),
        pytest.param(
            {"kubeconfig": Path("kc"), "in_cluster": True, "cluster": Path("dump")},
            ("--kubeconfig kc and --in-cluster and --cluster dump", "only one of"),
            id="three sources",
        ),
        pytest.param(
            {"cluster": Path("dump"), "workers": 2},
            ("--workers 2", "--cluster", "one process", "use 1"),
            id="embedded cluster in two processes",
        ),
        pytest.param(
            {"other_schedulers": ("tidb-scheduler",)},
            ("--other-schedulers tidb-scheduler", "left alone", "leave it out"),
            id="the other decider",
        ),
        pytest.param(
            {"other_schedulers": ("a", "default-scheduler")},
            ("--other-schedulers default-scheduler", "no pod would be", "leave it out", "option placement to Guard"),
            id="the default scheduler",
        ),
        *(
            pytest.param(
                {"other_schedulers": (name,)},
                (f"--other-schedulers {name[:64]}: is no scheduler's name", "at most 63 letters"),
                id=f"no scheduler's name: {name[:10]}",
            )
            for name in ("!", "-x", "a:b", "x" * 64, "ü")
        ),
        pytest.param(
            {"controller_namespace": "Kube/System"},
            ("--controller-namespace 'Kube/System'", "lower-case"),
            id="no namespace",
        ),
        pytest.param(
            {"controller_lease": "Mine/Yours"},
            ("--controller-lease 'Mine/Yours'", "lower-case"),
            id="no name of a Lease",
        ),
        pytest.param(
            {"controller_configuration": "rel/hook"},
            ("--controller-configuration 'rel/hook'", "lower-case"),
            id="no name of a configuration",
        ),
    ],
)
def test_a_wrong_value_is_named_with_its_flag_and_what_is_right(wrong: dict[str, Any], words: tuple[str, ...]):
    with pytest.raises(SettingsError) as caught:
        Settings(**wrong)

    assert [word for word in words if word not in str(caught.value)] == []


@pytest.mark.parametrize(
    "right",
    [
        pytest.param({"expiry": 90.0}, id="shortest request timeout"),
        pytest.param({"expiry": 30.0, "clock_allowance": 0.0}, id="one API server"),
        pytest.param({"threads": 2}, id="fewest threads"),
        pytest.param({"drain_seconds": 0.0}, id="no drain"),
        pytest.param({"controller": True, "controller_namespace": "kube-system"}, id="a namespace for the Lease"),
        pytest.param({"bind": "127.0.0.2:0", "health_bind": "127.0.0.2:0"}, id="ports of the system's choice"),
        pytest.param({"bind": "[::1]:8443"}, id="loopback of IPv6"),
        pytest.param({"bind": ":8443", "tls_cert": CERT, "tls_key": KEY}, id="all interfaces with TLS"),
        pytest.param({"health_bind": "0.0.0.0:8081"}, id="health for everybody"),
        pytest.param({"cluster": Path("dump")}, id="embedded cluster"),
        pytest.param({"other_schedulers": ("vol-cano.sh/V_1", "x" * 63)}, id="odd schedulers"),
    ],
)
def test_values_at_the_limits_are_right(right: dict[str, Any]):
    Settings(**right)


@pytest.mark.parametrize(
    ("parameters", "environ", "source", "words"),
    [
        pytest.param({}, {}, ClusterSource.KUBECONFIG, "~/.kube/config", id="nothing, on a desk"),
        pytest.param(
            {}, {"KUBERNETES_SERVICE_HOST": "10.0.0.1"}, ClusterSource.IN_CLUSTER, "service account", id="in a pod"
        ),
        pytest.param({"in_cluster": True}, {}, ClusterSource.IN_CLUSTER, "service account", id="asked for"),
        pytest.param(
            {"kubeconfig": Path("kc")},
            {"KUBERNETES_SERVICE_HOST": "10.0.0.1"},
            ClusterSource.KUBECONFIG,
            "API server of kc",
            id="kubeconfig in a pod",
        ),
        pytest.param(
            {"cluster": Path("dump.yaml"), "in_cluster": False},
            {"KUBERNETES_SERVICE_HOST": "10.0.0.1"},
            ClusterSource.DUMP,
            "embedded cluster of dump.yaml",
            id="dump in a pod",
        ),
    ],
)
def test_the_source_of_the_clusters_state_is_chosen_and_said(
    parameters: dict[str, Any], environ: dict[str, str], source: ClusterSource, words: str
):
    settings = settings_from(parameters, environ)

    assert settings.source is source
    assert words in settings.describe_source()


def test_with_tls_all_interfaces_are_the_default():
    settings = settings_from({"tls_cert": CERT, "tls_key": KEY, "bind": None}, {})

    assert (settings.bind, settings.health_bind, settings.tls) == (":8443", ":8081", True)


def test_with_tls_an_address_that_is_given_stays():
    settings = settings_from({"tls_cert": CERT, "tls_key": KEY, "bind": "localhost:1"}, {})

    assert (settings.bind, settings.health_bind) == ("localhost:1", ":8081")


def test_without_parameters_the_defaults_are_taken():
    assert settings_from({}, {}) == Settings()


def test_the_log_format_is_one_of_two():
    assert settings_from({"log_format": "text"}, {}).log_format is LogFormat.TEXT


@pytest.mark.parametrize(
    ("given", "names"),
    [
        pytest.param((), (), id="none"),
        pytest.param(("a",), ("a",), id="one"),
        pytest.param(("a,b", "c"), ("a", "b", "c"), id="list and repetition"),
        pytest.param((" a , ,b,", "a"), ("a", "b"), id="spaces, empty ones and doubles"),
    ],
)
def test_other_schedulers_may_be_a_list_and_repeated(given: tuple[str, ...], names: tuple[str, ...]):
    assert settings_from({"other_schedulers": given}, {}).other_schedulers == names
