"""The last checkpoint in a file of its own, so that a database that was cut short or put back is found out.

The file is replaced whole (write beside, sync, rename, sync of the folder): a crash leaves the old one or
the new one. It may lag behind the database by the entries since; it is never ahead of it.
"""

from __future__ import annotations

import os
from pathlib import Path

from gateway.evidence.checkpoint import MAX_NOTE


def publish(path: Path, note: bytes) -> None:
    """Replace the file; raises OSError and leaves the old one where that cannot be done."""
    beside = path.with_name(path.name + ".new")
    descriptor = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(note)
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


def published(path: Path) -> bytes | None:
    """The note, None where there is no file; never more than a note's length. Raises OSError."""
    try:
        with path.open("rb") as file:
            return file.read(MAX_NOTE + 1)
    except FileNotFoundError:
        return None
