"""The last checkpoint in a file of its own, so that a database that was cut short or put back is found out.

The file is replaced whole (write beside, sync, rename, sync of the folder): a crash leaves the old one or
the new one. It may lag behind the database by the entries since; it is never ahead of it.
"""

from __future__ import annotations

from pathlib import Path

from gateway.evidence.checkpoint import MAX_NOTE
from gateway.files import replace_file


def publish(path: Path, note: bytes) -> None:
    """Replace the file; raises OSError and leaves the old one where that cannot be done."""
    replace_file(path, (note,))


def published(path: Path) -> bytes | None:
    """The note, None where there is no file; never more than a note's length. Raises OSError."""
    try:
        with path.open("rb") as file:
            return file.read(MAX_NOTE + 1)
    except FileNotFoundError:
        return None
