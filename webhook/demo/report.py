"""What the demo shows: the incident, two tables, one decision record, and what to try next."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from rich.console import Console
from rich.table import Table
from rich.text import Text

from webhook.cluster.kinds import DUMP_COMMAND, DUMPED_OF_V1, DUMPED_OF_V2
from webhook.core.keys import DECISION
from webhook.core.model import Decision
from webhook.demo.incident import Incident
from webhook.demo.keep import DUMP, REVIEWS, SETS
from webhook.demo.replay import Placed
from webhook.demo.safety import Hazard

# ASCII only, so that no terminal's encoding is in the way.
_TRY: Final = "try"


class Report:
    """Prints the parts of the demo, one after another. `program` is what to type to run this program again."""

    def __init__(self, console: Console, incident: Incident, program: str) -> None:
        self._console = console
        self._incident = incident
        self._program = program

    def incident(self) -> None:
        """What happened, and what is made up."""
        incident = self._incident
        self._heading(f"The incident: {incident.source}, {incident.date}")
        self._say(
            "Six nodes, and the pods of a new TiDB cluster. Its three TiKV pods were decided on within 0.6 s,"
            " before any of them had a node, so no decision knew of the others. Where the report begins, all three"
            " stores run on 172.16.30.98: that one node holds every copy of the data."
        )
        self._say(
            "This is a reconstruction: the report does not say how full the nodes were. Here"
            f" {incident.emptiest} is made the emptiest, so that it draws every pod that knows of no other."
        )

    def without(self, decisions: Mapping[str, Decision], hazards: Sequence[Hazard]) -> None:
        """The table of what happens when each pod is decided on what is visible."""
        self._heading("1. Decided on what was visible")
        self._say(
            "The product's own placement code, but without its lock: a sibling counts only once it has a node, as it"
            " did for the scheduler then. SEEN is how many had one, by the report's log."
        )
        table = self._table("POD", "DECIDED AT", "SEEN", "POSSIBLE", "NODE")
        for decided in self._incident.decisions:
            decision = decisions[decided.pod]
            possible = f"{len(self._incident.nodes) - len(decision.passed_over)} of {len(self._incident.nodes)}"
            table.add_row(
                decided.pod,
                decided.at,
                str(decided.siblings),
                possible,
                self._node(decided.pod, decision.node, hazards),
            )
        self._console.print(table)
        self._judge(hazards)

    def with_webhook(self, placed: Sequence[Placed], hazards: Sequence[Hazard]) -> None:
        """The table of what the webhook answered."""
        self._heading("2. With the webhook")
        self._say(
            "The real server over HTTPS in a process of its own. PD's pods are asked for one after another, as it"
            " was; the three TiKV pods at the same moment, each on a connection of its own."
        )
        table = self._table("POD", "OUTCOME", "CAP", "ANSWERED IN", "NODE")
        for each in placed:
            record = each.answer.record
            outcome = each.answer.audit.get("outcome", "allowed" if each.answer.allowed else "refused")
            cap = str(record.get("cap", "-"))
            node = self._node(each.pod, each.answer.node or "-", hazards)
            table.add_row(each.pod, outcome, cap, f"{1000 * each.seconds:.0f} ms", node)
        self._console.print(table)
        self._judge(hazards)

    def record(self, placed: Placed) -> None:
        """The decision record that a pod carries."""
        self._heading(f"Why: the decision record on {placed.pod}")
        self._say(f"It is the pod's annotation {DECISION}.")
        self._console.print_json(data=placed.answer.record)

    def what_next(self, kept: Path | None) -> None:
        """Commands to go on with."""
        self._heading("What to try next")
        folder = kept or Path(_TRY)
        if kept is None:
            self._command("this replay's dump, StatefulSets and reviews, as files", f"demo --keep {_TRY}")
        dump, sets = shlex.quote(str(folder / DUMP)), shlex.quote(str(folder / SETS))
        review = shlex.quote(str(folder / REVIEWS / f"{self._incident.decisions[-1].pod}.json"))
        self._command("all answers at once, without a server", f"plan --cluster {dump} -f {sets}")
        self._command(
            "the webhook, to be asked by hand in another terminal", f"serve --cluster {dump} --log-format text"
        )
        self._line(f"  curl -H 'Content-Type: application/json' --data-binary @{review} http://localhost:8443/mutate")
        self._line("# the same with your own cluster's state")
        self._line(f"  {DUMP_COMMAND} > dump.yaml")
        self._line(f"# where tidb-operator is installed, with its kinds too: ,{DUMPED_OF_V1}")
        self._line(f"# or, of version 2: ,{DUMPED_OF_V2}")

    def _command(self, what: str, arguments: str) -> None:
        self._line(f"# {what}")
        self._line(f"  {self._program} {arguments}")

    def _heading(self, text: str) -> None:
        self._console.print()
        self._console.print(Text(text, style="bold"))

    def _say(self, text: str) -> None:
        self._console.print(Text(text))

    def _line(self, text: str) -> None:
        # Never broken by us: it is there to be copied.
        self._console.print(Text(text), soft_wrap=True)

    def _judge(self, hazards: Sequence[Hazard]) -> None:
        for hazard in hazards:
            self._console.print(Text(f"NOT HA-SAFE: {hazard.text}", style="red"))
        if not hazards:
            self._console.print(Text("HA-SAFE: no node holds more than its share", style="green"))

    def _node(self, pod: str, node: str, hazards: Sequence[Hazard]) -> Text:
        unsafe = any(hazard.node == node and pod in self._incident.components[hazard.component] for hazard in hazards)
        return Text(node, style="red" if unsafe else "")

    def _table(self, *headings: str) -> Table:
        table = Table(box=None, pad_edge=False)
        for heading in headings:
            table.add_column(heading, overflow="fold")
        return table
