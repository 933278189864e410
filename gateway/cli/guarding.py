"""Files of a gateway that others of the machine must not read: put right where that is possible, and said.

A token that somebody else can read is theirs, too: with a reviewer's they release what was held, with a project's they
send in its name.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path

from gateway.config import Config

_OTHERS = 0o077


def exposed(config: Config) -> Iterator[tuple[str, Path, int]]:
    """(setting, path, mode it should have) of every folder and file that is open to others; what is missing is not."""
    for setting, path, wanted in _private(config):
        is_kind = path is not None and (path.is_dir() if wanted == 0o700 else path.is_file())
        if path is not None and is_kind and _mode(path) & _OTHERS:
            yield setting, path, wanted


def _private(config: Config) -> Iterator[tuple[str, Path | None, int]]:
    yield "state.dir", config.state.dir, 0o700
    yield "state.keys", config.state.keys_dir, 0o700
    for kind in ("reviewers", "projects", "principals"):
        for name, settings in sorted(getattr(config, kind).items()):
            yield f"{kind}.{name}.token_file", settings.token_file, 0o600
    yield "notify.secret_file", config.notify.secret_file, 0o600
    yield "policy.fetch_token_file", config.policy.fetch_token_file, 0o600
    for name, model in sorted(config.local_models.items()):
        yield f"local_models.{name}.key_file", model.key_file, 0o600


def _mode(path: Path) -> int:
    try:
        return stat.S_IMODE(path.stat().st_mode)
    except OSError:
        return 0


def close_to_others(config: Config) -> list[str]:
    """Take the rights of others away from what is this user's own; one line for each thing that was open.

    What belongs to somebody else, or lies on a file system that cannot be changed (secrets that a container is given),
    is only told.
    """
    lines = []
    for setting, path, wanted in exposed(config):
        try:
            if path.stat().st_uid != os.geteuid():
                raise PermissionError
            path.chmod(wanted)
            lines.append(f"{setting}: {path} was open to others; its mode is {wanted:o} now")
        except OSError:
            lines.append(f"{setting}: {path} is open to others, and not this user's to change")
    return lines
