"""`tidb-ha-webhook completion`, and the names that a shell offers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

import click
from click.shell_completion import BashComplete, CompletionItem, FishComplete, ShellComplete, ZshComplete

from webhook.errors import WebhookError
from webhook.settings import Settings

PROGRAM: Final = "tidb-ha-webhook"
VARIABLE: Final = "_TIDB_HA_WEBHOOK_COMPLETE"
# Seconds that somebody who presses TAB waits for the cluster.
PATIENCE: Final = 2.0
# kubectl's words for: offer no files (Cobra's ShellCompDirectiveNoFileComp).
NO_FILES: Final = ":4"
STEP_WORDS: Final = ("add-nodes:", "lose-node:", "lose-zone:", "scale:")
SHELLS: Final[Mapping[str, type[ShellComplete]]] = {"bash": BashComplete, "zsh": ZshComplete, "fish": FishComplete}


@click.command("completion", short_help="Print what makes a shell complete commands, flags and names.")
@click.argument("shell", type=click.Choice(list(SHELLS)))
@click.pass_context
def command(ctx: click.Context, /, shell: str) -> None:
    """Print what makes a shell complete commands, flags, and the names of what is in the cluster.

    kubectl completes `kubectl tidb-ha` by itself, where `kubectl_complete-tidb_ha` is on the PATH.

    \b
      eval "$(tidb-ha-webhook completion bash)"      in ~/.bashrc
      eval "$(tidb-ha-webhook completion zsh)"       in ~/.zshrc
      tidb-ha-webhook completion fish | source       in ~/.config/fish/config.fish
    """
    click.echo(SHELLS[shell](ctx.find_root().command, {}, PROGRAM, VARIABLE).source())


def for_kubectl(commands: click.Command, arguments: Iterable[str]) -> str:
    """The completions of the last of these arguments, as kubectl reads them from a plugin."""
    *words, incomplete = [*arguments] or [""]
    found = ShellComplete(commands, {}, PROGRAM, VARIABLE).get_completions(words, incomplete)
    lines = (f"{item.value}\t{item.help}" if item.help else item.value for item in found)
    return "\n".join((*lines, NO_FILES))


def pods(ctx: click.Context, _: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """The pods of the namespace that can be members."""
    from webhook.cluster.door import PODS
    from webhook.cluster.fleet import FAMILIES

    def names(connection: Any) -> set[str]:
        listings = (
            connection.reader.list(PODS, namespace=connection.namespace, labels=family, resource_version="0")
            for family in FAMILIES
        )
        return {pod["metadata"]["name"] for listing in listings for pod in listing.items}

    return _offered(ctx.params, incomplete, names)


def nodes(ctx: click.Context, _: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """The nodes."""
    from webhook.cluster.door import NODES

    def names(connection: Any) -> set[str]:
        return {node["metadata"]["name"] for node in connection.reader.list(NODES, resource_version="0").items}

    return _offered(ctx.params, incomplete, names)


def zones(ctx: click.Context, _: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """The zones of the nodes."""
    return _offered(ctx.params, incomplete, _zones)


def namespaces(ctx: click.Context, _: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """The namespaces that have members."""
    from webhook.cluster.door import PODS
    from webhook.cluster.fleet import FAMILIES

    def names(connection: Any) -> set[str]:
        listings = (connection.reader.list(PODS, labels=family, resource_version="0") for family in FAMILIES)
        return {pod["metadata"]["namespace"] for listing in listings for pod in listing.items}

    return _offered(ctx.params, incomplete, names)


def contexts(ctx: click.Context, _: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """The contexts of the kubeconfig."""
    from webhook.cluster.contexts import names_in
    from webhook.wiring import kubeconfig_of

    given = ctx.params.get("kubeconfig")
    try:
        path = str(given) if given else kubeconfig_of(Settings())
    except WebhookError:
        return []
    return [CompletionItem(name) for name in names_in(path) if name.startswith(incomplete)]


def steps(ctx: click.Context, _: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """The steps of a simulation: their words, and after the colon the names that they take."""
    from webhook.cluster.door import NODES, STATEFUL_SETS

    def names(connection: Any) -> set[str]:
        if incomplete.startswith("lose-node:"):
            return {f"lose-node:{node['metadata']['name']}" for node in connection.reader.list(NODES).items}
        if incomplete.startswith("lose-zone:"):
            return {f"lose-zone:{zone}" for zone in _zones(connection)}
        sets = (found["metadata"] for found in connection.reader.list(STATEFUL_SETS).items)
        return {f"scale:{each['namespace']}/{each['name']}=" for each in sets}

    if ":" not in incomplete:
        return [CompletionItem(word) for word in STEP_WORDS if word.startswith(incomplete)]
    return _offered(ctx.params, incomplete, names)


def _zones(connection: Any) -> set[str]:
    from webhook.cluster.door import NODES
    from webhook.core.audited import ZONE

    labels = (node["metadata"].get("labels", {}) for node in connection.reader.list(NODES, resource_version="0").items)
    return {each[ZONE] for each in labels if ZONE in each}


def _offered(parameters: Mapping[str, Any], incomplete: str, names: Any) -> list[CompletionItem]:
    """The names that begin so; none where the cluster cannot be asked, since TAB must not fail."""
    from webhook.commands.asking import opened

    try:
        with opened({**parameters, "timeout": PATIENCE}, quiet=True) as connection:
            return [CompletionItem(name) for name in sorted(names(connection)) if name.startswith(incomplete)]
    except WebhookError:
        return []
