"""The texts of what users are told: by cause, and by outcome for those that go back to their data."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final

from webhook.core import node_filters, resources
from webhook.core.model import Decision
from webhook.core.outcomes import Cause, Outcome
from webhook.core.remedies import in_the_way, is_of_rule, remedy_for


@dataclass(frozen=True, slots=True)
class Text:
    """What is said of one cause.

    `short`: cause and what to do in a few words, for warnings. `why`: the cause as a sentence's end.
    `remedy`: what to mend, sentences; `then`: what becomes of a pod that is there and waits. `warns`: whether a
    warning is due; not where the user asked for it.
    """

    short: str
    why: str
    remedy: str
    then: str = ""
    warns: bool = True

    @property
    def advice(self) -> str:
        """What to do, sentences."""
        return " ".join(filter(None, (self.remedy, self.then)))


ANEW: Final = "kubectl delete pod has it decided anew."
OF_DENIED: Final = "Its owner tries again by itself, with a delay that doubles up to about 16 minutes."
OF_ADMITTED: Final = f"Until then the scheduler may put it beside a sibling; {ANEW}"

NONE_CAN: Final = "no node can take it"
"""The cause where no node is possible at all, so that the cap has nothing to do with it."""

TEXTS: Final[Mapping[Cause | Outcome, Text]] = {
    Cause.NO_SAFE_NODE: Text(
        "no safe node; see its event, then add a node",
        "no node that can take it is within the cap of its group",
        "Add a node, or make one of those that are there possible.",
        "The scheduler starts it on a node without siblings by itself; for any other node, kubectl delete pod.",
    ),
    Cause.UNKNOWN_DOMAIN: Text(
        "a sibling's domain is unknown; see its event",
        "it is not known where a sibling is, or its node lacks the topology key",
        "Bring the sibling's node or its label back, or delete that sibling's pod.",
        f"Then {ANEW}",
    ),
    Cause.NO_LOCK_CLAIM: Text(
        "no claim to lock on; label its claims",
        "its group has no PersistentVolumeClaim to lock on, or its own claim is missing or being deleted",
        "Use volumeClaimTemplates, or give the claims the labels of the group's pods.",
        f"Then {ANEW}",
    ),
    Cause.BUDGET_USED_UP: Text(
        "no time left to decide; delete the pod to retry",
        "the time-out of the admission was used up before a node was confirmed",
        "If this is frequent, raise timeoutSeconds.",
        ANEW,
    ),
    Cause.BUSY: Text(
        "its group is busy; delete the pod to retry",
        "too many pods of its group were waiting to be placed",
        "",
        ANEW,
    ),
    Cause.API_TROUBLE: Text(
        "the API server failed; delete the pod to retry",
        "the API server did not answer as it should",
        "The webhook's log has the failed call.",
        ANEW,
    ),
    Cause.API_FORBIDDEN: Text(
        "RBAC forbids a call; see the webhook's log",
        "the webhook's service account may not do what it has to",
        "Grant its service account the verb that is named here.",
        f"Then {ANEW}",
    ),
    Cause.NEWER_FORMAT: Text(
        "records of a newer version; finish the upgrade",
        "the group's records are of a newer version of the webhook than the one that was asked",
        "Finish the upgrade, so that all replicas run one version.",
        f"Then {ANEW}",
    ),
    Cause.GUARD_OPTION: Text(
        "the option placement is Guard",
        "the option placement is Guard",
        "Nothing to do: the scheduler chooses a node apart from its siblings.",
        warns=False,
    ),
    Cause.OTHER_SCHEDULER: Text(
        "another scheduler places it; see schedulerName",
        "its schedulerName is one that pods are not pinned for",
        "Nothing to do if this is meant; else use the default scheduler.",
    ),
    Cause.TIDB_SCHEDULER: Text(
        "tidb-scheduler places it; use one of the two",
        "its schedulerName is tidb-scheduler, and two deciders must not work on one pod",
        "Set the cluster's schedulerName to default-scheduler, or take the webhook off it with the option skip.",
    ),
    Cause.REQUESTER_FIELDS: Text(
        "its own affinity leaves no way; see its event",
        "the fields that its operator sets, and sets again, leave no way to do what was decided",
        "Remove the required affinity or the nodeSelector from the group's overlay, or set the option placement "
        "to Guard and give it required anti-affinity against its whole group.",
    ),
    Cause.SET_OF_ONE: Text(
        "its set has one member",
        "its set has one member, so there is nothing to keep apart",
        "Nothing to do.",
        warns=False,
    ),
    Cause.SKIP_OPTION: Text(
        "the option skip is set",
        "the option skip is set",
        "Nothing to do while it runs; remove the option to have it placed. If it waits, siblings with a guard keep it "
        "off their nodes: have one of these created anew.",
        warns=False,
    ),
    Cause.NOT_A_MEMBER: Text(
        "it is of no group",
        "it is not a member of a group that is kept apart",
        "Nothing to do, unless it should be one.",
        warns=False,
    ),
    Cause.UNUSABLE_SELECTOR: Text(
        "its set's selector has no matchLabels; add some",
        "the selector of its StatefulSet has no matchLabels, so its siblings and claims cannot be found",
        "Re-create the StatefulSet with matchLabels in its selector.",
    ),
    Cause.INTERNAL: Text(
        "an error of the webhook; see its log, report it",
        "an error inside the webhook",
        "Report it with the webhook's log.",
        f"Then {ANEW}",
    ),
    Outcome.RETURNED: Text(
        "its domain is above the cap; move a sibling",
        "its volumes allow only this domain, which holds more members than the cap",
        "Move a sibling's data to another domain: scale out, then delete one store's pod and claim at a time.",
    ),
    Outcome.RETURNED_WAITING: Text(
        "no node there is possible now; repair or uncordon",
        "its volumes allow only one domain, and it can be pinned to no node there now",
        "Repair or uncordon a node there; the scheduler then starts it without further help. If it is gone for good, "
        "docs/emergency.md has how its copy is given up.",
    ),
}

RETURNED_IN_DOUBT: Final = Text(
    "its domain may get above the cap; see its event",
    "its volumes allow only this domain, which others could bring above the cap",
    "Delete the pending pods that are named here, so that they are decided anew; of a sibling whose place is not known "
    "bring the node back, or delete its pod.",
)
"""Of a return to a domain that is within the cap as far as is known: nobody's data has to be moved."""

HOME_IS_FULL: Final = Text(
    "the node of its data has no room; make some",
    "its volumes allow only one domain, where no node has room for it now",
    "Move other pods away from a node there; the scheduler then starts it by itself.",
)
HOME_IS_TAKEN: Final = Text(
    "a guarded sibling is in the way; see its event",
    "its volumes allow only one domain, and a guarded sibling keeps it off the nodes there",
    "Delete the sibling that is named as in the way; the scheduler then starts this pod by itself.",
)
"""Why a member waits for the node of its data though nothing is wrong with the node."""

# How the API server says that an object is not there which says how many members there are.
_NO_OWNER: Final = re.compile(r"(?:get|list) (statefulsets|pdgroups|tikvgroups|dmgroups) ?(\S*): 404\b")
_LONGEST_NAME: Final = 253
# What the detail of a return says of the nodes there.
_BROKEN: Final = (node_filters.UNSCHEDULABLE, node_filters.NOT_READY)
_FULL: Final = ("Insufficient ", resources.TOO_MANY_PODS)
_IN_THE_WAY: Final = "kubectl delete pod "
_OWNERS: Final = {"pdgroups": "PDGroup", "tikvgroups": "TiKVGroup", "dmgroups": "DMGroup"}


def text_of(decision: Decision) -> Text | None:
    """The texts for a decision: those of its cause if there is one, else of its outcome; None if all is well.

    Where there is no safe node they follow from what is in the way; what becomes of the pod follows from the outcome.
    """
    text = TEXTS.get(decision.cause) or TEXTS.get(decision.outcome)
    if text is None:
        return None
    text = _of_a_return(decision, text)
    if decision.cause is Cause.NO_SAFE_NODE:
        remedy = remedy_for(decision)
        why = _why(decision, text.why)
        text = replace(text, short=remedy.short, why=why, remedy=remedy.advice)
    elif decision.cause is Cause.API_TROUBLE and (missing := _NO_OWNER.match(decision.detail)):
        text = _without_owner(missing[1], missing[2], text.then)
    if text.then and decision.outcome in _THEN:
        text = replace(text, then=_THEN[decision.outcome])
    return text


def _why(decision: Decision, by_the_cap: str) -> str:
    """Why no node is safe: since siblings are in the way, else by the cap, else because none can take it."""
    if names := in_the_way(decision):
        who = f"{names[0]} and {len(names) - 1} more of its group are" if names[1:] else f"{names[0]} of its group is"
        return f"{who} in the way on the nodes that could take it"
    return by_the_cap if is_of_rule(decision) else NONE_CAN


def _of_a_return(decision: Decision, text: Text) -> Text:
    """The text of one that goes back to its data, by what is in doubt or in the way there; any other as it is."""
    if text is TEXTS[Outcome.RETURNED] and not decision.above_cap:
        return RETURNED_IN_DOUBT
    if text is not TEXTS[Outcome.RETURNED_WAITING] or any(word in decision.detail for word in _BROKEN):
        return text
    if _IN_THE_WAY in decision.detail:
        return HOME_IS_TAKEN
    return HOME_IS_FULL if any(word in decision.detail for word in _FULL) else text


def _without_owner(plural: str, name: str, then: str) -> Text:
    kind = _OWNERS.get(plural, "StatefulSet")
    return Text(
        f"its {kind} is not there; create it, or add it",
        f"its {kind}{f' {name[:_LONGEST_NAME]}' if name else ''} is not there, which says how many members there are",
        f"Create the {kind}, or, on a dump, add it there.",
        then,
    )


_THEN: Final[Mapping[Outcome, str]] = {Outcome.DENIED: OF_DENIED, Outcome.ADMITTED: OF_ADMITTED}
