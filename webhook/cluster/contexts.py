"""What else a context of a kubeconfig says: the namespace that kubectl would use."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import yaml
from kubernetes.config import ConfigException, list_kube_config_contexts

from webhook.cluster.credentials import SERVICE_ACCOUNT
from webhook.core.shapes import inside, mapping, text

DEFAULT: Final = "default"


def namespace_of(kubeconfig: str, context: str | None = None) -> str:
    """The namespace of a context (None: the current one) of a kubeconfig, "default" where it names none."""
    try:
        contexts, active = list_kube_config_contexts(kubeconfig)  # type: ignore[no-untyped-call]
    except (ConfigException, OSError, yaml.YAMLError, KeyError, TypeError, ValueError):
        # Whoever reads the credentials says what is wrong with the file.
        return DEFAULT
    found: Any = next((each for each in contexts if mapping(each).get("name") == context), None) if context else active
    return text(inside(found, "context", "namespace")) or DEFAULT


def names_in(kubeconfig: str) -> list[str]:
    """The names of the contexts of a kubeconfig, in order; none where it cannot be read."""
    try:
        contexts, _ = list_kube_config_contexts(kubeconfig)  # type: ignore[no-untyped-call]
    except (ConfigException, OSError, yaml.YAMLError, KeyError, TypeError, ValueError):
        return []
    return sorted(text(mapping(each).get("name")) for each in contexts)


def own_namespace(directory: Path = SERVICE_ACCOUNT) -> str:
    """The namespace of the pod that we run in, "default" where this is none."""
    try:
        return (directory / "namespace").read_text(encoding="utf-8").strip() or DEFAULT
    except (OSError, UnicodeDecodeError):
        return DEFAULT
