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
    """Write the files; those of an earlier run are replaced. Raises SettingsError if they cannot be written."""
    try:
        (folder / REVIEWS).mkdir(parents=True, exist_ok=True)
        (folder / DUMP).write_text(_yaml(objects_of(incident)))
        (folder / SETS).write_text(_yaml(sets_of(incident)))
        for name, pod in pods_by_name(incident).items():
            (folder / REVIEWS / f"{name}.json").write_text(json.dumps(review(incident, pod), indent=2) + "\n")
    except OSError as error:
        raise SettingsError(f"--keep {folder}: cannot be written to ({error.strerror}); give another folder") from error


def _yaml(objects: tuple[Manifest, ...]) -> str:
    # Copies that share nothing: else YAML would have anchors where two objects have one list of labels.
    text: str = yaml.safe_dump_all([duplicate(found) for found in objects], sort_keys=False)
    return text
