"""The options in force for one pod, from annotations on it and on the objects above it (docs/design.md, section 8).

`tidb-ha-webhook.io/<option>`, or `tidb-ha-webhook.io/<component>.<option>`, which goes before it on the same
object. The first object that has the option decides: for skip, placement and when-unplaceable the pod, the
group objects, the cluster object; for topology-key, copies and min-domains the objects only, since all members
of a group must be counted by one rule. A value that cannot be used becomes the stricter default, and a
sentence in `Options.problems`; so does a disagreement between group objects. A key of ours that is no option, or is
not read where it stands, is a sentence there too: what is misspelt would be without effect in silence.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, Generic, TypeVar

from webhook.core import keys
from webhook.core.carriers import OptionCarriers
from webhook.core.model import MemberClass, Options, Placement, WhenUnplaceable
from webhook.core.objects import EMPTY, Pod
from webhook.core.strange_keys import strange_keys

Annotations = Mapping[str, str]
Value = TypeVar("Value")

# Kubernetes' rules for a label key: an optional DNS subdomain and a slash, then a name.
LABEL_NAME: Final = re.compile(r"[A-Za-z0-9](?:[-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?")
DNS_SUBDOMAIN: Final = re.compile(r"[a-z0-9](?:[-a-z0-9]*[a-z0-9])?(?:\.[a-z0-9](?:[-a-z0-9]*[a-z0-9])?)*")
DNS_SUBDOMAIN_CHARACTERS: Final = 253
WHOLE_NUMBER: Final = re.compile(r"[1-9][0-9]{0,8}")
SHOWN_CHARACTERS: Final = 60


@dataclass(frozen=True, slots=True)
class Option(Generic[Value]):
    """How one option is read.

    `read` gives the value of a text or raises ValueError; `right` says in words what is accepted;
    `strictness` orders values where group objects disagree, the greatest wins.
    """

    name: str
    default: Value
    read: Callable[[str], Value]
    right: str
    strictness: Callable[[Value], float]


@dataclass(frozen=True, slots=True)
class Level:
    """Objects that rank alike: their annotations, what to call one, and keys of others honoured on them."""

    where: str
    objects: Sequence[Annotations]
    foreign_keys: Mapping[str, str] = field(default_factory=lambda: EMPTY)


def is_label_key(key: str) -> bool:
    """Whether Kubernetes takes it as the key of a label."""
    prefix, slash, name = key.rpartition("/")
    if slash and (len(prefix) > DNS_SUBDOMAIN_CHARACTERS or not DNS_SUBDOMAIN.fullmatch(prefix)):
        return False
    return LABEL_NAME.fullmatch(name) is not None


def _read_boolean(value: str) -> bool:
    if value not in ("true", "false"):
        raise ValueError(value)
    return value == "true"


def _read_whole_number(value: str) -> int:
    if not WHOLE_NUMBER.fullmatch(value):
        raise ValueError(value)
    return int(value)


def _read_label_key(value: str) -> str:
    if not is_label_key(value):
        raise ValueError(value)
    return value


SKIP: Final[Option[bool]] = Option(keys.SKIP, False, _read_boolean, '"true" or "false"', lambda skipped: not skipped)
PLACEMENT: Final[Option[Placement]] = Option(
    keys.PLACEMENT, Placement.PIN, Placement, "Pin or Guard", lambda placement: placement is Placement.PIN
)
WHEN_UNPLACEABLE: Final[Option[WhenUnplaceable]] = Option(
    keys.WHEN_UNPLACEABLE,
    WhenUnplaceable.GUARD,
    WhenUnplaceable,
    "Guard, Deny or Admit",
    (WhenUnplaceable.ADMIT, WhenUnplaceable.GUARD, WhenUnplaceable.DENY).index,
)
# With any other key the host is a second level, so a host's own limit holds beside it.
TOPOLOGY_KEY: Final[Option[str]] = Option(
    keys.TOPOLOGY_KEY, keys.HOSTNAME, _read_label_key, "a label key", lambda key: key != keys.HOSTNAME
)
COPIES: Final[Option[int]] = Option(keys.COPIES, 3, _read_whole_number, "a whole number from 1 on", float)
MIN_DOMAINS: Final[Option[int | None]] = Option(
    keys.MIN_DOMAINS,
    None,
    _read_whole_number,
    "a whole number from 1 on",
    lambda domains: math.inf if domains is None else domains,
)


def of_group(component: str, carriers: OptionCarriers) -> Options:
    """The options in force for a group of this component as a whole."""
    return resolve(component, pod=EMPTY, group_objects=tuple(carriers.group_objects.values()), cluster=carriers.cluster)


def of_pod(component: str, pod: Pod, carriers: OptionCarriers) -> Options:
    """The options in force for a pod of a group of this component.

    The pod of a generic set whose class is none, so that nobody knows how many of it may be together, is only guarded.
    """
    made_by = carriers.group_objects.get(pod.labels.get(keys.V2_GROUP, ""), EMPTY)
    found = resolve(
        component,
        pod=pod.annotations,
        group_objects=tuple(carriers.group_objects.values()),
        cluster=carriers.cluster,
        own=made_by if carriers.by_label else None,
    )
    problem = class_problem(component, pod)
    if not problem:
        return found
    set_by = {**found.set_by, keys.PLACEMENT: f"the label {keys.CLASS_LABEL}"}
    return replace(found, placement=Placement.GUARD, problems=(problem, *found.problems), set_by=set_by)


def class_problem(component: str, pod: Pod) -> str:
    """What is wrong with the class of a generic set's pod, "" if nothing is, or it is none of these."""
    value = pod.labels.get(keys.CLASS_LABEL, component)
    if component not in tuple(MemberClass) or value in tuple(MemberClass):
        return ""
    return f'the label {keys.CLASS_LABEL} is "{_shown(value)}": quorum or replicated is right, only the guard is used'


def with_class_problems(options: Options, component: str, pods: Iterable[Pod]) -> Options:
    """A group's options, with what is wrong with the class of these pods of it."""
    wrong = filter(None, (class_problem(component, pod) for pod in pods))
    return replace(options, problems=tuple(dict.fromkeys((*wrong, *options.problems))))


def resolve(
    component: str,
    *,
    pod: Annotations,
    group_objects: Sequence[Annotations],
    cluster: Annotations,
    own: Annotations | None = None,
) -> Options:
    """The options of one pod, from the annotations of each object.

    `group_objects`: v2, all group objects of the group; generic, the StatefulSet; v1, none. `own`: of the group
    object that made the pod, so that it does not get another one's skip; None where that is not known.
    `cluster`: of the TidbCluster, DMCluster or v2 Cluster, where upstream's own topology key is honoured too.
    """
    above = Level("cluster object", (cluster,), {keys.TOPOLOGY_KEY: keys.UPSTREAM_TOPOLOGY_KEY})
    shared = (Level("group object", group_objects), above)
    of_pod = (Level("pod", (pod,)), Level("group object", group_objects if own is None else (own,)), above)
    reading = _Reading(component)
    options = Options(
        skip=reading.value(SKIP, of_pod),
        placement=reading.value(PLACEMENT, of_pod),
        when_unplaceable=reading.value(WHEN_UNPLACEABLE, of_pod),
        topology_key=reading.value(TOPOLOGY_KEY, shared),
        copies=reading.value(COPIES, shared),
        min_domains=reading.value(MIN_DOMAINS, shared),
        set_by=reading.set_by,
    )
    strange = [text for level in of_pod for carried in level.objects for text in strange_keys(carried, level.where)]
    return replace(options, problems=tuple(dict.fromkeys((*reading.problems, *strange))))


class _Reading:
    """Reads the options of one component. `problems`: what cannot be used; `set_by`: where each option stands."""

    def __init__(self, component: str) -> None:
        self._component = component
        self.problems: list[str] = []
        self.set_by: dict[str, str] = {}

    def value(self, option: Option[Value], levels: Sequence[Level]) -> Value:
        """The option's value by the first level that has it, else its default."""
        for level in levels:
            given = _set_on(option, self._component, level)
            found = [_read(option, key, value, level, self.problems) for key, value in given]
            if found:
                # By the text too: every member must get the same, whatever the order of the objects.
                chosen = max(found, key=lambda value: (option.strictness(value), _text(value)))
                if any(value != chosen for value in found):
                    self.problems.append(f"{level.where}s disagree on {option.name}: {_text(chosen)} is used")
                self.set_by[option.name] = f"annotation {given[found.index(chosen)][0]} of the {level.where}"
                return chosen
        return option.default


def _set_on(option: Option[Value], component: str, level: Level) -> list[tuple[str, str]]:
    """Key and text of the annotation that counts on each object of the level that has one."""
    ours = (f"{keys.PREFIX}{component}.{option.name}", f"{keys.PREFIX}{option.name}")
    candidates = (*ours, level.foreign_keys.get(option.name, ours[-1]))
    found = []
    for carried in level.objects:
        key = next((key for key in candidates if key in carried), None)
        if key is not None:
            found.append((key, carried[key]))
    return found


def _read(option: Option[Value], key: str, value: str, level: Level, problems: list[str]) -> Value:
    try:
        return option.read(value)
    except ValueError:
        problems.append(
            f'annotation {key} of the {level.where} is "{_shown(value)}": {option.right} is right, '
            f"{_text(option.default)} is used"
        )
        return option.default


def _shown(value: str) -> str:
    return value if len(value) <= SHOWN_CHARACTERS else value[: SHOWN_CHARACTERS - 3] + "..."


def _text(value: object) -> str:
    """A value as one would write it in an annotation."""
    if isinstance(value, bool):
        return str(value).lower()
    return "the default" if value is None else str(value)
