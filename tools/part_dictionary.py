"""Make a compression dictionary from the evidence of made-up requests: `python tools/part_dictionary.py OUTPUT`.

A dictionary that has been released is never made again: what was written with it is read with it. A better one gets
the next number, and `gateway.store.compression` learns to read both.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import zstandard

from bench.evaluate import Evaluator
from bench.payloads import Traffic
from gateway.app.offline import outbound
from gateway.ports import Admitted, Attempt, Ending, Record

SIZE = 4096
TURNS = 24


class _Collector:
    """An evidence store that only remembers the texts that would be compressed."""

    def __init__(self) -> None:
        self.texts: dict[bytes, None] = {}

    async def append(self, records: Sequence[Record], row: object = None) -> None:
        """Remember the parts of each record; those that are alone or around a list, as one text."""
        del row
        for record in records:
            ends = {0, len(record.parts) - 1}
            inner = [part for at, part in enumerate(record.parts) if at not in ends]
            outer = b"".join(record.parts[at] for at in sorted(ends))
            self.texts.update(dict.fromkeys([outer, *inner]))


def _requests() -> list[tuple[str, dict[str, Any]]]:
    """Small requests in the dialects, with what detectors find and policies refuse."""
    words = [f"note {number} for mail{number}@example.org" for number in range(40)]
    chat = {"model": "gpt-5", "messages": [{"role": "user", "content": word} for word in words]}
    replies = {"model": "gpt-5", "input": [{"role": "user", "content": word} for word in words]}
    gemini = {"contents": [{"role": "user", "parts": [{"text": word} for word in words]}]}
    embeddings = {"model": "text-embedding-3-large", "input": words}
    return [
        ("https://api.openai.com/v1/chat/completions", chat),
        ("https://api.openai.com/v1/responses", replies),
        ("https://api.openai.com/v1/embeddings", embeddings),
        ("https://generativelanguage.googleapis.com/v1beta/models/gemini-3-pro:generateContent", gemini),
    ]


async def _collect(evaluator: Evaluator, found: _Collector) -> None:
    egress = evaluator.egress
    egress.store = found  # type: ignore[assignment]  # appends are all that is asked of it
    bodies = []
    for seed in range(3):
        traffic = Traffic(seed)
        for _ in range(TURNS):
            traffic.turn(2000)
            bodies.append(("https://api.anthropic.com/v1/messages", traffic.encoded()))
    bodies += [(url, json.dumps(document).encode()) for url, document in _requests()]
    for number, (url, body) in enumerate(bodies):
        made = outbound({"method": "POST", "url": url, "headers": {}})
        given = {name: getattr(made, name) for name in made.__slots__}
        request = type(made)(**{**given, "body": body, "request_id": f"{number:032x}"})
        admitted = await egress.handle(request)
        if isinstance(admitted, Admitted):
            sent, size = admitted.request_digest, len(admitted.body)
            seen = Attempt(1, "http", 200, None, sent, size, True, "answered", True)
            await egress.observe(request.request_id, seen)
        await egress.conclude(request.request_id, Ending(response_complete=True))


def main(output: Path) -> int:
    """Write the dictionary."""
    evaluator, found = Evaluator(), _Collector()
    evaluator.loop.run_until_complete(_collect(evaluator, found))
    dictionary = zstandard.train_dictionary(SIZE, list(found.texts))
    output.write_bytes(dictionary.as_bytes())
    return 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
