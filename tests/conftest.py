"""Settings of all tests, and a place for what a test has to say though it passed."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator

import pytest
from hypothesis import settings

# How long an example takes says something about the machine, and nothing about the product.
settings.register_profile("untimed", deadline=None)
settings.load_profile("untimed")

SAID = "said"


@pytest.fixture(autouse=True)
def _root_logger_as_it_was() -> Iterator[None]:
    """A command configures the process it runs in; here that is everybody's."""
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    yield
    root.handlers[:] = handlers
    root.setLevel(level)


@pytest.fixture
def say(record_property: Callable[[str, object], None]) -> Callable[[str], None]:
    """Have a line printed at the end of the run, whichever process ran the test."""
    return lambda text: record_property(SAID, text)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print what passed tests had to say."""
    said = [
        text
        for report in terminalreporter.stats.get("passed", [])
        for name, text in report.user_properties
        if name == SAID
    ]
    if said:
        terminalreporter.section("what the tests say")
    for text in said:
        terminalreporter.write_line(str(text))
