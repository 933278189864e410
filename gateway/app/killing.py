"""The kill switch as a command turns it: the file itself, so that it works whatever the gateway does."""

from __future__ import annotations

from typing import Any

from gateway.app.folder import make_state
from gateway.app.gatekeeper import KillFile
from gateway.config import Config
from gateway.errors import SetupError


def kill_switch(config: Config) -> dict[str, Any]:
    """What is stopped."""
    return KillFile(config.state.dir).state().document()


def turn_kill_switch(config: Config, *, on: bool, project: str = "", principal: str = "") -> dict[str, Any]:
    """Stop or let pass; a running gateway obeys from the next request on. SetupError where it cannot be written."""
    try:
        make_state(config)
        return KillFile(config.state.dir).turn(on=on, project=project, principal=principal).document()
    except OSError as error:
        raise SetupError("kill.unusable", f"the kill file cannot be written ({error.strerror})") from None
