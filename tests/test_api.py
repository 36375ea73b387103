"""The API door against a server that answers as it is told: what is sent, once, and what answers become."""

from __future__ import annotations

import json
import ssl
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path
from typing import Any

import pytest
import trustme
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from fake_api_server import (
    DATE_SECONDS,
    RESET,
    STALL,
    FakeApiServer,
    Reply,
    Stream,
    fake_api_server,
    json_reply,
    status_reply,
    watch_line,
)
from kubernetes.client import Configuration

from webhook.cluster import credentials
from webhook.cluster.api import ApiDoor
from webhook.cluster.door import (
    ANY_VALUE,
    CLAIMS,
    EVENTS,
    NODES,
    PODS,
    STORAGE_CLASSES,
    Door,
    EventType,
    Listing,
    WatchEvent,
)
from webhook.errors import (
    ApiError,
    Conflict,
    Forbidden,
    Gone,
    Invalid,
    NotFound,
    OutOfTime,
    SettingsError,
    TooManyRequests,
    UnknownOutcome,
)

TIMEOUT = 5.0
SECRET = "s3cr3t-t0k3n"
LIST = {"kind": "PodList", "apiVersion": "v1", "metadata": {"resourceVersion": "7"}, "items": []}


@pytest.fixture
def server() -> Iterator[FakeApiServer]:
    with fake_api_server() as running:
        yield running


@pytest.fixture
def door(server: FakeApiServer) -> Iterator[ApiDoor]:
    api_door = ApiDoor(configuration_for(server.url))
    yield api_door
    api_door.close()


def configuration_for(url: str, **settings: Any) -> Configuration:
    configuration = Configuration(host=url, **settings)
    configuration.api_key["BearerToken"] = f"Bearer {SECRET}"
    return configuration


def swap(door: Door, timeout: float = TIMEOUT) -> object:
    patch = {"metadata": {"resourceVersion": "5", "annotations": {"a": SECRET}}}
    return door.merge_patch(CLAIMS, "c", patch, namespace="n", timeout=timeout)


CALLS: dict[str, Callable[[Door], object]] = {
    "list": lambda door: door.list(PODS, namespace="n", timeout=TIMEOUT),
    "get": lambda door: door.get(CLAIMS, "c", namespace="n", timeout=TIMEOUT),
    "patch": swap,
    "create": lambda door: door.create(EVENTS, {"metadata": {"name": "e"}}, namespace="n", timeout=TIMEOUT),
    "delete": lambda door: door.delete(PODS, "p", namespace="n", timeout=TIMEOUT),
}


# What is sent


@pytest.mark.parametrize(
    ("call", "method", "target", "content_type"),
    [
        pytest.param(CALLS["list"], "GET", "/api/v1/namespaces/n/pods", None, id="list"),
        pytest.param(
            lambda door: door.list(
                PODS,
                labels={"a/b": "c", "e": ANY_VALUE, "d": ""},
                fields={"spec.nodeName": "n1"},
                resource_version="0",
                timeout=TIMEOUT,
            ),
            "GET",
            "/api/v1/pods?labelSelector=a%2Fb%3Dc%2Cd%3D%2Ce&fieldSelector=spec.nodeName%3Dn1&resourceVersion=0",
            None,
            id="list with selectors",
        ),
        pytest.param(
            lambda door: door.get(STORAGE_CLASSES, "fast/?", timeout=TIMEOUT),
            "GET",
            "/apis/storage.k8s.io/v1/storageclasses/fast%2F%3F",
            None,
            id="get, odd name",
        ),
        pytest.param(
            CALLS["patch"],
            "PATCH",
            "/api/v1/namespaces/n/persistentvolumeclaims/c?fieldManager=tidb-ha-webhook",
            "application/merge-patch+json",
            id="patch",
        ),
        pytest.param(
            CALLS["create"],
            "POST",
            "/api/v1/namespaces/n/events?fieldManager=tidb-ha-webhook",
            "application/json",
            id="create",
        ),
        pytest.param(CALLS["delete"], "DELETE", "/api/v1/namespaces/n/pods/p", "application/json", id="delete"),
        pytest.param(
            lambda door: door.get(NODES, "n1", namespace="n", timeout=TIMEOUT),
            "GET",
            "/api/v1/nodes/n1",
            None,
            id="node",
        ),
    ],
)
def test_each_verb_is_one_request_with_method_target_and_type(
    server: FakeApiServer,
    door: ApiDoor,
    call: Callable[[Door], object],
    method: str,
    target: str,
    content_type: str | None,
) -> None:
    server.answer_with(json_reply(LIST))
    call(door)
    [asked] = server.asked
    assert (asked.method, asked.path, asked.headers.get("Content-Type")) == (method, target, content_type)
    assert asked.headers["Accept"] == "application/json"
    assert asked.headers["User-Agent"] == "tidb-ha-webhook"


@pytest.mark.parametrize("verb", CALLS)
def test_the_token_leaves_the_process_with_every_call(server: FakeApiServer, door: ApiDoor, verb: str) -> None:
    server.answer_with(json_reply(LIST))
    CALLS[verb](door)
    sent = {name.lower(): value for name, value in server.asked[0].headers.items()}
    assert sent["authorization"] == f"Bearer {SECRET}"


def test_without_credentials_no_authorization_is_sent(server: FakeApiServer) -> None:
    door = ApiDoor(Configuration(host=server.url))
    door.get(CLAIMS, "c", namespace="n", timeout=TIMEOUT)
    door.close()
    assert "authorization" not in {name.lower() for name in server.asked[0].headers}


def test_a_patch_is_sent_as_it_is(server: FakeApiServer, door: ApiDoor) -> None:
    swap(door)
    assert server.asked[0].json() == {"metadata": {"resourceVersion": "5", "annotations": {"a": SECRET}}}


def test_a_created_object_says_what_it_is(server: FakeApiServer, door: ApiDoor) -> None:
    CALLS["create"](door)
    assert server.asked[0].json() == {"metadata": {"name": "e"}, "apiVersion": "v1", "kind": "Event"}


@pytest.mark.parametrize(
    ("conditions", "preconditions"),
    [({}, {}), ({"uid": "u", "resource_version": "5"}, {"uid": "u", "resourceVersion": "5"})],
    ids=["none", "both"],
)
def test_a_delete_carries_its_preconditions(
    server: FakeApiServer, door: ApiDoor, conditions: dict[str, str], preconditions: dict[str, str]
) -> None:
    door.delete(PODS, "p", namespace="n", timeout=TIMEOUT, **conditions)
    assert server.asked[0].json()["preconditions"] == preconditions


def test_connections_are_kept_for_later_calls(server: FakeApiServer, door: ApiDoor) -> None:
    for _ in range(3):
        CALLS["get"](door)
    assert len({asked.connection for asked in server.asked}) == 1


def test_a_forked_process_has_connections_of_its_own(server: FakeApiServer) -> None:
    processes = iter([1, 1, 2, 2])
    door = ApiDoor(configuration_for(server.url), process=lambda: next(processes))
    for _ in range(3):
        CALLS["get"](door)
    door.close()
    first, again, forked = (asked.connection for asked in server.asked)
    assert first is again
    assert forked is not first


def test_a_door_that_was_never_used_can_be_closed() -> None:
    ApiDoor(configuration_for("http://127.0.0.1:9")).close()


@pytest.mark.parametrize(
    "call",
    [
        lambda door: door.get(CLAIMS, "..", namespace="n", timeout=TIMEOUT),
        lambda door: door.get(CLAIMS, "c", namespace="..", timeout=TIMEOUT),
        lambda door: door.delete(PODS, "", namespace="n", timeout=TIMEOUT),
        lambda door: door.list(PODS, labels={"a": "b,c"}, timeout=TIMEOUT),
        lambda door: door.list(PODS, labels={"a!": "b"}, timeout=TIMEOUT),
    ],
    ids=["a name", "a namespace", "a collection", "a value", "a key"],
)
def test_what_would_mean_something_else_in_a_request_is_not_sent(
    server: FakeApiServer, door: ApiDoor, call: Callable[[Door], object]
) -> None:
    with pytest.raises((NotFound, Invalid)):
        call(door)
    assert server.asked == []


def test_a_kubeconfig_names_the_server(server: FakeApiServer, tmp_path: Path) -> None:
    parts = {
        "current-context": "a",
        "contexts": [{"name": "a", "context": {"cluster": "a", "user": "a"}}],
        "clusters": [{"name": "a", "cluster": {"server": server.url}}],
        "users": [{"name": "a", "user": {"token": SECRET}}],
    }
    (tmp_path / "config").write_text(json.dumps(parts))
    door = ApiDoor(credentials.from_kubeconfig(str(tmp_path / "config")))
    CALLS["get"](door)
    door.close()
    assert {name.lower(): value for name, value in server.asked[0].headers.items()}[
        "authorization"
    ] == f"Bearer {SECRET}"


def test_outside_a_pod_there_is_no_door(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)
    with pytest.raises(SettingsError, match="--in-cluster"):
        credentials.in_cluster()


# What answers become


def test_an_object_comes_as_it_was_sent(server: FakeApiServer, door: ApiDoor) -> None:
    manifest = {"metadata": {"name": "c", "unknownField": [1, None]}, "x": {"y": "ü"}}
    server.answer_with(json_reply(manifest))
    assert door.get(CLAIMS, "c", namespace="n", timeout=TIMEOUT) == manifest


def test_a_list_has_items_that_say_what_they_are_version_and_date(server: FakeApiServer, door: ApiDoor) -> None:
    items = [{"metadata": {"name": "a"}}, {"apiVersion": "v2", "kind": "K", "metadata": {"name": "b"}}]
    server.answer_with(json_reply({**LIST, "items": items}))
    assert door.list(PODS, namespace="n", timeout=TIMEOUT) == Listing(
        items=(
            {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}},
            {"apiVersion": "v2", "kind": "K", "metadata": {"name": "b"}},
        ),
        resource_version="7",
        date=DATE_SECONDS,
    )


@pytest.mark.parametrize("listing", [{**LIST, "items": None}, {"metadata": None}, {}], ids=["null", "absent", "empty"])
def test_a_list_without_items_is_empty(server: FakeApiServer, door: ApiDoor, listing: Any) -> None:
    server.answer_with(json_reply(listing))
    assert door.list(PODS, timeout=TIMEOUT).items == ()


@pytest.mark.parametrize(
    "listing",
    [
        {**LIST, "items": "a"},
        {**LIST, "items": ["a"]},
        {**LIST, "items": [{"metadata": None}]},
        {**LIST, "metadata": {"continue": "next"}},
    ],
    ids=["no list", "no object", "no metadata", "incomplete"],
)
def test_a_list_that_cannot_be_relied_on_is_an_unknown_outcome(
    server: FakeApiServer, door: ApiDoor, listing: Any
) -> None:
    server.answer_with(json_reply(listing))
    with pytest.raises(UnknownOutcome):
        door.list(PODS, timeout=TIMEOUT)


@pytest.mark.parametrize("headers", [{}, {"Date": ""}, {"Date": "yesterday"}], ids=["absent", "empty", "garbage"])
def test_a_list_without_the_servers_time_is_an_unknown_outcome(
    server: FakeApiServer, door: ApiDoor, headers: dict[str, str]
) -> None:
    server.answer_with(Reply(body=b'{"items": []}', headers=headers))
    with pytest.raises(UnknownOutcome, match="Date"):
        door.list(PODS, timeout=TIMEOUT)


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (301, UnknownOutcome),
        (400, Invalid),
        (401, Forbidden),
        (403, Forbidden),
        (404, NotFound),
        (405, Invalid),
        (408, UnknownOutcome),
        (409, Conflict),
        (410, Gone),
        (413, Invalid),
        (415, Invalid),
        (422, Invalid),
        (429, TooManyRequests),
        (500, UnknownOutcome),
        (503, UnknownOutcome),
        (504, UnknownOutcome),
    ],
)
@pytest.mark.parametrize("verb", CALLS)
def test_every_refusal_is_asked_once_and_becomes_its_error(
    server: FakeApiServer, door: ApiDoor, verb: str, status: int, kind: type[ApiError]
) -> None:
    server.answer_with(status_reply(status, Location="/elsewhere", Retry_After="1"))
    with pytest.raises(ApiError) as caught:
        CALLS[verb](door)
    assert type(caught.value) is kind
    assert (caught.value.verb, caught.value.status) == (verb, status)
    assert len(server.asked) == 1


@pytest.mark.parametrize("verb", CALLS)
@pytest.mark.parametrize("trouble", [RESET, Reply(body=b'{"a": 1}', cut=4)], ids=["reset", "cut short"])
def test_a_lost_connection_is_an_unknown_outcome_and_asked_once(
    server: FakeApiServer, door: ApiDoor, verb: str, trouble: Reply | str
) -> None:
    server.answer_with(trouble)
    with pytest.raises(UnknownOutcome):
        CALLS[verb](door)
    assert len(server.asked) == 1


@pytest.mark.parametrize(
    "call",
    [lambda door: door.get(CLAIMS, "c", namespace="n", timeout=0.2), lambda door: swap(door, timeout=0.2)],
    ids=["get", "patch"],
)
def test_a_stall_is_an_unknown_outcome_and_asked_once(
    server: FakeApiServer, door: ApiDoor, call: Callable[[Door], object]
) -> None:
    server.answer_with(STALL)
    with pytest.raises(UnknownOutcome, match="Timeout"):
        call(door)
    assert len(server.asked) == 1


def test_a_trickle_beyond_the_time_is_an_unknown_outcome(server: FakeApiServer) -> None:
    times = iter([0.0, TIMEOUT + 1])
    door = ApiDoor(configuration_for(server.url), clock=lambda: next(times))
    with pytest.raises(UnknownOutcome, match="TimeoutError"):
        CALLS["get"](door)
    door.close()


@pytest.mark.parametrize(
    "body",
    [b"", b"<html>", b"[1]", b"null", b'{"a":', b"\xff\xfe", b"[" * 100_000],
    ids=["empty", "a page", "a list", "null", "half", "no text", "deep"],
)
def test_an_answer_that_is_no_object_is_an_unknown_outcome(server: FakeApiServer, door: ApiDoor, body: bytes) -> None:
    server.answer_with(Reply(body=body))
    with pytest.raises(UnknownOutcome) as caught:
        CALLS["get"](door)
    assert caught.value.status == 200


def test_a_refused_connection_is_an_unknown_outcome() -> None:
    with fake_api_server() as gone:
        url = gone.url
    door = ApiDoor(configuration_for(url))
    with pytest.raises(UnknownOutcome, match="Connection refused"):
        CALLS["get"](door)


@pytest.mark.parametrize("timeout", [0.0, -1.0])
def test_without_time_nothing_is_sent(server: FakeApiServer, door: ApiDoor, timeout: float) -> None:
    with pytest.raises(OutOfTime):
        swap(door, timeout)
    assert server.asked == []


@pytest.mark.parametrize(
    ("reply", "seconds"),
    [
        (status_reply(429, Retry_After="7"), 7.0),
        (json_reply({"kind": "Status", "details": {"retryAfterSeconds": 3}}, 429), 3.0),
        (status_reply(429), 1.0),
        (status_reply(429, Retry_After="Tue, 15 Sep 2026 10:20:30 GMT"), 1.0),
        (json_reply({"kind": "Status", "details": {"retryAfterSeconds": -3}}, 429), 1.0),
        (json_reply({"kind": "Status", "details": {"retryAfterSeconds": "3"}}, 429), 1.0),
        (Reply(429, b"slow down"), 1.0),
    ],
    ids=["header", "details", "neither", "a date", "negative", "text", "no status"],
)
def test_a_429_says_how_long_to_wait(server: FakeApiServer, door: ApiDoor, reply: Reply, seconds: float) -> None:
    server.answer_with(reply)
    with pytest.raises(TooManyRequests) as caught:
        CALLS["patch"](door)
    assert caught.value.retry_after == seconds


# Lists that are read while they come


def scanned(door: ApiDoor) -> tuple[list[str], str]:
    """The names that a scan visits, and the version that it returns."""
    names: list[str] = []
    version = door.scan(PODS, lambda pod: names.append(pod["metadata"]["name"]), resource_version="0", timeout=TIMEOUT)
    return names, version


@pytest.mark.parametrize("size", [1, 7, 100_000], ids=["byte by byte", "small parts", "at once"])
def test_a_scan_visits_each_item_whatever_the_parts_it_comes_in(
    server: FakeApiServer, door: ApiDoor, size: int
) -> None:
    listing = {**LIST, "items": [{"metadata": {"name": name, "note": "ü\\"}} for name in ("a", "b", "c")]}
    body = json.dumps(listing, ensure_ascii=False).encode()
    server.answer_with(Stream(tuple(body[at : at + size] for at in range(0, len(body), size))))
    assert scanned(door) == (["a", "b", "c"], "7")
    assert server.asked[0].path == "/api/v1/pods?resourceVersion=0"


def test_a_scan_is_read_in_pieces_that_do_not_grow_with_the_list(server: FakeApiServer, door: ApiDoor) -> None:
    item = json.dumps({"metadata": {"name": "a", "note": "x" * 10_000}}).encode()
    parts = (b'{"metadata": {"resourceVersion": "7"}, "items": [', *([item + b","] * 499), item, b"]}\n")
    server.answer_with(Stream(parts))
    names, version = scanned(door)
    assert (len(names), version) == (500, "7")


@pytest.mark.parametrize(
    "body",
    [b'{"items": null, "metadata": {"resourceVersion": "7"}}', b'{"metadata": {"resourceVersion": "7"}, "items": []}'],
    ids=["null", "empty"],
)
def test_a_scan_of_nothing_visits_nothing(server: FakeApiServer, door: ApiDoor, body: bytes) -> None:
    server.answer_with(Reply(body=body))
    assert scanned(door) == ([], "7")


def test_an_empty_object_has_neither_items_nor_a_version(server: FakeApiServer, door: ApiDoor) -> None:
    server.answer_with(Reply(body=b" {} "))
    assert scanned(door) == ([], "")


@pytest.mark.parametrize(
    "reply",
    [
        Stream((b"",)),
        Stream((b"<html>",)),
        Stream((b"[]",)),
        Stream((b"{ ",)),
        Stream((b'{"items": [',)),
        Stream((b'{"items": [{"metadata": {"name": "a"}}',)),
        Stream((b'{"items": [{"metadata": {"name": "a"}} {}]}',)),
        Stream((b'{"items" []}',)),
        Stream((b'{"items": []} and more',)),
        Stream((b'{"items": ["a"]}',)),
        Stream((b'{"items": [{"metadata": null}]}',)),
        Stream((b'{"items": [' + b"[" * 200_000,)),
        Stream((b'{"items": ["' + b"x" * 1000,), then=RESET),
        Stream((b'{"a": "\xff"}',)),
        Stream((b'{"items": [], "metadata": {"continue": "x"}}',)),
        RESET,
    ],
    ids=[
        "nothing", "a page", "a list", "cut at once", "cut", "cut after an item", "no comma", "no colon", "more",
        "no object", "no metadata", "deep", "reset", "no text", "incomplete", "reset before",
    ],
)  # fmt: skip
def test_a_scan_that_cannot_be_read_is_an_unknown_outcome(
    server: FakeApiServer, door: ApiDoor, reply: Reply | Stream | str
) -> None:
    server.answer_with(reply)
    with pytest.raises(UnknownOutcome):
        scanned(door)
    assert len(server.asked) == 1


def test_a_scan_that_stalls_is_given_up(server: FakeApiServer, door: ApiDoor) -> None:
    server.answer_with(Stream((b'{"items": [',), then=STALL))
    with pytest.raises(UnknownOutcome, match="Timeout"):
        door.scan(PODS, print, timeout=0.2)


def test_a_scan_that_trickles_beyond_its_time_is_given_up(server: FakeApiServer) -> None:
    times = iter([0.0, TIMEOUT + 1])
    server.answer_with(Stream((b'{"items": [', b"]}")))
    door = ApiDoor(configuration_for(server.url), clock=lambda: next(times))
    with pytest.raises(UnknownOutcome, match="TimeoutError"):
        scanned(door)
    door.close()


def test_a_refused_scan_is_its_error(server: FakeApiServer, door: ApiDoor) -> None:
    server.answer_with(status_reply(403, "pods is forbidden"))
    with pytest.raises(Forbidden, match="list pods: 403 pods is forbidden"):
        scanned(door)


# Watches


CLAIM = {"metadata": {"name": "c", "resourceVersion": "8"}}


def watched(door: ApiDoor, *, silence: float = TIMEOUT) -> Iterator[WatchEvent]:
    return door.watch(CLAIMS, resource_version="7", timeout=3.0, silence=silence)


def test_a_watch_asks_for_bookmarks_and_for_an_end(server: FakeApiServer, door: ApiDoor) -> None:
    server.answer_with(Stream(()))
    assert list(watched(door)) == []
    assert server.asked[0].path == (
        "/api/v1/persistentvolumeclaims?watch=true&resourceVersion=7&allowWatchBookmarks=true&timeoutSeconds=3"
    )


def test_the_events_of_a_watch_come_one_by_one_and_before_its_end(server: FakeApiServer, door: ApiDoor) -> None:
    line = watch_line("ADDED", CLAIM)
    server.answer_with(Stream((line[:9], line[9:] + b"\n" + watch_line("BOOKMARK", CLAIM)[:-1], b"\n"), then=STALL))
    events = watched(door)
    seen = [next(events) for _ in range(2)]
    assert seen == [WatchEvent(EventType.ADDED, CLAIM), WatchEvent(EventType.BOOKMARK, CLAIM)]
    assert seen[0].resource_version == "8"


def test_connections_are_kept_after_a_scan_and_a_watch_that_ended(server: FakeApiServer, door: ApiDoor) -> None:
    server.answer_with(Stream((json.dumps(LIST).encode(),)), Stream((watch_line("ADDED", CLAIM),)), Reply())
    scanned(door)
    list(watched(door))
    CALLS["get"](door)
    assert len({asked.connection for asked in server.asked}) == 1


@pytest.mark.parametrize(
    ("status", "kind"), [(410, Gone), (403, Forbidden), (404, NotFound), (429, TooManyRequests), (500, UnknownOutcome)]
)
def test_a_watch_that_is_refused_is_its_error(
    server: FakeApiServer, door: ApiDoor, status: int, kind: type[ApiError]
) -> None:
    server.answer_with(status_reply(status))
    with pytest.raises(kind) as caught:
        watched(door)
    assert (caught.value.verb, caught.value.resource) == ("watch", CLAIMS.plural)


def test_an_error_among_the_events_is_raised(server: FakeApiServer, door: ApiDoor) -> None:
    expired = {"kind": "Status", "code": 410, "message": "too old resource version: 7 (9)"}
    server.answer_with(Stream((watch_line("ADDED", CLAIM), watch_line("ERROR", expired))))
    events = watched(door)
    next(events)
    with pytest.raises(Gone, match="too old"):
        next(events)


@pytest.mark.parametrize(
    "stream",
    [
        Stream((b"garbage\n",)),
        Stream((b"[1]\n",)),
        Stream((b"[" * 200_000 + b"\n",)),
        Stream((watch_line("ADDED", None),)),
        Stream((watch_line("ADDED", {"metadata": {"name": "c"}}),)),
        Stream((watch_line("RENAMED", CLAIM),)),
        Stream((watch_line("ERROR", "what"),)),
        Stream((watch_line("ADDED", CLAIM)[:-1],)),
        Stream((b"",), then=RESET),
        Stream((b"{",), then=RESET),
    ],
    ids=[
        "no JSON", "no object", "deep", "null", "no version", "an odd type", "an odd error", "half a line",
        "reset", "reset in a line",
    ],
)  # fmt: skip
def test_a_watch_that_cannot_be_read_is_an_unknown_outcome(
    server: FakeApiServer, door: ApiDoor, stream: Stream
) -> None:
    server.answer_with(stream)
    with pytest.raises(UnknownOutcome):
        list(watched(door))


@pytest.mark.parametrize("reply", [STALL, Stream((), then=STALL)], ids=["no answer", "no event"])
def test_a_watch_that_falls_silent_is_an_unknown_outcome(
    server: FakeApiServer, door: ApiDoor, reply: Stream | str
) -> None:
    server.answer_with(reply)
    with pytest.raises(UnknownOutcome, match="Timeout"):
        list(watched(door, silence=0.2))


# What errors show


def test_an_error_names_verb_resource_object_and_the_servers_words(server: FakeApiServer, door: ApiDoor) -> None:
    server.answer_with(status_reply(403, "pods is forbidden"))
    with pytest.raises(Forbidden) as caught:
        CALLS["patch"](door)
    assert str(caught.value) == "patch persistentvolumeclaims c: 403 pods is forbidden"


def test_the_servers_words_are_cut(server: FakeApiServer, door: ApiDoor) -> None:
    server.answer_with(status_reply(422, "x" * 5000))
    with pytest.raises(Invalid) as caught:
        CALLS["patch"](door)
    assert caught.value.detail == "x" * 256


@pytest.mark.parametrize(
    "body",
    [SECRET.encode(), f'{{"kind": "Secret", "message": "{SECRET}"}}'.encode(), b'{"kind": "Status", "message": 5}'],
    ids=["a page", "another kind", "an odd message"],
)
def test_a_body_that_is_no_status_is_not_shown(server: FakeApiServer, door: ApiDoor, body: bytes) -> None:
    server.answer_with(Reply(500, body))
    with pytest.raises(UnknownOutcome) as caught:
        CALLS["get"](door)
    assert caught.value.detail == ""


def test_a_token_that_no_header_can_hold_is_not_shown(server: FakeApiServer) -> None:
    configuration = configuration_for(server.url)
    configuration.api_key["BearerToken"] = f"Bearer {SECRET}\n{SECRET}"
    door = ApiDoor(configuration)
    with pytest.raises(UnknownOutcome, match="ValueError") as caught:
        CALLS["get"](door)
    door.close()
    assert SECRET not in f"{caught.value!r}{caught.value.__cause__!r}"
    assert server.asked == []


# TLS


@pytest.fixture(scope="module")
def authority() -> trustme.CA:
    return trustme.CA()


@pytest.fixture
def tls_server(authority: trustme.CA) -> Iterator[FakeApiServer]:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("127.0.0.1").configure_cert(context)
    with fake_api_server(context) as running:
        yield running


@pytest.mark.parametrize("verify_strict", [True, False], ids=["strict", "not strict"])
def test_a_server_of_the_known_authority_is_trusted(
    tls_server: FakeApiServer, authority: trustme.CA, tmp_path: Path, verify_strict: bool
) -> None:
    authority.cert_pem.write_to_path(str(tmp_path / "ca.crt"))
    configuration = configuration_for(tls_server.url, ssl_ca_cert=str(tmp_path / "ca.crt"))
    door = ApiDoor(configuration, verify_strict=verify_strict)
    CALLS["get"](door)
    door.close()
    assert len(tls_server.asked) == 1


@pytest.mark.parametrize("verify_strict", [True, False], ids=["strict", "not strict"])
def test_a_server_of_another_authority_is_told_nothing(
    tls_server: FakeApiServer, tmp_path: Path, verify_strict: bool
) -> None:
    trustme.CA().cert_pem.write_to_path(str(tmp_path / "ca.crt"))
    configuration = configuration_for(tls_server.url, ssl_ca_cert=str(tmp_path / "ca.crt"))
    door = ApiDoor(configuration, verify_strict=verify_strict)
    with pytest.raises(UnknownOutcome, match="SSLError"):
        CALLS["get"](door)
    door.close()
    assert tls_server.asked == []


def test_an_old_authority_without_key_identifiers_is_trusted_when_not_strict(tmp_path: Path) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*pair_without_key_identifiers(tmp_path))
    with fake_api_server(context) as old:
        configuration = configuration_for(old.url, ssl_ca_cert=str(tmp_path / "ca.crt"))
        door = ApiDoor(configuration, verify_strict=False)
        CALLS["get"](door)
        door.close()
        assert len(old.asked) == 1


def pair_without_key_identifiers(directory: Path) -> tuple[Path, Path]:
    """A server certificate and key, and `ca.crt`, with no subject or authority key identifier in either."""
    authority_key, key = (ec.generate_private_key(ec.SECP256R1()) for _ in range(2))
    authority_name, name = (x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text)]) for text in ("old-ca", "server"))
    start = datetime.now(UTC) - timedelta(hours=1)
    draft = x509.CertificateBuilder(
        issuer_name=authority_name, not_valid_before=start, not_valid_after=start + timedelta(days=1)
    )
    authority = (
        draft.subject_name(authority_name)
        .public_key(authority_key.public_key())
        .serial_number(1)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(authority_key, hashes.SHA256())
    )
    loopback = x509.IPAddress(ip_address("127.0.0.1"))
    leaf = (
        draft.subject_name(name)
        .public_key(key.public_key())
        .serial_number(2)
        .add_extension(x509.SubjectAlternativeName([loopback]), critical=False)
        .sign(authority_key, hashes.SHA256())
    )
    pem = serialization.Encoding.PEM
    (directory / "ca.crt").write_bytes(authority.public_bytes(pem))
    (directory / "tls.crt").write_bytes(leaf.public_bytes(pem))
    (directory / "tls.key").write_bytes(
        key.private_bytes(pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    )
    return directory / "tls.crt", directory / "tls.key"
