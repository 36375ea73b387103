"""Files that change together."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest

from certs import files

NAMES = ("tls.crt", "tls.key")


def pair(text: str) -> dict[str, bytes]:
    return {name: f"{name} {text}".encode() for name in NAMES}


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    return tmp_path / "certificates"


def test_what_was_written_is_read_through_the_plain_names(directory: Path) -> None:
    assert files.write(directory, pair("1"))
    assert {name: (directory / name).read_bytes() for name in NAMES} == pair("1")


def test_nothing_is_written_when_nothing_changes(directory: Path) -> None:
    files.write(directory, pair("1"))
    before = os.readlink(directory / "..data")
    assert not files.write(directory, pair("1"))
    assert os.readlink(directory / "..data") == before


def test_files_are_for_this_user_alone(directory: Path) -> None:
    files.write(directory, pair("1"))
    assert {(directory / name).stat().st_mode & 0o777 for name in NAMES} == {0o600}


def test_both_files_change_in_one_step(directory: Path) -> None:
    files.write(directory, pair("1"))
    files.write(directory, pair("2"))
    assert files.read(directory, NAMES) == pair("2")
    assert all(os.readlink(directory / name) == f"..data/{name}" for name in NAMES)


def test_the_generation_before_is_kept_for_readers_on_their_way_and_no_older_one(directory: Path) -> None:
    generations = []
    for text in "1234":
        files.write(directory, pair(text))
        generations.append(directory / os.readlink(directory / "..data"))
    assert [path.exists() for path in generations] == [False, False, True, True]


def test_nothing_is_read_where_nothing_is(directory: Path) -> None:
    assert files.read(directory, NAMES) == {}


@pytest.mark.parametrize("name", NAMES)
def test_a_plain_file_of_the_name_is_replaced(directory: Path, name: str) -> None:
    directory.mkdir()
    (directory / name).write_bytes(b"somebody's")
    files.write(directory, pair("1"))
    assert files.read(directory, NAMES) == pair("1")


def test_a_directory_of_the_name_is_replaced(directory: Path) -> None:
    (directory / "tls.crt" / "inside").mkdir(parents=True)
    files.write(directory, pair("1"))
    assert files.read(directory, NAMES) == pair("1")


def test_a_generation_that_somebody_emptied_is_written_again(directory: Path) -> None:
    files.write(directory, pair("1"))
    (directory / "tls.key").resolve().unlink()
    assert files.write(directory, pair("1"))
    assert files.read(directory, NAMES) == pair("1")


def test_leftovers_of_a_writer_that_died_are_removed(directory: Path) -> None:
    directory.mkdir()
    (directory / "..new-dead").symlink_to("nowhere")
    for number in range(3):
        (directory / f"..generation-dead{number}").mkdir()
    files.write(directory, pair("1"))
    assert sorted(path.name for path in directory.glob("..new-*")) == []
    assert len(list(directory.glob("..generation-*"))) == 2


def test_no_reader_ever_sees_files_of_two_generations(directory: Path) -> None:
    files.write(directory, pair("0"))
    done, torn = threading.Event(), []

    def read() -> None:
        while not done.is_set():
            found = files.read(directory, NAMES)
            if len({content.split()[1] for content in found.values()}) != 1 or len(found) != 2:
                torn.append(found)

    readers = [threading.Thread(target=read) for _ in range(2)]
    for reader in readers:
        reader.start()
    for number in range(300):
        files.write(directory, pair(str(number)))
    done.set()
    for reader in readers:
        reader.join()
    assert torn == []
