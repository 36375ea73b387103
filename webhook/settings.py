"""What can be set, read once into one frozen value.

The commands of `webhook.commands` turn flags and environment variables into parameters; `settings_from`
turns those into `Settings`, which checks itself. There is no secret in it: keys and tokens stay in files.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any, Final

from webhook.addresses import is_loopback, split_address
from webhook.core.scheduler_names import problem_of
from webhook.errors import SettingsError

# Set in every container that has a service account (kubernetes.io/docs: "Accessing the API from a Pod").
SERVICE_ACCOUNT_VARIABLE: Final = "KUBERNETES_SERVICE_HOST"
# The API server's --request-timeout is 60 s by default; below 30 s creates that are still running would be
# taken for over, and their nodes given away.
SHORTEST_REQUEST_TIMEOUT: Final = 30.0
# Under TLS the API server and the kubelet call from elsewhere; without it only this machine may call.
BIND_WITH_TLS: Final = ":8443"
HEALTH_BIND_WITH_TLS: Final = ":8081"

CONTROLLER_LEASE: Final = "tidb-ha-webhook-controller"

_NAMESPACE: Final = re.compile(r"([a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?)?", re.ASCII)
_NAME: Final = re.compile(r"[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?", re.ASCII)

# Characters of a value that are shown where it may be of any length.
_SHOWN: Final = 64

# field: lowest, highest, what is right in words
_RANGES: Final = {
    "workers": (1, 32, "from 1 to 32 worker processes"),
    "threads": (2, 1024, "from 2 to 1024 threads, since at most half of them may wait for one group"),
    "expiry": (30.0, 86_400.0, "from 30 s to 1 day"),
    "clock_allowance": (0.0, 3_600.0, "from 0 s to 1 hour"),
    "budget_margin": (0.1, 10.0, "from 0.1 s to 10 s: it is taken from the API server's time-out"),
    "drain_seconds": (0.0, 600.0, "from 0 s to 10 minutes"),
}


class LogFormat(StrEnum):
    """How log lines are written."""

    JSON = "json"
    TEXT = "text"


class ClusterSource(StrEnum):
    """Where the cluster's state comes from."""

    DUMP = "cluster"
    IN_CLUSTER = "in-cluster"
    KUBECONFIG = "kubeconfig"


@dataclass(frozen=True, slots=True)
class Settings:
    """The settings of one run; raises `SettingsError` for values that cannot be right."""

    bind: str = "localhost:8443"
    """HOST:PORT of `POST /mutate`; no host: all interfaces of both IP families. Loopback only without TLS."""

    health_bind: str = "localhost:8081"
    """HOST:PORT of the plain HTTP health address: probes must work while there is no certificate yet."""

    tls_cert: Path | None = None
    """PEM file of the certificate chain; read again when it changes. None: plain HTTP."""

    tls_key: Path | None = None
    """PEM file of the certificate's private key."""

    kubeconfig: Path | None = None
    """The kubeconfig file; None with no other source: kubectl's own rules (KUBECONFIG, ~/.kube/config)."""

    in_cluster: bool = False
    """Use the service account of the pod that this process runs in."""

    cluster: Path | None = None
    """A dump (file or folder) to run the embedded cluster on, instead of an API server."""

    workers: int = 1
    """Processes that serve. One, so that each group's queue and the inventory exist once."""

    threads: int = 64
    """Threads per worker: twice the 30 calls that the controller manager may send in one burst."""

    log_format: LogFormat = LogFormat.JSON
    """JSON, since logs of a cluster are read by machines first."""

    expiry: float = 120.0
    """Seconds until an abandoned entry may go: the API server's request time-out (60 s) + the allowance."""

    clock_allowance: float = 60.0
    """Seconds that the clocks of several API servers may differ."""

    budget_margin: float = 1.0
    """Seconds of the API server's time-out kept back for the way home: a late answer is no answer."""

    drain_seconds: float = 10.0
    """Seconds to serve on after SIGTERM: API servers use a dying replica's connections about that long."""

    other_schedulers: tuple[str, ...] = ()
    """Scheduler names whose pods get the guard only, never a pin."""

    controller: bool = False
    """Take part in the controller's duties: free pods that wait where they cannot run. One replica leads."""

    controller_namespace: str = ""
    """Namespace of the Lease by which one replica leads the controller; "": that of the pod we run in."""

    controller_lease: str = CONTROLLER_LEASE
    """Name of that Lease; releases that share a namespace need one each."""

    controller_configuration: str = ""
    """Name of the MutatingWebhookConfiguration without which no pod is freed; "": it is not looked at."""

    def __post_init__(self) -> None:
        for name, (lowest, highest, right) in _RANGES.items():
            value = getattr(self, name)
            if not lowest <= value <= highest:  # not `value < lowest or …`: NaN must not pass
                shown = str(value) if isinstance(value, int) else f"{value:g}"
                raise SettingsError(f"{_flag(name)} {shown}: must be {right}")
        self._check_expiry()
        self._check_source()
        if not _NAMESPACE.fullmatch(self.controller_namespace):
            raise SettingsError(
                f"--controller-namespace {self.controller_namespace[:_SHOWN]!r}: must be the name of a namespace, "
                "at most 63 lower-case letters, digits and hyphens"
            )
        self._check_name("controller_lease", "Lease")
        if self.controller_configuration:
            self._check_name("controller_configuration", "configuration")
        self._check_addresses()
        for name in self.other_schedulers:
            if problem := problem_of(name):
                raise SettingsError(f"--other-schedulers {name[:_SHOWN]}: {problem}")

    @property
    def request_timeout(self) -> float:
        """The API server's request time-out (s), after which a create can no longer succeed."""
        return self.expiry - self.clock_allowance

    @property
    def tls(self) -> bool:
        """Whether HTTPS is served."""
        return self.tls_cert is not None

    @property
    def source(self) -> ClusterSource:
        """Where the cluster's state comes from."""
        if self.cluster is not None:
            return ClusterSource.DUMP
        return ClusterSource.IN_CLUSTER if self.in_cluster else ClusterSource.KUBECONFIG

    def describe_source(self) -> str:
        """The source of the cluster's state, in words for the first log line."""
        if self.source is ClusterSource.DUMP:
            return f"the embedded cluster of {self.cluster}"
        if self.source is ClusterSource.IN_CLUSTER:
            return "the API server of this pod's service account"
        where = self.kubeconfig or "kubectl's default kubeconfig (KUBECONFIG, then ~/.kube/config)"
        return f"the API server of {where}"

    def _check_name(self, field: str, kind: str) -> None:
        if not _NAME.fullmatch(value := getattr(self, field)):
            raise SettingsError(
                f"{_flag(field)} {value[:_SHOWN]!r}: must be a {kind}'s name, of lower-case letters, digits, - and ."
            )

    def _check_expiry(self) -> None:
        if self.request_timeout < SHORTEST_REQUEST_TIMEOUT:
            raise SettingsError(
                f"--expiry {self.expiry:g} s less --clock-allowance {self.clock_allowance:g} s leaves "
                f"{self.request_timeout:g} s for the API server's request time-out (60 s unless it was set); "
                f"it must leave at least {SHORTEST_REQUEST_TIMEOUT:g} s"
            )

    def _check_source(self) -> None:
        given = [
            text
            for text, there in (
                (f"--kubeconfig {self.kubeconfig}", self.kubeconfig is not None),
                ("--in-cluster", self.in_cluster),
                (f"--cluster {self.cluster}", self.cluster is not None),
            )
            if there
        ]
        if len(given) > 1:
            raise SettingsError(
                f"{' and '.join(given)}: only one of --kubeconfig, --in-cluster and --cluster may be given, "
                f"by flag or by variable ({variable('kubeconfig')} and so on)"
            )
        if self.cluster is not None and self.workers > 1:
            raise SettingsError(
                f"--workers {self.workers}: the embedded cluster of --cluster lives in one process; use 1"
            )

    def _check_addresses(self) -> None:
        if (self.tls_cert is None) != (self.tls_key is None):
            given, missing = ("--tls-key", "--tls-cert") if self.tls_key else ("--tls-cert", "--tls-key")
            path = self.tls_key or self.tls_cert
            raise SettingsError(f"{given} {path}: {missing} is missing; give both files, or neither for plain HTTP")
        host, port = split_address(self.bind, "--bind")
        health = split_address(self.health_bind, "--health-bind")
        if port and (host, port) == health:
            raise SettingsError(f"--health-bind {self.health_bind}: --bind uses that address; give another port")
        if not self.tls and not is_loopback(host):
            raise SettingsError(
                f"--bind {self.bind}: without --tls-cert and --tls-key it is plain HTTP, on loopback only; "
                f"give both files, or bind to localhost:{port}"
            )


def settings_from(parameters: Mapping[str, Any], environ: Mapping[str, str]) -> Settings:
    """Settings out of a command's parameters, of which those that are None take their default.

    `environ` only tells whether this process runs in a pod, for the source of the cluster's state when
    none is given. Raises `SettingsError`.
    """
    given = {name: value for name, value in parameters.items() if value is not None}
    if given.get("tls_cert"):
        given.setdefault("bind", BIND_WITH_TLS)
        given.setdefault("health_bind", HEALTH_BIND_WITH_TLS)
    if not (given.get("kubeconfig") or given.get("cluster") or given.get("in_cluster")):
        given["in_cluster"] = bool(environ.get(SERVICE_ACCOUNT_VARIABLE))
    given["other_schedulers"] = _names(given.get("other_schedulers", ()))
    if "log_format" in given:
        given["log_format"] = LogFormat(given["log_format"])
    return Settings(**given)


def variable(name: str) -> str:
    """The environment variable of a setting."""
    return f"TIDB_HA_{name.upper()}"


def _names(texts: tuple[str, ...]) -> tuple[str, ...]:
    """The names of a repeated option whose values may be comma lists, each once, in their order."""
    return tuple(dict.fromkeys(name for text in texts for name in text.replace(",", " ").split()))


def _flag(name: str) -> str:
    return "--" + name.replace("_", "-")
