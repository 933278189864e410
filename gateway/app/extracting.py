"""What takes texts out of documents and token ids, as `[plugins] extractors` names it."""

from __future__ import annotations

import asyncio
import importlib.util
import json
import sys
import time
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Final

from gateway.app.tokentables import installed_tables
from gateway.config import Config
from gateway.egress.extracting import Extraction
from gateway.errors import SetupError

_AT_ONCE: Final = 2
_PIPE: Final = asyncio.subprocess.PIPE
_LONGEST_ANSWER: Final = 64 << 20


def extraction_of(config: Config) -> Extraction:
    """The extraction that is configured; SetupError where what it needs is not installed."""
    named = config.plugins.extractors
    if "pdf" in named and importlib.util.find_spec("pypdf") is None:
        raise SetupError(
            "plugins.extractors",
            "pdf needs pypdf",
            hint='pip install "model-egress-gateway[documents]", or take it out of [plugins] extractors',
        )
    return Extraction(
        installed_tables() if "token_ids" in named else None, PdfProcesses() if "pdf" in named else None
    )


@dataclass(slots=True)
class PdfProcesses:
    """ports.DocumentReader: a process a document: an interpreter with no key, store or connection, killed in time."""

    arguments: tuple[str, ...] = ("-P", "-m", "gateway.workers.pdf")
    _room: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(_AT_ONCE))

    async def read(self, data: bytes, *, deadline_us: int) -> tuple[str, bool]:
        """See ports.DocumentReader."""
        left = deadline_us / 1e6 - time.monotonic()
        answer = b""
        with suppress(TimeoutError):  # of the wait for room as well: what is late counts as unread
            async with asyncio.timeout(max(left, 0)), self._room:
                answer = await self._ask(data)
        return _checked(answer)

    async def _ask(self, data: bytes) -> bytes:
        """What a process of its own says; it does not outlive the question."""
        process = await asyncio.create_subprocess_exec(
            sys.executable, *self.arguments,
            stdin=_PIPE, stdout=_PIPE, stderr=asyncio.subprocess.DEVNULL, env={},
        )  # fmt: skip
        try:
            answer, _ = await process.communicate(data)
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()
        return answer


def _checked(answer: bytes) -> tuple[str, bool]:
    """What a process that met hostile bytes may say: a text and a yes or no, else nothing."""
    try:
        found = json.loads(answer) if len(answer) <= _LONGEST_ANSWER else None
    except ValueError:
        found = None
    if not isinstance(found, dict) or not isinstance(found.get("text"), str):
        return "", False
    return found["text"], found.get("whole") is True
