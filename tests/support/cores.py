"""Whole use cases without an edge: one with stores of its own, or several that share an evidence writer."""

from __future__ import annotations

import io
import json
import re
import uuid
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gateway.app.core import Core
from gateway.app.serve import use_case
from gateway.app.signing import keyring
from gateway.app.stores import own_stores, shared_stores
from gateway.config import parse
from gateway.ports import Admitted, Ending, OutboundRequest, Peer
from gateway.telemetry.log import Log
from tests.support.writer import writing

HOST = "api.anthropic.com"
JSON = ((b"content-type", b"application/json"),)


@asynccontextmanager
async def cores(folder: Path, document: dict[str, Any], count: int) -> AsyncIterator[list[Core]]:
    """One use case as a gateway of one process has it, or so many workers of one gateway."""
    state = {"state": {"dir": str(folder / "state"), "keys": f"file:{folder.parent / 'keys'}"}}
    settings = parse({**document, **state}, folder, {"HOME": str(folder)})
    async with AsyncExitStack() as stack:
        if count > 1:
            settings.state.dir.mkdir(parents=True)
            keyring(settings)
            await stack.enter_async_context(writing(settings.state.dir))
        yield [
            await stack.enter_async_context(
                use_case(
                    settings,
                    Log(io.StringIO()),
                    shared_stores(f"w{n}") if count > 1 else own_stores,
                    scans=False,
                )
            )
            for n in range(count)
        ]


@dataclass(frozen=True)
class Outcome:
    """What became of a request, without what differs from one run to the next."""

    status: int
    body: str  # that leaves, or the refusal
    answer: str = ""  # as the client sees it


def request(project: str, document: Any, **changes: Any) -> OutboundRequest:
    body = json.dumps(document).encode()
    target = changes.pop("target", "/v1/messages")
    return OutboundRequest(
        uuid.uuid4().hex, Peer(project=project), "POST", "https", changes.pop("host", HOST), 443, target, JSON, body,
        **changes,
    )  # fmt: skip


async def turn(core: Core, project: str, messages: Sequence[Any], answer: str = "") -> Outcome:
    """One request of a conversation, to its end; `answer` is the text that the provider gives."""
    asked = request(project, {"model": "m", "max_tokens": 5, "messages": list(messages)})
    verdict = await core.use_case.handle(asked)
    if not isinstance(verdict, Admitted):
        said = re.sub(r"sha256:[0-9a-f]{64}|[0-9a-f]{32}", "*", verdict.answer.body.decode())
        return Outcome(verdict.answer.status, said)
    said = ""
    if answer and verdict.restoration is not None:
        whole = json.dumps({"type": "message", "content": [{"type": "text", "text": answer}]}).encode()
        opened = verdict.restoration.open(200, JSON)
        said = whole.decode()
        if opened is not None:
            said = (opened[1].feed(whole) + opened[1].end()).decode()
    await core.use_case.conclude(asked.request_id, Ending(response_complete=True))
    return Outcome(200, verdict.body.decode(), said)
