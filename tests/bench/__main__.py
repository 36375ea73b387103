"""`python -m bench [PART...]`, with `tests` on the path: all parts, or those that are named."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import click
from e2e.control_plane import missing_binaries

from bench import decisions, decisions_followed, handler, memory, placement

ALONE: dict[str, Callable[[], None]] = {
    "handler": handler.main,
    "decisions": decisions.main,
    "memory": lambda: memory.main(5000, 20000),
}
"""The parts that need no control plane."""

FOLLOWED = "decisions-followed"
"""The part that has a control plane of its own."""

PARTS = (*ALONE, FOLLOWED, *placement.PARTS)


@click.command()
@click.argument("parts", nargs=-1, type=click.Choice(PARTS))
@click.option("--repetitions", default=5, show_default=True, help="Of every arm.")
@click.option("--warm-ups", default=1, show_default=True, help="Repetitions before these that do not count.")
@click.option("--keep", type=click.Path(path_type=Path), help="A folder in which the logs stay.")
def main(parts: tuple[str, ...], repetitions: int, warm_ups: int, keep: Path | None) -> None:
    """Measure and print PARTS, or everything. Nothing is asserted."""
    chosen = parts or PARTS
    for part in chosen:
        if part in ALONE:
            ALONE[part]()
    if chosen_with_a_plane := [part for part in chosen if part not in ALONE]:
        if problem := missing_binaries():
            raise click.ClickException(problem)
        if FOLLOWED in chosen_with_a_plane:
            decisions_followed.main()
        if shared := [part for part in chosen_with_a_plane if part != FOLLOWED]:
            placement.main(shared, repetitions, warm_ups, keep)


if __name__ == "__main__":
    main()
