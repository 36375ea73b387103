"""Where the API server is and who we are, from the files that say so."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from kubernetes.client import Configuration

from webhook.cluster import credentials
from webhook.cluster.credentials import REREAD_AFTER, TokenFile
from webhook.errors import SettingsError

ENVIRONMENT = {"KUBERNETES_SERVICE_HOST": "fd00::1", "KUBERNETES_SERVICE_PORT": "443"}


class Clock:
    """A monotonic clock that a test moves."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def service_account(tmp_path: Path) -> Path:
    (tmp_path / "token").write_text("first\n")
    (tmp_path / "ca.crt").write_text("a certificate")
    return tmp_path


@pytest.fixture
def kubeconfig(tmp_path: Path) -> Callable[..., str]:
    """A function that writes a kubeconfig with one user `me` and contexts `one` (current) and `two`."""

    def write(user: Mapping[str, Any] | None = None, name: str = "config", **changes: Any) -> str:
        content = {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": "one",
            "contexts": [
                {"name": "one", "context": {"cluster": "c1", "user": "me"}},
                {"name": "two", "context": {"cluster": "c2", "user": "me"}},
            ],
            "clusters": [
                {"name": "c1", "cluster": {"server": "http://one:1"}},
                {"name": "c2", "cluster": {"server": "http://two:2"}},
            ],
            "users": [{"name": "me", "user": user if user is not None else {"token": "t"}}],
        }
        path = tmp_path / name
        path.write_text(json.dumps(content | changes))
        return str(path)

    return write


def authorization(configuration: Configuration) -> object:
    settings: dict[str, Any] = dict(configuration.auth_settings())
    return settings["BearerToken"]["value"]


def test_a_pod_finds_server_authority_and_token(service_account: Path) -> None:
    configuration = credentials.in_cluster(service_account, ENVIRONMENT)
    assert configuration.host == "https://[fd00::1]:443"
    assert configuration.ssl_ca_cert == str(service_account / "ca.crt")
    assert authorization(configuration) == "Bearer first"


def test_a_rotated_token_is_read_again(service_account: Path, clock: Clock) -> None:
    configuration = credentials.in_cluster(service_account, ENVIRONMENT, clock=clock)
    (service_account / "token").write_text("second")
    clock.now += REREAD_AFTER - 1
    assert authorization(configuration) == "Bearer first"
    clock.now += 1
    assert authorization(configuration) == "Bearer second"


@pytest.mark.parametrize("content", [None, "", " \n", "ü"], ids=["gone", "empty", "blank", "garbage"])
def test_the_last_good_token_is_kept_while_there_is_none(
    service_account: Path, clock: Clock, content: str | None
) -> None:
    configuration = credentials.in_cluster(service_account, ENVIRONMENT, clock=clock)
    if content is None:
        (service_account / "token").unlink()
    else:
        (service_account / "token").write_text(content, encoding="utf-8")
    clock.now += REREAD_AFTER
    assert authorization(configuration) == "Bearer first"


@pytest.mark.parametrize("missing", ["token", "ca.crt"])
def test_outside_a_pod_the_flag_is_named(service_account: Path, missing: str) -> None:
    (service_account / missing).unlink()
    with pytest.raises(SettingsError, match="--in-cluster"):
        credentials.in_cluster(service_account, ENVIRONMENT)


def test_without_the_pods_environment_the_flag_is_named(service_account: Path) -> None:
    with pytest.raises(SettingsError) as caught:
        credentials.in_cluster(service_account, {})
    assert str(caught.value) == (
        "--in-cluster: this is no pod with a service account (Service host/port is not set); run it in one, or give "
        "--kubeconfig FILE or --cluster FILE"
    )


def test_a_blank_token_file_is_refused_at_the_start(tmp_path: Path) -> None:
    (tmp_path / "token").write_text("\n")
    with pytest.raises(SettingsError, match=r"token file .*token: cannot be read or is empty"):
        TokenFile(tmp_path / "token")


@pytest.mark.parametrize(
    ("context", "host"), [(None, "http://one:1"), ("two", "http://two:2")], ids=["current", "named"]
)
def test_a_kubeconfigs_context_is_used(kubeconfig: Callable[..., str], context: str | None, host: str) -> None:
    configuration = credentials.from_kubeconfig(kubeconfig(), context)
    assert configuration.host == host
    assert authorization(configuration) == "Bearer t"


@pytest.mark.parametrize("context", [None, "two"], ids=["current", "named"])
def test_a_kubeconfigs_token_file_is_read_again(
    kubeconfig: Callable[..., str], tmp_path: Path, clock: Clock, context: str | None
) -> None:
    (tmp_path / "token").write_text("first\n")
    path = kubeconfig({"tokenFile": "token"})
    configuration = credentials.from_kubeconfig(path, context, clock=clock)
    assert authorization(configuration) == "Bearer first"
    (tmp_path / "token").write_text("second\n")
    clock.now += REREAD_AFTER
    assert authorization(configuration) == "Bearer second"


def test_a_token_goes_before_a_token_file(kubeconfig: Callable[..., str], tmp_path: Path) -> None:
    (tmp_path / "token").write_text("of the file")
    configuration = credentials.from_kubeconfig(kubeconfig({"token": "own", "tokenFile": "token"}))
    assert authorization(configuration) == "Bearer own"


def test_several_kubeconfigs_are_one(kubeconfig: Callable[..., str], tmp_path: Path) -> None:
    (tmp_path / "token").write_text("first")
    users = kubeconfig({"tokenFile": "token"}, name="users", contexts=[], clusters=[])
    rest = kubeconfig(name="rest", users=[])
    configuration = credentials.from_kubeconfig(f"{users}:{rest}")
    assert (configuration.host, authorization(configuration)) == ("http://one:1", "Bearer first")


def test_a_user_without_a_token_sends_none(kubeconfig: Callable[..., str]) -> None:
    assert credentials.from_kubeconfig(kubeconfig({})).auth_settings() == {}


@pytest.mark.parametrize(
    ("content", "context"),
    [
        (None, None),
        ("", None),
        ("[]", None),
        ("users: [{name: me, user: {token: s3cr3t", None),
        ("current-context: one", None),
        ('{"current-context": 5, "contexts": 5, "clusters": 5, "users": 5}', None),
        ('{"current-context": "one", "contexts": [], "clusters": [], "users": []}', "s"),
    ],
    ids=["absent", "empty", "a list", "broken", "no contexts", "odd", "no such context"],
)
def test_a_kubeconfig_that_cannot_be_used_is_named_and_not_shown(
    tmp_path: Path, content: str | None, context: str | None
) -> None:
    path = tmp_path / "config"
    if content is not None:
        path.write_text(content)
    with pytest.raises(SettingsError) as caught:
        credentials.from_kubeconfig(str(path), context)
    assert str(caught.value).startswith(f"kubeconfig {path}: ")
    assert "s3cr3t" not in f"{caught.value}{caught.value.__cause__}"
