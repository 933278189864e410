"""The rows of the same table where no connection is had, or the gateway stops: each with a gateway of its own."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from gateway.app import serve
from gateway.store.audit import verify_store
from gateway.store.reader import SqliteReader
from gateway.store.rows import Query
from tests.support.claims import ANSWERED, HOST, NOT_SENT, TIMES, Claim, Life, body, settled
from tests.support.gateway import gateway
from tests.support.parent import Parent
from tests.support.pki import Pki
from tests.support.provider import Answer, Provider
from tests.support.waiting import eventually


async def alone(folder: Path, how: Callable[[Life], Awaitable[None]], **options: Any) -> Claim:
    """One request through a gateway of its own."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(serve.wiring, "settings_of_proxy", settled(**TIMES))
        async with gateway(folder, **options) as bench:
            made = Life(bench)
            await how(made)
            await bench.send(body())
            found = await made.claim()
            assert found.counted or not any(a.complete for a in bench.arrived) or found.state != "prepared"
            return found


async def nothing(_: Life) -> None:
    return


async def test_nobody_listens(tmp_path: Path) -> None:
    async def stop(life: Life) -> None:
        await life.bench.provider.stop()

    assert await alone(tmp_path, stop) == NOT_SENT


async def test_a_certificate_of_somebody_else(tmp_path: Path) -> None:
    def rogue(pki: Pki) -> Provider:
        return Provider(pki, rogue=True)

    assert await alone(tmp_path, nothing, provider_of=rogue) == NOT_SENT


async def test_a_name_that_does_not_resolve(tmp_path: Path) -> None:
    nowhere = {"upstream": {"connect_to": {f"{HOST}:443": "nowhere.invalid:443"}}}
    assert await alone(tmp_path, nothing, document=nowhere) == NOT_SENT


@pytest.mark.parametrize("how", ["through", "refuse", "reset"])
async def test_through_a_parent_proxy(tmp_path: Path, how: str) -> None:
    parent = Parent(authorization="Basic dTpw", refuse=how == "refuse")
    await parent.start()

    async def script(life: Life) -> None:
        if how == "reset":
            life.bench.provider.script(Answer(reset="body"))

    through = {"upstream": {"proxy": f"http://u:p@127.0.0.1:{parent.port}"}}
    try:
        found = await alone(tmp_path, script, document=through)
    finally:
        await parent.stop()
    if how == "through":
        assert found == ANSWERED
    elif how == "refuse":
        assert found == NOT_SENT
    else:
        assert (found.state, found.counted) == ("handed_off", 0)


async def test_a_gateway_that_is_told_to_stop_concludes_what_is_open(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(serve, "DRAIN_S", 0.3)
    async with gateway(tmp_path) as bench:
        bench.provider.script(Answer(silent=True))
        asked = asyncio.ensure_future(bench.send(body()))
        await eventually(lambda: bench.arrived and bench.arrived[0].complete)
    await asyncio.gather(asked, return_exceptions=True)
    reader = SqliteReader(bench.state / "egress.db")
    try:
        ((row,), _) = reader.rows(Query.read({"limit": 9}))
    finally:
        reader.close()
    assert row["receipt_state"] == "handed_off"
    assert row["lineage"]
    key = bench.running.core.keys.signing_key().public_key
    assert verify_store(bench.state / "egress.db", key).document()["not_yet_logged"] == 0
