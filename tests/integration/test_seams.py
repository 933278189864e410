"""Over real TLS: a key that is cut over two parts, or two messages, does not leave in either."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.support.gateway import Bench, gateway

SECRET = "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"  # a published sample whose checksum holds


@pytest.fixture
async def bench(tmp_path: Path) -> AsyncIterator[Bench]:
    async with gateway(tmp_path) as running:
        yield running


def part(text: str) -> dict[str, str]:
    return {"type": "text", "text": text}


async def test_no_half_of_a_cut_key_arrives(bench: Bench) -> None:
    for cut in range(1, len(SECRET), 4):
        first, second = f"round {cut}: the key is {SECRET[:cut]}", f"{SECRET[cut:]} and so on"
        content = [part(first), part(second)] if cut % 8 == 1 else None
        messages = (
            [{"role": "user", "content": content}]
            if content
            else [{"role": "user", "content": first}, {"role": "assistant", "content": second}]
        )
        reply = await bench.send({"model": "m", "max_tokens": 5, "messages": messages})
        sent = json.loads(bytes(bench.arrived[-1].body))
        texts = [
            text
            for message in sent["messages"]
            for text in (
                [p["text"] for p in message["content"]]
                if isinstance(message["content"], list)
                else [message["content"]]
            )
        ]

        assert reply.status == 200
        assert not any(SECRET[at : at + 5] in "".join(texts) for at in range(len(SECRET) - 4)), cut
    assert all(row["evaluation"]["effect"] == "rewritten" for row in await bench.rows())
