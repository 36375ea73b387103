"""What could not be found out, in a sentence: which call failed, and what to do about it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from webhook.cluster.kinds import DUMP_COMMAND
from webhook.errors import (
    ApiError,
    DumpError,
    Forbidden,
    NoAnswer,
    NotFound,
    OutOfTime,
    TooManyRequests,
    UnknownOutcome,
)
from webhook.settings import ClusterSource, Settings

# Python's own word for a certificate that fails verification.
UNTRUSTED: Final = "SSLCertVerificationError"


@contextmanager
def in_words(settings: Settings) -> Iterator[None]:
    """Turn what a read of the cluster raises into `NoAnswer`."""
    try:
        yield
    except DumpError as error:
        raise NoAnswer(str(error)) from error
    except (ApiError, OutOfTime) as error:
        raise NoAnswer(sentence(error, settings)) from error


def sentence(error: ApiError | OutOfTime, settings: Settings) -> str:
    """Which call failed and what to do, without the exception's own words where they say nothing to people."""
    if isinstance(error, OutOfTime):
        return f"{settings.describe_source()} was too slow: the time of --timeout is used up; give more"
    call = " ".join(filter(None, (error.verb, error.resource, error.name)))
    if isinstance(error, Forbidden):
        return _forbidden(error, call)
    if isinstance(error, TooManyRequests):
        return (
            f"{call}: the API server has too much to do (429) and asks to wait {error.retry_after:g} s more; try again"
            " then, or give a longer --timeout"
        )
    if isinstance(error, NotFound) and settings.source is ClusterSource.DUMP:
        return f"{call}: not in the dump{_detail(error)}; it is to be made by: {DUMP_COMMAND}"
    if isinstance(error, NotFound) and not error.name:
        return (
            f"{call}: {settings.describe_source()} does not know this kind (404){_detail(error)}; is the address that"
            " of an API server? kubectl cluster-info says what it is"
        )
    if isinstance(error, UnknownOutcome) and UNTRUSTED in error.detail:
        return (
            f"{call}: {settings.describe_source()} has a certificate that is not trusted{_detail(error)}; the"
            " kubeconfig needs the cluster's current certificate-authority-data and name of the server"
        )
    if isinstance(error, UnknownOutcome) and error.status is None:
        return (
            f"{call}: no answer from {settings.describe_source()}{_detail(error)}; is it the right one, is it up, and"
            " can it be reached from here?"
        )
    return str(error)


def _forbidden(error: Forbidden, call: str) -> str:
    if error.status == 401:
        return f"{call}: the API server does not know who we are (401){_detail(error)}; renew the credentials"
    return (
        f"{call}: not allowed{_detail(error)}; a role with the verb {error.verb} on {error.resource} is needed:"
        f" kubectl auth can-i {error.verb} {error.resource} -A"
    )


def _detail(error: ApiError) -> str:
    return f" ({' '.join(error.detail.split())})" if error.detail else ""
