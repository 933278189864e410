"""Reading a project's files: which ones, only what changed, and nothing of them kept but keyed fingerprints."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from gateway.app.belongings import fingerprint_files
from gateway.app.filelist import project_files
from gateway.app.indexing import Progress, index_project
from gateway.config import Config, parse
from gateway.errors import SetupError
from gateway.store.keys import Keyring

CODE = "def settle_open_positions(ledger, fee_schedule):\n    return ledger.positions_with_state('open')\n"
IGNORE = "*.log\n!keep.log\n/build\ndeep/**/made\ntmp?\nout/\nname[0-9].txt\n"
TREE = (
    "src/main.py", "src/app.log", "keep.log", "build/x.py", "src/build/y.py", "deep/a/b/made/z.py", "deep/made/z.py",
    "tmp1", "tmp10", "out/x.py", "src/out", "name1.txt", "namex.txt", "node_modules/m/i.js", ".venv/lib/p.py",
)  # fmt: skip
EXPECTED = {".gitignore", "src/main.py", "keep.log", "src/build/y.py", "tmp10", "src/out", "namex.txt"}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    for name in TREE:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(CODE)
    (folder / ".gitignore").write_text(IGNORE)
    return folder


@pytest.fixture
def config(tmp_path: Path, root: Path) -> Config:
    document = {"state": {"dir": str(tmp_path / "state")}, "projects": {"acme": {"roots": [str(root)]}}}
    return parse(document, tmp_path, {"HOME": str(tmp_path)})


def test_ignore_files_are_respected(root: Path) -> None:
    assert set(project_files(root)) == EXPECTED


def test_git_lists_the_same_and_runs_nothing(root: Path, tmp_path: Path) -> None:
    git = ["git", "-c", "init.defaultBranch=main"]
    subprocess.run([*git, "init", "-q", str(root)], check=True)
    trap = tmp_path / "trap"
    trap.write_text(f"#!/bin/sh\ntouch {tmp_path / 'sprung'}\n")
    trap.chmod(0o700)
    subprocess.run([*git, "-C", str(root), "config", "core.fsmonitor", str(trap)], check=True)

    assert set(project_files(root)) == EXPECTED
    assert not (tmp_path / "sprung").exists()


def test_only_what_changed_is_read_again(config: Config, root: Path) -> None:
    first = index_project(config, "acme")
    second = index_project(config, "acme")
    (root / "src" / "main.py").write_text(CODE * 2)
    (root / "keep.log").unlink()
    third = index_project(config, "acme")
    whole = index_project(config, "acme", full=True)

    assert (first.done, first.read) == (7, 7)
    assert (second.done, second.read, second.bytes) == (7, 0, 0)
    assert second.fingerprints == first.fingerprints
    assert (third.done, third.read) == (6, 1)
    assert whole.read == 6


def test_binary_large_and_linked_files_are_skipped(config: Config, root: Path, tmp_path: Path) -> None:
    (root / "data.bin").write_bytes(b"text\0more")
    (root / "empty.py").write_bytes(b"")
    (tmp_path / "outside.py").write_text(CODE)
    (root / "link.py").symlink_to(tmp_path / "outside.py")
    with (root / "dump.sql").open("wb") as file:
        file.truncate(9 << 20)

    done = index_project(config, "acme")
    assert (done.skipped, done.read) == (4, 7)


def test_nothing_of_a_file_is_kept_but_keyed_fingerprints(config: Config, tmp_path: Path) -> None:
    index_project(config, "acme")
    (stored,) = (tmp_path / "state" / "vault" / "projects").iterdir()
    data = stored.read_bytes()

    assert stored.stat().st_mode & 0o077 == 0
    for word in (b"settle", b"main.py", b"src", b"project"):
        assert word not in data


@pytest.mark.parametrize(
    "damage", [lambda d: d[:-1], lambda d: d[:40] + b"x" + d[41:], lambda d: b"", lambda d: d + b"x"]
)
def test_a_damaged_index_is_refused(config: Config, tmp_path: Path, damage: Callable[[bytes], bytes]) -> None:
    index_project(config, "acme")
    (stored,) = (tmp_path / "state" / "vault" / "projects").iterdir()
    stored.write_bytes(damage(stored.read_bytes()))

    with pytest.raises(SetupError, match="acme"):
        fingerprint_files(config, Keyring(config.state.keys_dir)).read_index("acme")
    assert index_project(config, "acme", full=True).read == 7


def test_a_run_that_is_cut_short_leaves_the_index_as_it_was(config: Config) -> None:
    index_project(config, "acme")
    files = fingerprint_files(config, Keyring(config.state.keys_dir))
    before = files.read_index("acme")

    def stop(_: object) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        index_project(config, "acme", full=True, tell=stop)
    assert files.read_index("acme") == before


def _cut_short(config: Config, files: int, *, full: bool = False) -> None:
    def stop(progress: Progress) -> None:
        if progress.done == files:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        index_project(config, "acme", full=full, tell=stop)


@pytest.mark.parametrize("full", [False, True])
def test_a_run_that_is_cut_short_is_gone_on_with(config: Config, full: bool) -> None:
    """Twice over; what was read is not read again, and the index is as that of a run in one go."""
    if full:
        index_project(config, "acme")
    _cut_short(config, 3, full=full)
    _cut_short(config, 5, full=full)
    progress = index_project(config, "acme", full=full)
    assert (progress.done, progress.read) == (7, 2)
    files = fingerprint_files(config, Keyring(config.state.keys_dir))
    resumed = files.read_index("acme")
    assert not list(files.folder.glob("*.part"))
    assert index_project(config, "acme", full=True).read == 7
    assert files.read_index("acme") == resumed


def test_a_file_that_changed_after_a_cut_is_read_again(config: Config, root: Path) -> None:
    _cut_short(config, 7)
    (root / "src/main.py").write_text(CODE * 3)
    assert index_project(config, "acme").read == 1


@pytest.mark.parametrize(
    "damage",
    [
        lambda data: data[:-7],
        lambda data: data[:-40] + bytes([data[-40] ^ 1]) + data[-39:],
        lambda data: b"?" + data,
    ],
)
def test_notes_that_are_torn_or_changed_are_read_again(
    config: Config, damage: Callable[[bytes], bytes]
) -> None:
    _cut_short(config, 4)
    (part,) = fingerprint_files(config, Keyring(config.state.keys_dir)).folder.glob("*.part")
    assert part.stat().st_mode & 0o777 == 0o600
    part.write_bytes(damage(part.read_bytes()))
    progress = index_project(config, "acme")
    assert progress.done == 7
    assert progress.read >= 4
    files = fingerprint_files(config, Keyring(config.state.keys_dir))
    resumed = files.read_index("acme")
    index_project(config, "acme", full=True)
    assert files.read_index("acme") == resumed


def test_a_project_without_folders_cannot_be_indexed(config: Config, tmp_path: Path) -> None:
    with pytest.raises(SetupError, match="nobody"):
        index_project(config, "nobody")
    bare = parse(
        {"projects": {"a": {"roots": [os.fspath(tmp_path / "gone")]}}}, tmp_path, {"HOME": str(tmp_path)}
    )
    with pytest.raises(SetupError, match="root"):
        index_project(bare, "a")
