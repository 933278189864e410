"""Folders and files for the owner alone, whatever the umask; files are replaced whole and durably."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path


def private_folder(path: Path) -> None:
    """Make a folder and what is missing above it, all 0700; what exists stays as it is. Raises OSError."""
    if path.is_dir():
        return
    private_folder(path.parent)
    path.mkdir(mode=0o700, exist_ok=True)


def replace_file(path: Path, parts: Iterable[bytes | memoryview], *, mode: int = 0o600) -> None:
    """Put a file in its place: written beside, synced, renamed, and the folder synced.

    A crash or a power loss leaves the old file or the new one. Raises OSError and leaves the old one where it cannot
    be done.
    """
    beside = path.with_name(f"{path.name}.{os.getpid()}.new")
    descriptor = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, mode)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.writelines(parts)
            file.flush()
            os.fsync(descriptor)
        beside.replace(path)
    except OSError:
        beside.unlink(missing_ok=True)
        raise
    sync_folder(path.parent)


def sync_folder(folder: Path) -> None:
    """Make renames and new files in a folder durable."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
