"""Documents are read by processes of which few run at once: who waits too long gets nothing, and nothing is left behind."""

from __future__ import annotations

import asyncio
import time
from typing import Any

import pytest

from gateway.app.extracting import PdfProcesses

SLEEPS = ("-c", "import time; time.sleep(60)")


async def test_who_waits_for_room_until_the_deadline_counts_as_unread(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    started: list[asyncio.subprocess.Process] = []
    spawn = asyncio.create_subprocess_exec

    async def noted(*args: Any, **named: Any) -> asyncio.subprocess.Process:
        started.append(await spawn(*args, **named))
        return started[-1]

    monkeypatch.setattr(asyncio, "create_subprocess_exec", noted)
    reader, deadline = PdfProcesses(SLEEPS), int((time.monotonic() + 1) * 1e6)
    answers = await asyncio.gather(*(reader.read(b"%PDF-", deadline_us=deadline) for _ in range(5)))

    assert answers == [("", False)] * 5
    assert len(started) == 2  # no process for those whose time was over
    assert all(process.returncode is not None for process in started)


async def test_after_them_there_is_room_again() -> None:
    reader = PdfProcesses(SLEEPS)
    soon = int((time.monotonic() + 0.2) * 1e6)
    await asyncio.gather(*(reader.read(b"", deadline_us=soon) for _ in range(3)))
    reader.arguments = ("-c", 'print(\'{"text": "read", "whole": true}\')')
    later = int((time.monotonic() + 20) * 1e6)
    assert await reader.read(b"", deadline_us=later) == ("read", True)
