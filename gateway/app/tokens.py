"""Secrets by reference: the configuration names a file, never what is in it."""

from __future__ import annotations

from pathlib import Path

from gateway.errors import SetupError


def token_of(path: Path | None) -> bytes:
    """The token in a file, no bytes without one; SetupError where it cannot be read."""
    if path is None:
        return b""
    try:
        token = path.read_bytes().strip()
    except OSError as error:
        raise SetupError(
            "setup.token_file", f"a token file cannot be read ({type(error).__name__})"
        ) from None
    if not token:
        raise SetupError("setup.token_file", "a token file is empty", hint="write a token into it")
    return token
