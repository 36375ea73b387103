"""All checks in the order in which they are read; what one cannot read is a line, not the end."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from time import time
from typing import Final

from webhook.errors import ApiError, Forbidden, NotFound, OutOfTime
from webhook.operating.connecting import Connection
from webhook.operating.doctor import members, permissions, registration, server, serving
from webhook.operating.doctor.lines import Line, skip, unread
from webhook.operating.doctor.patient import Patient, not_allowed
from webhook.operating.failures import sentence

Check = Callable[[Patient], Iterator[Line]]

CHECKS: Final[tuple[tuple[str, Check], ...]] = (
    ("clock", server.clock),
    ("API servers' clocks", server.siblings),
    ("your permissions", permissions.of_the_user),
    ("configuration", registration.configuration),
    ("while we are away", registration.floor),
    ("replicas", serving.replicas),
    ("webhook's permissions", permissions.of_the_webhook),
    ("controller", serving.leader),
    ("controller's permissions", permissions.of_the_controller),
    ("CA bundle", serving.bundle),
    ("certificate", serving.certificate),
    ("selectors", registration.selectors),
    ("other mutators", registration.mutators),
    ("groups", members.groups),
    ("classes", members.classes),
    ("members", members.strangers),
    ("guarded and running", members.guards),
    ("PD's isolation", members.isolation),
    ("lock claims", members.claims),
    ("records", members.records),
    ("autoscalers", members.autoscalers),
)


def examine(connection: Connection, clock: Callable[[], float] = time) -> Iterator[Line]:
    """The lines of all checks. Raises `errors.ApiError` or OutOfTime where not even the version can be asked for.

    `clock` is this machine's, in seconds since 1970.
    """
    patient = Patient(connection, clock)
    yield from server.version(patient)
    for about, check in CHECKS:
        try:
            yield from tuple(check(patient))
        except Forbidden as error:
            yield unread(about, *not_allowed(error))
        except NotFound as error:
            yield skip(about, f"not looked at: {error}")
        except (ApiError, OutOfTime) as error:
            yield unread(about, f"not checked: {sentence(error, connection.settings)}", "ask again")
