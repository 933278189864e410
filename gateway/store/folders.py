"""Folders for the owner alone, whatever the umask: also those above, where they have to be made."""

from __future__ import annotations

from pathlib import Path


def private_folder(path: Path) -> None:
    """Make a folder and what is missing above it, all 0700; what exists stays as it is. Raises OSError."""
    if path.is_dir():
        return
    private_folder(path.parent)
    path.mkdir(mode=0o700, exist_ok=True)
