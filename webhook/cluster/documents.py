"""The documents of a JSON or YAML file, as plain values.

YAML is built from the parser's events: of 10,000 nodes (21 MB) that takes 4 s where `yaml.load` takes 19.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import yaml

from webhook.cluster.documents_spoilt import CUT_OFF, ends_too_early, kubectl_message
from webhook.errors import DumpError, SettingsError

SUFFIXES: Final = (".yaml", ".yml", ".json")

# The C parser where PyYAML was built with it.
_PARSER: Final[Any] = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_SYNTAX_ERRORS: Final = (yaml.scanner.ScannerError, yaml.parser.ParserError)
_TAG: Final = "tag:yaml.org,2002:"
# Times stay the strings that Kubernetes has them as, quoted or not.
_TYPED: Final = frozenset(_TAG + name for name in ("null", "bool", "int", "float"))
# The C parser's events and marks are typed as others than those of the Python parser.
_Event = Any


def documents_in(file: Path) -> Iterator[Any]:
    """The documents of a file in order; an empty one is None.

    Raises SettingsError if it cannot be opened, DumpError if what it holds cannot be read.
    """
    try:
        text = file.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise unopened(file, error) from error
    except UnicodeDecodeError as error:
        raise DumpError(f"{file}: is not UTF-8 text (byte {error.start})") from error
    return documents_of(text, str(file))


def unopened(path: Path, error: OSError) -> SettingsError:
    """What is said of a file or folder that cannot be opened: whoever named it has to name another."""
    return SettingsError(f"{path}: {error.strerror}; give a file that is there and that this user may read")


def documents_of(text: str, name: str) -> Iterator[Any]:
    """The documents of a text that is called `name` in errors.

    One that begins with a brace is read as JSON (one document after another), any other as YAML. Raises DumpError,
    which names a message of kubectl where that is why it cannot be read.
    """
    reads = _json_documents if text.lstrip().startswith("{") else _yaml_documents
    try:
        for document in reads(name, text):
            if not _is_object(document) and kubectl_message(text):
                raise DumpError(f"{name}: holds what is no object")
            yield document
    except DumpError as error:
        if message := kubectl_message(text):
            raise DumpError(f"{name}: {message}") from error
        raise


def _is_object(document: object) -> bool:
    """Whether it may be one, or is empty. Some messages can be read as YAML: as a text, or as a key with a text."""
    return document is None or (isinstance(document, dict) and not {"apiVersion", "kind"}.isdisjoint(document))


def _json_documents(file: str, text: str) -> Iterator[Any]:
    decoder = json.JSONDecoder()
    position = _skip_space(text, 0)
    while position < len(text):
        try:
            document, position = decoder.raw_decode(text, position)
        except json.JSONDecodeError as error:
            is_cut = error.msg.startswith("Unterminated") or ends_too_early(text, error.pos)
            raise DumpError(f"{file}: cannot be read as JSON: {error}{CUT_OFF if is_cut else ''}") from error
        except RecursionError as error:
            raise DumpError(f"{file}: cannot be read as JSON: {error}") from error
        yield document
        position = _skip_space(text, position)


def _skip_space(text: str, position: int) -> int:
    while position < len(text) and text[position].isspace():
        position += 1
    return position


def _yaml_documents(file: str, text: str) -> Iterator[Any]:
    number = 0
    try:
        events: Iterator[_Event] = iter(yaml.parse(text, _PARSER))
        scalars = _Scalars()
        for event in events:
            if isinstance(event, yaml.DocumentStartEvent):
                number += 1
                yield _Builder(events, scalars).value(next(events))
    except (yaml.YAMLError, RecursionError, ValueError) as error:
        where = f"{file}, document {max(1, number)}"
        mark = error.problem_mark if isinstance(error, _SYNTAX_ERRORS) else None
        is_cut = mark is not None and ends_too_early(text, _next_line(text, mark.line))
        raise DumpError(f"{where}: cannot be read as YAML: {_reason(error)}{CUT_OFF if is_cut else ''}") from error


class _Builder:
    """Makes the values of one document from its events."""

    def __init__(self, events: Iterator[_Event], scalars: _Scalars) -> None:
        self._events = events
        self._anchors: dict[str, Any] = {}
        self._scalars = scalars

    def value(self, event: _Event) -> Any:
        """The value that begins with this event; the rest of it is taken from the events."""
        kind = type(event)
        if kind is yaml.ScalarEvent:
            made = self._scalars.value(event)
        elif kind is yaml.AliasEvent:
            return self._aliased(event)
        elif kind is yaml.MappingStartEvent:
            made = self._mapping()
        else:
            made = self._sequence()
        if event.anchor is not None:
            self._anchors[event.anchor] = made
        return made

    def _mapping(self) -> dict[Any, Any]:
        made: dict[Any, Any] = {}
        while type(event := next(self._events)) is not yaml.MappingEndEvent:
            key = self.value(event)
            if isinstance(key, dict | list):
                raise yaml.MarkedYAMLError(problem="a key must be a scalar", problem_mark=event.start_mark)
            if key in made:
                raise yaml.MarkedYAMLError(problem=f"key {key!r} twice", problem_mark=event.start_mark)
            made[key] = self.value(next(self._events))
        return made

    def _sequence(self) -> list[Any]:
        made: list[Any] = []
        while type(event := next(self._events)) is not yaml.SequenceEndEvent:
            made.append(self.value(event))
        return made

    def _aliased(self, event: _Event) -> Any:
        if event.anchor not in self._anchors:
            raise yaml.MarkedYAMLError(problem=f"no anchor {event.anchor}", problem_mark=event.start_mark)
        return self._anchors[event.anchor]


class _Scalars:
    """Scalars as PyYAML's safe loader resolves them, each different one once, and times as strings."""

    def __init__(self) -> None:
        self._loader = yaml.SafeLoader("")
        self._plain: dict[str, Any] = {}

    def value(self, event: _Event) -> Any:
        """The value of a scalar: typed if it is plain or has a tag of its own, else its text."""
        text: str = event.value
        if not event.implicit[0]:
            return text if event.tag is None or event.implicit[1] else self._made(event.tag, text)
        if text not in self._plain:
            tag = self._loader.resolve(yaml.ScalarNode, text, (True, False))  # type: ignore[no-untyped-call]
            self._plain[text] = self._made(tag, text) if tag in _TYPED else text
        return self._plain[text]

    def _made(self, tag: str, text: str) -> Any:
        return self._loader.construct_object(yaml.ScalarNode(tag, text))


def _next_line(text: str, line: int) -> int:
    """Where the line behind line number `line` (from 0) begins."""
    return sum(len(each) for each in text.splitlines(keepends=True)[: line + 1])


def _reason(error: Exception) -> str:
    """The parser's words on one line, with the line of the file where it has one."""
    mark = getattr(error, "problem_mark", None)
    problem = getattr(error, "problem", None) or str(error)
    where = f"line {mark.line + 1}, column {mark.column + 1}: " if mark is not None else ""
    return where + " ".join(str(problem).split())
