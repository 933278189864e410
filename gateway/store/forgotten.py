"""How a running gateway learns that a value was forgotten by another process: a file that changes whenever one is.

Whoever keeps sealed values in memory compares `stamp` before each use, which is one look at a file's status.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path

from gateway.errors import SetupError
from gateway.store.published import publish


def stamp(path: Path, now: Callable[[], float] = time.time) -> tuple[int, int, int]:
    """What is another after each `mark`, and every day: values in use are then asked for, and seen to be in use."""
    day = int(now() // 86_400)
    try:
        found = path.stat()
    except OSError:
        return 0, 0, day
    return found.st_ino, found.st_mtime_ns, day


def mark(path: Path) -> None:
    """Something was forgotten; SetupError where that cannot be told."""
    try:
        publish(path, os.urandom(16))
    except OSError as error:
        raise SetupError(
            "vault.unavailable",
            f"{path} cannot be written ({os.strerror(error.errno or 0)})",
            hint="restart a gateway that runs: it may still know what was forgotten",
        ) from error
