"""Everything that is known of one pod: what was decided, what it rests on, and what would be decided now."""

from __future__ import annotations

from dataclasses import dataclass, field

from webhook.cluster.door import PODS, Manifest
from webhook.cluster.store import GroupStore
from webhook.controller.rescue import Finding, LeftAlone, held_by_us, judge, sight
from webhook.core.explanation import NOTHING, Recorded, recorded_on
from webhook.core.groups import Recognised
from webhook.core.manifests import pod_from
from webhook.core.model import Group
from webhook.core.objects import Pod
from webhook.core.shapes import inside, items, text
from webhook.operating.absent import Expected, expected, unknown_pod
from webhook.operating.connecting import Connection
from webhook.operating.happened import Events, events_of
from webhook.operating.looking import Look, look


@dataclass(frozen=True, slots=True)
class Story:
    """What was found out. `pod` is as it is, or, with `absent`, as its owner would create it (None: not known).

    `look` None: there is no group to look at, or nothing to look for. `finding` is what the controller makes of it.
    `scheduler` is the scheduler's own word.
    """

    namespace: str
    name: str
    recognised: Recognised
    pod: Pod | None = None
    absent: Expected | None = None
    recorded: Recorded = NOTHING
    look: Look | None = None
    finding: Finding | LeftAlone | None = None
    scheduler: str = ""
    events: Events = field(default_factory=Events)

    @property
    def group(self) -> Group | None:
        """The pod's group, None if it is not a member."""
        return self.recognised.group


def tell(connection: Connection, namespace: str, name: str) -> Story:
    """Find out about a pod. Raises SettingsError for a name that nobody knows; `errors.ApiError` or OutOfTime."""
    reader = connection.reader
    manifest = reader.find(PODS, name, namespace=namespace)
    if manifest is None:
        absent = expected(reader, namespace, name)
        if absent is None:
            raise unknown_pod(reader, namespace, name)
        return _absent(connection, namespace, name, absent)
    return _present(connection, namespace, name, manifest)


def _present(connection: Connection, namespace: str, name: str, manifest: Manifest) -> Story:
    pod = pod_from(manifest, namespace=namespace)
    recognised = GroupStore(connection.door).recognise(pod, connection.deadline)
    owner = pod.owner.name if pod.owner is not None else ""
    seen, finding = None, None
    if recognised.group is not None:
        seen = look(connection, recognised.group, manifest, namespace=namespace)
        finding = _finding(connection, recognised.group, pod, manifest, seen)
    return Story(
        namespace=namespace,
        name=name,
        recognised=recognised,
        pod=pod,
        recorded=recorded_on(pod),
        look=seen,
        finding=finding,
        scheduler=_scheduler(manifest),
        events=events_of(connection.reader, namespace, name, owner),
    )


def _absent(connection: Connection, namespace: str, name: str, absent: Expected) -> Story:
    events = events_of(connection.reader, namespace, name, absent.owner)
    if absent.manifest is None:
        return Story(namespace, name, Recognised(None), absent=absent, events=events)
    pod = pod_from(absent.manifest, namespace=namespace)
    recognised = GroupStore(connection.door).recognise(pod, connection.deadline)
    group = recognised.group
    return Story(
        namespace=namespace,
        name=name,
        recognised=recognised,
        pod=pod,
        absent=absent,
        look=look(connection, group, absent.manifest, namespace=namespace) if group is not None else None,
        events=events,
    )


def _finding(
    connection: Connection, group: Group, pod: Pod, manifest: Manifest, seen: Look
) -> Finding | LeftAlone | None:
    """What the controller would do about the pod now; None where nothing is known."""
    gated = bool(items(inside(manifest, "spec", "schedulingGates")))
    held = held_by_us(pod, group, gated=gated, other_schedulers=connection.settings.other_schedulers)
    if isinstance(held, LeftAlone) or seen.snapshot is None or not seen.known:
        return held if isinstance(held, LeftAlone) else None
    return judge(held, sight(seen.snapshot, seen.as_it_is, held, seen.decision))


def _scheduler(manifest: Manifest) -> str:
    for condition in items(inside(manifest, "status", "conditions")):
        if inside(condition, "type") == "PodScheduled" and inside(condition, "status") != "True":
            return text(inside(condition, "message")) or text(inside(condition, "reason"))
    return ""
