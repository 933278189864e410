"""The bearer token of the control port: a file that only the gateway's user can read."""

from __future__ import annotations

import os
import secrets
from pathlib import Path
from typing import Final

from gateway.errors import SetupError, words_of

_BYTES: Final = 32
_FILE: Final = "control.token"


def control_token(state_dir: Path, *, create: bool = True) -> str:
    """The token in `<state_dir>/control.token`, made at the first start with mode 0600.

    Raises:
        SetupError: it cannot be read or made, is open to others, or is missing and `create` is false.
    """
    path = state_dir / _FILE
    try:
        if create and not path.exists():
            _make(path)
        if path.stat().st_mode & 0o077:
            raise SetupError(
                "control.token_exposed", f"others can read {path}", hint=f"run: chmod 600 {path}"
            )
        token = path.read_text(encoding="ascii").strip()
    except (OSError, UnicodeDecodeError) as error:
        message = f"{path} cannot be used ({words_of(error)})"
        raise SetupError(
            "control.token_unusable", message, hint="start the gateway once, as its own user"
        ) from None
    if len(token) < _BYTES:
        raise SetupError(
            "control.token_unusable", f"{path} holds no token", hint=f"remove {path} and start again"
        )
    return token


def _make(path: Path) -> None:
    """Two gateways may start at once: the file appears whole, and the first one wins."""
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with os.fdopen(descriptor, "w", encoding="ascii") as file:
            file.write(secrets.token_urlsafe(_BYTES) + "\n")
        try:
            os.link(draft, path)
        except FileExistsError:
            return
    finally:
        draft.unlink()
