"""Unix sockets for the owner alone: 0600 in a folder 0700, and the kernel's word about who is at the other end."""

from __future__ import annotations

import os
import socket
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from gateway.errors import SetupError

_MAX_ADDRESS: Final = 100  # of 108 bytes in sun_path on Linux, 104 elsewhere
_CREDENTIALS: Final = struct.Struct("iII")  # struct ucred: pid, uid, gid
_BACKLOG: Final = 256


@contextmanager
def _address(path: Path) -> Iterator[str]:
    """A name of the socket that fits into an address: where the path is too long, one through its open folder."""
    if len(os.fsencode(path)) <= _MAX_ADDRESS:
        yield str(path)
        return
    folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        yield f"/proc/self/fd/{folder}/{path.name}"
    finally:
        os.close(folder)


def listen(path: Path) -> socket.socket:
    """A listening socket at `path`, in place of one that a dead process left; SetupError.

    Whoever calls this must know that no other process listens there (the lock of the state folder).
    """
    made = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        path.unlink(missing_ok=True)
        with _address(path) as address:
            made.bind(address)
        path.chmod(0o600)
        made.listen(_BACKLOG)
    except OSError as error:
        made.close()
        raise SetupError(
            "state.socket",
            f"the socket {path} cannot be made ({os.strerror(error.errno or 0)})",
            hint="choose a shorter [state] dir on a file system that can hold sockets",
        ) from error
    made.setblocking(False)
    return made


def connected(path: Path) -> socket.socket:
    """A socket connected to `path`; OSError where nobody listens there, or too many wait."""
    made = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        made.setblocking(False)
        with _address(path) as address:
            made.connect(address)  # a Unix socket answers at once, or not at all
    except OSError:
        made.close()
        raise
    return made


def peer_uid(sock: socket.socket) -> int | None:
    """The user of the process at the other end (SO_PEERCRED); None where the system does not say."""
    option = getattr(socket, "SO_PEERCRED", None)
    if option is None:
        return None
    _, uid, _ = _CREDENTIALS.unpack(sock.getsockopt(socket.SOL_SOCKET, option, _CREDENTIALS.size))
    return int(uid)
