"""What the control port knows, handed in by the composition root."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from gateway.errors import SetupError
from gateway.ports import EvidenceStore

type Page = tuple[list[dict[str, Any]], str | None]
"""Items, newest first, and the cursor of the next page."""


async def _nothing(_query: Mapping[str, Any]) -> Page:
    return [], None


def _no_guard(_record: Mapping[str, Any]) -> Mapping[str, Any]:
    raise SetupError("memory.unavailable", "this gateway was started without a memory guard")


@dataclass(frozen=True, slots=True)
class ControlState:
    """The parts of a running gateway that the control port shows.

    `health` answers with an empty text when every worker accepts connections and evidence can be written,
    else with the reason. `projects` are rows as `/v1/projects` shows them. `quarantine` and `approvals` list
    what is held; they are empty where nothing can be held. `memory_guard` takes and gives JSON objects, and
    raises GatewayError for what it refuses.
    """

    store: EvidenceStore
    token: str = field(repr=False)
    health: Callable[[], Awaitable[str]]
    metrics: Callable[[], bytes]
    version: str
    projects: Sequence[Mapping[str, Any]] = ()
    memory_guard: Callable[[Mapping[str, Any]], Mapping[str, Any]] = _no_guard
    quarantine: Callable[[Mapping[str, Any]], Awaitable[Page]] = _nothing
    approvals: Callable[[Mapping[str, Any]], Awaitable[Page]] = _nothing
    host: str = "127.0.0.1"  # where it listens; a name here is accepted in Host
    loopback: bool = True  # metrics need no token then
