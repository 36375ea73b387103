"""What the owners of sets do to them, step by step, and what is looked at then."""

from __future__ import annotations

from collections.abc import Sequence

from e2e.api import Api
from e2e.chart import SWITCH
from e2e.objects import Object
from e2e.place import Place, is_ready, node_of
from e2e.replicas import wait_until_called

RESTARTED = "example.test/restarted"


def scale(place: Place, replicas: int, name: str = "db-tikv") -> None:
    """Change the number of replicas."""
    place.api.patch("StatefulSet", name, {"spec": {"replicas": replicas}}, place.namespace)


def restart(place: Place, number: int, cluster: str = "db", component: str = "tikv") -> list[Object]:
    """A rolling restart; the new pods."""
    revision = {"metadata": {"annotations": {RESTARTED: "yes"}}}
    name = f"{cluster}-{component}"
    place.api.patch("StatefulSet", name, {"spec": {"template": revision}}, place.namespace)

    def renewed(pods: list[Object]) -> bool:
        new = [pod for pod in pods if RESTARTED in pod["metadata"].get("annotations", {})]
        return len(new) == len(pods) == number and all(map(is_ready, pods))

    return place.wait_for(renewed, cluster, component, timeout=90)


def homes(pods: list[Object]) -> dict[str, str]:
    """Each pod's node."""
    return {pod["metadata"]["name"]: node_of(pod) for pod in pods}


def member_on(pods: list[Object], node: str) -> str:
    """The name of the one pod that is on a node."""
    (name,) = (name for name, home in homes(pods).items() if home == node)
    return name


def events_of(place: Place, reason: str) -> list[Object]:
    """The events of one reason."""
    return place.api.list("Event", place.namespace, fields=f"reason={reason}")


def cordon(api: Api, node: str, *, cordoned: bool = True) -> None:
    """Let nothing be scheduled to a node, or again."""
    api.patch("Node", node, {"spec": {"unschedulable": cordoned or None}})


def delete_members(place: Place, names: Sequence[str], *, claims: bool = False) -> None:
    """Delete pods at once, with the claims of their components if those shall go as well."""
    for name in names:
        if claims:
            component = name.split("-")[-2]
            place.api.delete("PersistentVolumeClaim", f"{component}-{name}", place.namespace)
        place.api.delete("Pod", name, place.namespace, gracePeriodSeconds=0)


def send_to_the_webhook(api: Api, place: Place) -> None:
    """From now on the namespace's members go to the undisturbed webhook."""
    api.patch("Namespace", place.namespace, {"metadata": {"labels": {SWITCH: "undisturbed"}}})
    wait_until_called(api, place.namespace)
