from __future__ import annotations

import selectors
from collections.abc import Iterator
from contextlib import closing
from functools import partial

import pytest

from webhook.serving.mailbox import Mailbox


@pytest.fixture
def mailbox() -> Iterator[Mailbox]:
    with closing(Mailbox()) as box:
        yield box


def is_ringing(mailbox: Mailbox) -> bool:
    with selectors.DefaultSelector() as selector:
        selector.register(mailbox, selectors.EVENT_READ)
        return bool(selector.select(0))


def test_calls_are_made_in_the_order_in_which_they_were_left(mailbox: Mailbox) -> None:
    made: list[int] = []
    for number in range(3):
        mailbox.put(partial(made.append, number))
    assert is_ringing(mailbox)
    mailbox.deliver()
    assert made == [0, 1, 2]
    assert not is_ringing(mailbox)


def test_a_call_left_by_a_call_is_made_too(mailbox: Mailbox) -> None:
    made: list[str] = []
    mailbox.put(lambda: mailbox.put(lambda: made.append("inner")))
    mailbox.deliver()
    assert made == ["inner"]


def test_more_calls_than_the_pipe_holds_are_all_made(mailbox: Mailbox) -> None:
    made: list[int] = []
    for number in range(100_000):
        mailbox.put(partial(made.append, number))
    mailbox.deliver()
    assert made == list(range(100_000))
    assert not is_ringing(mailbox)
