"""The replay's files, for trying more: the dump, the StatefulSets, and a review for each pod."""

from __future__ import annotations

import json
from pathlib import Path

import yaml

from webhook.cluster.door import Manifest
from webhook.core.jsonpatch import duplicate
from webhook.demo.incident import Incident
from webhook.demo.replay import review
from webhook.demo.world import objects_of, pods_by_name, sets_of
from webhook.errors import SettingsError

DUMP = "dump.yaml"
SETS = "sets.yaml"
REVIEWS = "reviews"


def keep(incident: Incident, folder: Path) -> None:
    """Write the files. Raises SettingsError, before anything is written, where one is there and says something else.

    Also raises SettingsError if they cannot be written.
    """
    files = _files(incident, folder)
    try:
        if others := [path for path, content in files.items() if path.exists() and path.read_bytes() != content]:
            more = f" and {len(others) - 1} more" if len(others) > 1 else ""
            raise SettingsError(f"--keep {folder}: {others[0]}{more} would be overwritten; give another folder")
        (folder / REVIEWS).mkdir(parents=True, exist_ok=True)
        for path, content in files.items():
            if not path.exists():
                with path.open("xb") as file:
                    file.write(content)
    except OSError as error:
        raise SettingsError(f"--keep {folder}: cannot be written to ({error.strerror}); give another folder") from error


def _files(incident: Incident, folder: Path) -> dict[Path, bytes]:
    """What the files hold, by their paths."""
    reviews = {
        folder / REVIEWS / f"{name}.json": json.dumps(review(incident, pod), indent=2) + "\n"
        for name, pod in pods_by_name(incident).items()
    }
    texts = {folder / DUMP: _yaml(objects_of(incident)), folder / SETS: _yaml(sets_of(incident)), **reviews}
    return {path: content.encode() for path, content in texts.items()}


def _yaml(objects: tuple[Manifest, ...]) -> str:
    # Copies that share nothing: else YAML would have anchors where two objects have one list of labels.
    text: str = yaml.safe_dump_all([duplicate(found) for found in objects], sort_keys=False)
    return text
