"""Which API server to work on, and by which credentials."""

from __future__ import annotations

import click
import yaml
from kubernetes.client import Configuration
from kubernetes.config import ConfigException, load_incluster_config, load_kube_config


def configured(in_cluster: bool, kubeconfig: str | None) -> Configuration:
    """The client's configuration: of this pod, of a kubeconfig file, or by kubectl's own rules where None is named.

    Raises `click.ClickException` where there is none, or none that can be used.
    """
    configuration = Configuration()
    try:
        if in_cluster:
            load_incluster_config(configuration)  # type: ignore[no-untyped-call]
        else:
            load_kube_config(kubeconfig, client_configuration=configuration)  # type: ignore[no-untyped-call]
    except (ConfigException, OSError) as error:
        raise click.ClickException(f"no access to a cluster: {error}") from None
    except (yaml.YAMLError, AttributeError, KeyError, TypeError, ValueError):
        # The file holds credentials, so its text is not repeated.
        raise click.ClickException(
            "no access to a cluster: the kubeconfig is not one; see kubectl config view"
        ) from None
    return configuration
