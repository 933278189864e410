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
            "setup.token_file",
            f"the token file {path} cannot be read ({error.strerror})",
            hint="look at the path, its owner and mode",
        ) from None
    if not token:
        raise SetupError("setup.token_file", f"the token file {path} is empty", hint="write a token into it")
    return token
