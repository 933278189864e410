"""The one name that is dialled on this machine: where `egress doctor` waits for the canary that it sent.

`canary.egress.invalid` can be nobody's (RFC 6761 6.4): no resolver knows it and no CA may vouch for it. It is refused
like every unknown host, but for the seconds in which `<state.dir>/canary` names a loopback port, which only who owns
the state folder can write. Upstream TLS is verified as always, by a root that can vouch for no other name.
"""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

import orjson

HOST: Final = "canary.egress.invalid"
PORT: Final = 443
FILE: Final = "canary"
OPEN_S: Final = 60.0  # longest time for which the file may open the way


class CanaryTarget:
    """Whether the way is open, and to which port; without a file it never is."""

    def __init__(self, file: Path | None, now: Callable[[], float] = time.time) -> None:
        self._file = file
        self._now = now

    def address(self, host: str, port: int) -> tuple[str, int] | None:
        """Where to dial for this destination; None for every other one, and while the way is closed."""
        if (host, port) != (HOST, PORT) or self._file is None:
            return None
        try:
            found = self._file.lstat()
            if not stat.S_ISREG(found.st_mode) or found.st_uid != os.geteuid() or found.st_mode & 0o077:
                return None
            document = orjson.loads(self._file.read_bytes())
            to, until = document["port"], float(document["until"])
        except (OSError, ValueError, KeyError, TypeError):
            return None
        is_open = 0 <= until - self._now() <= OPEN_S
        return ("127.0.0.1", to) if is_open and isinstance(to, int) and 1024 <= to < 65536 else None
