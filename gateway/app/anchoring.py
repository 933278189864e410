"""Checkpoints copied to where they cannot be put back with the state: by command, and by themselves."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

from gateway.config import Config
from gateway.config.anchors import Anchor
from gateway.config.values import without_password
from gateway.errors import GatewayError
from gateway.evidence.checkpoint import read_note
from gateway.store import anchor
from gateway.telemetry.log import Log

type Told = Callable[[str, int], None]
"""Hears of every try: an empty text or the code of what went wrong, and the number of entries."""

FIRST_S = 5.0
"""After a start, until the first checkpoint of this run is there."""


def anchor_to(note: bytes, to: Anchor, state: Path) -> dict[str, str]:
    """Copy a checkpoint to every place of `to`: where it went, by kind of place.

    EvidenceError or VerificationError where one of them fails; those before it have it then.
    """
    done = {}
    if to.file:
        anchor.to_file(note, to.file)
        done["file"] = str(to.file)
    if to.url:
        anchor.to_url(note, to.url)
        done["url"] = without_password(to.url)
    if to.tsa:
        kept, moment = anchor.to_authority(note, to.tsa, state / "anchors")
        done |= {"answer": str(kept), "time": moment.isoformat()}
    return done


def told_by(log: Log) -> Told:
    """Tell a log."""

    def told(code: str, count: int) -> None:
        if code:
            log.event("anchor_failed", level="error", code=code)
        else:
            log.event("anchored", count=count)

    return told


async def keep_anchoring(config: Config, told: Told) -> None:
    """Anchor the last checkpoint every so often, where the log has grown, for as long as the task runs.

    Nothing is done where no place is configured. A failure is tried again at the next time; it holds nothing up.
    """
    if not config.anchor.is_set:
        return
    size, pause = 0, FIRST_S
    while True:
        await asyncio.sleep(pause)
        pause = config.anchor.every_minutes * 60.0
        try:
            size = await asyncio.to_thread(_anchor_growth, config, size, told)
        except GatewayError as error:
            told(error.code, size)


def _anchor_growth(config: Config, before: int, told: Told) -> int:
    """Anchor the last checkpoint if it is over more entries than `before`; over how many it is."""
    note = anchor.last_checkpoint(config.state.dir)
    size = read_note(note).checkpoint.size
    if size > before:
        anchor_to(note, config.anchor, config.state.dir)
        told("", size)
    return size
