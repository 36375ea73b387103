"""What the user wants to create: pods, StatefulSets, or the AdmissionReviews themselves."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from webhook.cluster.documents import documents_in, documents_of
from webhook.cluster.door import Manifest
from webhook.cluster.dump import unpacked
from webhook.cluster.dump_checks import check_quantities
from webhook.cluster.kinds import stateful_sets_of
from webhook.core.review import KIND as REVIEW
from webhook.core.shapes import inside, mapping, text
from webhook.errors import DumpError

STDIN: Final = "-"
POD: Final = "Pod"
STATEFUL_SET: Final = "StatefulSet"
DEFAULT_NAMESPACE: Final = "default"

# An API group and a kind, and a namespace and a name.
_Identity = tuple[str, str, str, str]


@dataclass(frozen=True, slots=True)
class Wanted:
    """One object to create: a Pod, a StatefulSet or an AdmissionReview. `place` says where it was found."""

    place: str
    kind: str
    manifest: Manifest

    @property
    def namespace(self) -> str:
        """The namespace it goes to."""
        return text(inside(self.manifest, "metadata", "namespace")) or DEFAULT_NAMESPACE

    @property
    def name(self) -> str:
        """Its name; "" for a review."""
        return text(inside(self.manifest, "metadata", "name"))


def read_wanted(names: Iterable[str], stdin: bytes = b"") -> tuple[Wanted, ...]:
    """Everything in these files, in order; the file "-" is `stdin`.

    Raises DumpError for what cannot be read, is of another kind, or is there twice; SettingsError for a file that
    cannot be opened.
    """
    found = [wanted for name in names for wanted in _read(name, stdin)]
    if not found:
        raise DumpError(f"{', '.join(map(_shown, names))}: no Pod, StatefulSet or AdmissionReview in it")
    seen: dict[_Identity, str] = {}
    for wanted in found:
        first = seen.setdefault(_identity(wanted), wanted.place) if wanted.kind != REVIEW else wanted.place
        if first is not wanted.place:
            raise DumpError(f"{wanted.place}: given already in {first}")
    return tuple(found)


def _read(name: str, stdin: bytes) -> Iterator[Wanted]:
    for number, document in enumerate(_documents(name, stdin), start=1):
        if document is not None:
            yield from _wanted(f"{_shown(name)}, document {number}", document)


def _documents(name: str, stdin: bytes) -> Iterator[Any]:
    if name != STDIN:
        return documents_in(Path(name))
    try:
        return documents_of(stdin.decode("utf-8-sig"), _shown(name))
    except UnicodeDecodeError as error:
        raise DumpError(f"{_shown(name)}: is not UTF-8 text (byte {error.start})") from error


def _wanted(place: str, document: object) -> Iterator[Wanted]:
    if isinstance(document, dict) and document.get("kind") == REVIEW:
        check_quantities(f"{place}, request.object", {**mapping(inside(document, "request", "object")), "kind": POD})
        yield Wanted(place, REVIEW, document)
        return
    for found in unpacked(place, document):
        api_group, kind = found.manifest["apiVersion"].rpartition("/")[0], found.manifest["kind"]
        is_set = kind == STATEFUL_SET and stateful_sets_of(api_group) is not None
        if not is_set and (api_group, kind) != ("", POD):
            raise DumpError(
                f"{found.place}: is a {kind} of {found.manifest['apiVersion']}; "
                "only Pod, StatefulSet and AdmissionReview can be planned"
            )
        yield Wanted(found.place, kind, found.manifest)


def _identity(wanted: Wanted) -> _Identity:
    api_group = text(wanted.manifest.get("apiVersion")).rpartition("/")[0]
    return api_group, wanted.kind, wanted.namespace, wanted.name


def _shown(name: str) -> str:
    return "standard input" if name == STDIN else name
