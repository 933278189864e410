"""Files that are replaced whole: for the owner alone, durable before they have their name, the old one kept on failure."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable
from pathlib import Path

import pytest

from gateway.app import fetching
from gateway.app.gatekeeper import KILL_FILE, KillFile
from gateway.files import replace_file


@pytest.fixture
def done(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What was synced and renamed, in order."""
    order: list[str] = []
    sync, rename = os.fsync, Path.replace

    def fsync(descriptor: int) -> None:
        order.append("sync folder" if stat.S_ISDIR(os.fstat(descriptor).st_mode) else "sync file")
        sync(descriptor)

    def replace(path: Path, target: Path) -> Path:
        order.append("rename")
        return rename(path, target)

    monkeypatch.setattr(os, "fsync", fsync)
    monkeypatch.setattr(Path, "replace", replace)
    return order


def _plain(folder: Path) -> None:
    replace_file(folder / "x", (b"new", b"er"))


def _kill(folder: Path) -> None:
    KillFile(folder).turn(on=True, project="acme")
    assert KillFile(folder).state().projects == {"acme"}


def _note(folder: Path) -> None:
    fetching._keep(folder, fetching.Note(version="1.2.3"))
    assert fetching.Note.read(folder).version == "1.2.3"


@pytest.mark.parametrize("write", [_plain, _kill, _note])
def test_the_content_is_on_disk_before_the_name_and_the_name_after(
    write: Callable[[Path], None], tmp_path: Path, done: list[str]
) -> None:
    write(tmp_path)
    assert done == ["sync file", "rename", "sync folder"]
    assert [path.suffix for path in tmp_path.iterdir()] != [".new"]


def test_whatever_the_umask_only_its_owner_reads_it(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        _plain(tmp_path)
        _kill(tmp_path)
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "x").stat().st_mode) == 0o600
    # root may turn the switch for the gateway's user, who must be able to read it; nobody else may write it
    assert stat.S_IMODE((tmp_path / KILL_FILE).stat().st_mode) == 0o644


def test_where_it_cannot_be_written_the_old_one_stays_and_nothing_beside_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _plain(tmp_path)

    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space"):
        replace_file(tmp_path / "x", (b"other",))
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == {"x": b"newer"}
