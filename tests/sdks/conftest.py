"""A missing client is installed first; where it cannot be, its tests fail and say why. None is skipped."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

from tests.clients.packages import Unavailable, program
from tests.clients.stage import Stage, stage


@pytest.fixture
def installed() -> Callable[[str], Path]:
    """The program of a client by its name."""

    def find(name: str) -> Path:
        try:
            return program(name)
        except Unavailable as error:
            why = str(error)
        pytest.fail(why, pytrace=False)

    return find


@pytest.fixture
async def turn(tmp_path: Path) -> AsyncIterator[Stage]:
    """A stage of its own."""
    async with stage(tmp_path) as running:
        yield running
