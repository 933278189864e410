"""The state folder, made where there is none."""

from __future__ import annotations

from gateway.config import Config
from gateway.errors import SetupError, words_of
from gateway.files import private_folder


def make_state(config: Config) -> None:
    """Make the state folder and what is missing above it, for this user alone.

    SetupError (`state.unusable`) where that is not possible: a file stands in its place, this user may not, no space.
    """
    folder = config.state.dir
    try:
        private_folder(folder)
    except OSError as error:
        raise SetupError(
            "state.unusable",
            f"the state folder {folder} cannot be made: {words_of(error)}",
            hint="make [state] dir a folder that this user can write",
        ) from None
