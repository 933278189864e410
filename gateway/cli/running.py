"""A gateway for `egress exec`: the one that runs, or one of our own that ends with its last user.

Several commands may be behind the same gateway, and the one that started it need not be the last to end. Three locks
in the state folder keep that right, all released by the system when their holder dies:

```
exec/start     held while somebody looks for a gateway or starts one
exec/users     held shared by every command behind a gateway that was started here
exec/gateway   held by that gateway; holds its process id, which counts only while the lock is held
```
"""

from __future__ import annotations

import fcntl
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import IO, Final

from gateway.cli.health import is_healthy
from gateway.config import Config
from gateway.errors import SetupError
from gateway.files import private_folder

START_S: Final = 60.0
STOP_S: Final = 15.0  # what is in flight is finished
_POLL_S: Final = 0.05


def _open(path: Path) -> IO[str]:
    private_folder(path.parent)
    return path.open("a+", encoding="ascii")


@contextmanager
def a_gateway(config: Config) -> Iterator[bool]:
    """Inside, a gateway runs at the configured ports; True where it was started for this.

    Raises:
        SetupError: none runs and none can be started; the message holds the last line it wrote.
    """
    folder = config.state.dir / "exec"
    own: subprocess.Popen[bytes] | None = None
    with ExitStack() as files:
        try:
            start, users = (
                files.enter_context(_open(folder / "start")),
                files.enter_context(_open(folder / "users")),
            )
        except OSError as error:
            raise SetupError("setup.state", f"{config.state.dir} cannot be used ({error.strerror})") from None
        fcntl.flock(start, fcntl.LOCK_EX)
        if not is_healthy(config):
            own = _start(config, folder)
        fcntl.flock(users, fcntl.LOCK_SH)
        fcntl.flock(start, fcntl.LOCK_UN)
        try:
            yield own is not None
        finally:
            fcntl.flock(start, fcntl.LOCK_EX)
            fcntl.flock(users, fcntl.LOCK_UN)
            if _lock_now(users):
                _stop(folder / "gateway")
            if own is not None and own.poll() is None:
                own.returncode = 0  # it stays for its last user: no longer ours to wait for


def _lock_now(file: IO[str]) -> bool:
    """Take a lock if nobody holds it."""
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def gateway_command(config: Config) -> list[str]:
    """`egress up` with this configuration, by the interpreter that runs now; nothing of the current folder (-P)."""
    command = [sys.executable, "-P", "-m", "gateway.cli", "up"]
    return [*command, "--config", str(config.source)] if config.source else command


def _start(config: Config, folder: Path) -> subprocess.Popen[bytes]:
    log = folder / "gateway.log"
    with _open(folder / "gateway") as held, log.open("wb") as output:
        if not _lock_now(held):
            _stop(folder / "gateway")  # one of ours that does not answer any more
            fcntl.flock(held, fcntl.LOCK_EX)
        process = subprocess.Popen(  # noqa: S603 - our own interpreter and arguments
            gateway_command(config),
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            pass_fds=[held.fileno()],  # the lock is the gateway's from here on, and ends with it
            start_new_session=True,  # Ctrl-C is for the command, which may still need the gateway
        )
        held.truncate(0)
        held.write(f"{process.pid}\n")
    deadline = time.monotonic() + START_S
    while not is_healthy(config, timeout_s=1.0):
        if process.poll() is not None or time.monotonic() > deadline:
            process.kill()
            process.wait()
            lines = log.read_text(encoding="utf-8", errors="replace").strip().splitlines()
            told = [line.removeprefix("egress: ") for line in lines if line.startswith("egress: ")]
            said = "; ".join(told[-2:]) or (lines[-1] if lines else "it said nothing")
            raise SetupError("setup.gateway", f"no gateway could be started: {said}", hint="run: egress up")
        time.sleep(_POLL_S)
    return process


def _stop(path: Path) -> None:
    """End the gateway whose lock this is, if it still runs."""
    with _open(path) as held:
        if _lock_now(held):
            return
        held.seek(0)
        pid = int(held.read().strip() or 0)
        if not pid:
            return
        for number, patience in ((signal.SIGTERM, STOP_S), (signal.SIGKILL, 5.0)):
            with suppress(ProcessLookupError):
                os.kill(pid, number)
            deadline = time.monotonic() + patience
            while time.monotonic() < deadline:
                if _lock_now(held):
                    return
                time.sleep(_POLL_S)
