"""Where the API server is and who we are: from a kubeconfig, or from inside a pod.

The client's own loaders do the work. Token files are read here: the client reads a kubeconfig's `tokenFile`
only once, keeps a trailing newline in the header, and fails where a file is missing for a moment while it is
being exchanged.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from time import monotonic
from typing import Any, Final

import yaml
from kubernetes.client import Configuration
from kubernetes.config import ConfigException, load_kube_config
from kubernetes.config.incluster_config import InClusterConfigLoader

from webhook.core.shapes import inside, items, mapping, text
from webhook.errors import SettingsError

SERVICE_ACCOUNT: Final = Path("/var/run/secrets/kubernetes.io/serviceaccount")
"""Where a pod finds its token and the API server's CA."""

REREAD_AFTER: Final = 60.0
"""Seconds after which a token file is read again, as client-go does; bound tokens are exchanged hourly."""

_KEY: Final = "BearerToken"


class TokenFile:
    """A bearer token in a file that is exchanged from time to time.

    The last good token is used while the file cannot be read. `clock` is monotonic, in seconds. Raises
    SettingsError at first if the file cannot be read or is empty.
    """

    def __init__(self, path: Path, clock: Callable[[], float] = monotonic) -> None:
        self._path = path
        self._clock = clock
        self._token = self._read()
        self._read_at = clock()
        if not self._token:
            raise SettingsError(f"token file {path}: cannot be read or is empty")

    def __call__(self, configuration: Configuration) -> None:
        """Put the token into a client configuration: the form of its `refresh_api_key_hook`."""
        now = self._clock()
        if now - self._read_at >= REREAD_AFTER:
            self._token = self._read() or self._token
            self._read_at = now
        configuration.api_key[_KEY] = f"Bearer {self._token}"

    def _read(self) -> str:
        try:
            return self._path.read_text(encoding="ascii").strip()
        except (OSError, UnicodeDecodeError):
            return ""


def from_kubeconfig(path: str, context: str | None = None, *, clock: Callable[[], float] = monotonic) -> Configuration:
    """The configuration of a context (None: the current one) of a kubeconfig. Raises SettingsError."""
    configuration = Configuration()
    try:
        load_kube_config(path, context, configuration, persist_config=False)  # type: ignore[no-untyped-call]
        token_file = _token_file(path, context)
    except (ConfigException, OSError) as error:
        raise SettingsError(f"kubeconfig {path}: {error}") from error
    except (yaml.YAMLError, KeyError, TypeError, ValueError) as error:
        # Their texts may hold a piece of the file, and so of a token.
        kind = "YAML" if isinstance(error, yaml.YAMLError) else "kubeconfig"
        raise SettingsError(
            f"kubeconfig {path}: it is no {kind}, or a part of it is missing or damaged; see what kubectl makes of it: "
            f"kubectl config view --kubeconfig {path}"
        ) from None
    if token_file is not None:
        _use(configuration, TokenFile(token_file, clock))
    return configuration


def in_cluster(
    directory: Path = SERVICE_ACCOUNT,
    environment: Mapping[str, str] = os.environ,
    *,
    clock: Callable[[], float] = monotonic,
) -> Configuration:
    """The configuration that a pod's service account gives. Raises SettingsError outside a pod."""
    configuration = Configuration()
    loader: Any = InClusterConfigLoader(  # type: ignore[no-untyped-call]
        token_filename=str(directory / "token"),
        cert_filename=str(directory / "ca.crt"),
        try_refresh_token=False,
        environ=environment,
    )
    try:
        loader.load_and_set(configuration)
    except (ConfigException, OSError) as error:
        raise SettingsError(
            f"--in-cluster: this is no pod with a service account ({str(error).strip('.')}); run it in one, or give "
            "--kubeconfig FILE or --cluster FILE"
        ) from error
    _use(configuration, TokenFile(directory / "token", clock))
    return configuration


def _use(configuration: Configuration, token: TokenFile) -> None:
    token(configuration)
    # Typed by its first value in the client, which is None.
    configuration.refresh_api_key_hook = token  # type: ignore[assignment]


def _token_file(path: str, context: str | None) -> Path | None:
    """The `tokenFile` of the context's user, None if it has none, or a `token`, which goes before it."""
    documents = [mapping(yaml.safe_load(Path(each).read_text())) for each in path.split(os.pathsep)]
    wanted = context or next((text(each.get("current-context")) for each in documents if each), "")
    for document in documents:
        user_name = text(inside(_named(document, "contexts", wanted), "context", "user"))
        for other in documents:
            user = mapping(_named(other, "users", user_name).get("user"))
            if user and not user.get("token") and text(user.get("tokenFile")):
                base = Path(path.split(os.pathsep)[documents.index(other)]).parent
                return base / text(user["tokenFile"])
    return None


def _named(document: Mapping[str, object], key: str, name: str) -> Mapping[str, object]:
    found = (mapping(entry) for entry in items(document.get(key)) if mapping(entry).get("name") == name)
    return next(found, {})
