"""One gateway a state folder: an flock, which the kernel releases with the process, however it ends."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path

from gateway.errors import SetupError
from gateway.files import private_folder


class StateLock:
    """Held from `acquire` to `release`, or to the end of the process."""

    def __init__(self, path: Path) -> None:
        """`path` is the lock file; it stays behind, its lock does not."""
        self._path = path
        self._descriptor: int | None = None

    def acquire(self) -> None:
        """Take the lock; SetupError where another process holds it or the file cannot be made."""
        try:
            private_folder(self._path.parent)
            descriptor = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise SetupError(
                "state.unusable",
                f"the state folder cannot be used ({os.strerror(error.errno or 0)})",
                hint="make [state] dir a folder that this user can write",
            ) from error
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            holder = os.pread(descriptor, 32, 0).strip().decode("ascii", "replace")
            os.close(descriptor)
            named = f" (process {holder})" if holder.isdigit() else ""
            raise SetupError(
                "state.in_use",
                f"another gateway is running on this state folder{named}",
                hint="stop it, or give this one its own [state] dir; evidence has one writer",
            ) from error
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, f"{os.getpid()}\n".encode(), 0)  # for who finds it held
        self._descriptor = descriptor

    def release(self) -> None:
        """Give the lock back; nothing happens where it is not held."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None
