"""Compiled pattern databases on disk, so that a start need not compile them again: a cache, never needed.

A file is named by what it is valid for: the rules, the engine's version and the processor. Nothing in it is secret, but
the engine trusts it: a file that others than its owner could have written is not read. A file that is damaged, missing
or cannot be written costs a compilation and nothing else.
"""

from __future__ import annotations

import hashlib
import os
import platform
import stat
from collections.abc import Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Final

MAX_BYTES: Final = 256 << 20
_KEPT: Final = 4  # files: of this version and the one before it, with and without lists
_CPUINFO: Final = Path("/proc/cpuinfo")
_TELLING: Final = ("vendor_id", "model name", "flags", "CPU implementer", "CPU part", "Features")


def machine(cpuinfo: Path = _CPUINFO) -> str:
    """What decides whether a database compiled here can be used: engine, architecture, kind of processor."""
    try:
        text = cpuinfo.read_text("utf-8", "replace")
    except OSError:  # no Linux
        text = ""
    told: Mapping[str, str] = {
        name.strip(): value.strip()
        for name, _, value in (line.partition(":") for line in text.splitlines())
        if name.strip() in _TELLING
    }
    return repr(
        (
            version("hyperscan"),
            platform.system(),
            platform.machine(),
            platform.processor(),
            sorted(told.items()),
        )
    )


class CompiledFiles:
    """The cache folder."""

    def __init__(self, folder: Path, valid_for: str | None = None) -> None:
        """Use a folder, made when something is kept; `valid_for` is `machine()` unless given."""
        self._folder = folder
        self._valid_for = machine() if valid_for is None else valid_for

    def _path(self, revision: str) -> Path:
        name = hashlib.sha256(f"{revision} {self._valid_for}".encode()).hexdigest()[:32]
        return self._folder / f"patterns-{name}"

    def read(self, revision: str) -> bytes:
        """What was kept for rules of this revision; no bytes where there is nothing to be trusted."""
        try:
            descriptor = os.open(self._path(revision), os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
        except OSError:
            return b""
        with os.fdopen(descriptor, "rb") as file:
            state = os.fstat(descriptor)
            ours = state.st_uid == os.geteuid() and not stat.S_IMODE(state.st_mode) & 0o022
            usable = ours and stat.S_ISREG(state.st_mode) and state.st_size <= MAX_BYTES
            return file.read() if usable else b""

    def keep(self, revision: str, data: bytes) -> bool:
        """Keep a database for later starts; False where it cannot be written, which only costs time."""
        path = self._path(revision)
        draft = path.with_name(f"{path.name}.{os.getpid()}.new")
        try:
            self._folder.mkdir(mode=0o700, exist_ok=True)  # no state folder, no cache
            descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
            with os.fdopen(descriptor, "wb") as file:
                file.write(data)
            draft.replace(path)  # not synced: what a power loss leaves half written fails its digest
            self._prune()
        except OSError:
            return False
        return True

    def _prune(self) -> None:
        files = sorted(self._folder.glob("patterns-*"), key=lambda path: path.stat().st_mtime_ns)
        for path in files[:-_KEPT]:
            path.unlink(missing_ok=True)
