"""Checkpoints that go elsewhere by themselves, what happens where they cannot, and the command to the same places."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from gateway.app import anchoring
from gateway.config import parse
from gateway.errors import ConfigError
from gateway.evidence.checkpoint import read_note, split_notes
from gateway.store.audit import verify_store
from tests.support.gateway import gateway
from tests.support.waiting import eventually

BODY = {"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": "hello there"}]}


@pytest.mark.parametrize("name", ["url", "tsa"])
@pytest.mark.parametrize("url", ["ftp://host/", "host/path", "http://", "http://[::1", "https://host/\n", 7])
def test_a_place_is_a_url(tmp_path: Path, name: str, url: Any) -> None:
    with pytest.raises(ConfigError) as caught:
        parse({"anchor": {name: url}}, tmp_path, {})
    assert f"anchor.{name}" in str(caught.value)


@pytest.fixture(autouse=True)
def _soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every pause between anchors is short."""
    sleep = asyncio.sleep

    async def short(seconds: float) -> None:
        await sleep(min(seconds, 0.05))

    monkeypatch.setattr(anchoring.asyncio, "sleep", short)


async def test_a_running_gateway_anchors_what_has_grown(tmp_path: Path) -> None:
    kept = tmp_path / "kept"
    async with gateway(tmp_path, {"anchor": {"file": str(kept)}}) as bench:
        assert (await bench.send(BODY)).status == 200
        await eventually(kept.exists)
        assert (await bench.send(BODY)).status == 200
        await eventually(lambda: len(split_notes(kept.read_bytes())) > 1)
    sizes = [read_note(note).checkpoint.size for note in split_notes(kept.read_bytes())]
    assert sizes == sorted(set(sizes)), "one for each growth"
    assert '"anchored"' in bench.log.getvalue()
    key = bench.running.core.keys.signing_key().public_key
    assert verify_store(bench.state / "egress.db", key, split_notes(kept.read_bytes())).ok


async def test_a_place_that_is_not_there_holds_nothing_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = {"anchor": {"url": "http://user:canary@127.0.0.1:1/anchor"}}
    async with gateway(tmp_path, settings) as bench:
        assert (await bench.send(BODY)).status == 200
        await eventually(lambda: "anchor_failed" in bench.log.getvalue())
        assert (await bench.send(BODY)).status == 200
        assert await bench.running.core.egress.store.health() == ""
    failed = [json.loads(line) for line in bench.log.getvalue().splitlines() if "anchor_failed" in line]
    assert failed[0]["code"] == "anchor.failed"
    assert "canary" not in bench.log.getvalue()
