"""What reviewers decided outlives a change of the signing key; what the old key signs afterwards counts for nothing."""

from __future__ import annotations

import asyncio
import contextlib
from pathlib import Path
from typing import Any

import apsw

from gateway.app.review import PURPOSE
from gateway.app.upkeep import rotate_signing_key
from gateway.config import parse
from gateway.store.audit import verify_store
from gateway.store.keys import Keyring
from tests.integration.test_review import WORDS, Control, held, settings, tool
from tests.support.gateway import gateway


def rotated(folder: Path, document: dict[str, Any]) -> dict[str, Any]:
    config = parse({**document, "state": {"dir": str(folder / "state")}}, folder, {})
    return dict(rotate_signing_key(config))


async def test_decisions_hold_under_the_next_key_and_lifts_do_not(tmp_path: Path) -> None:
    document = settings(tmp_path)
    document["reviewers"]["ann"]["roles"] += ["break_glass"]
    async with gateway(tmp_path, document) as bench:
        ann = Control(bench)
        await bench.send(tool())
        await ann("POST", f"/v1/quarantine/{(await held(ann))['id']}/release", {})
        await bench.send(tool(WORDS + " again"))
        (other,) = [i for i in (await ann("GET", "/v1/quarantine"))[1]["items"] if i["state"] == "held"]
        await ann("POST", f"/v1/quarantine/{other['id']}/discard", {})
        lift = {"rules": ["held.user"], "minutes": 10, "reason": "r", "project": "", "principal": ""}
        assert (await ann("POST", "/v1/break-glass", lift))[0] == 200
        old = Keyring(bench.state / "keys").signing_key()

    done = await asyncio.to_thread(rotated, tmp_path, document)
    assert (done["decisions"], done["lifts_ended"]) == (2, True)
    async with gateway(tmp_path, document) as bench:
        ann = Control(bench)
        states = {item["id"]: item["state"] for item in (await ann("GET", "/v1/quarantine"))[1]["items"]}
        await bench.send(tool())
        await bench.send(tool(WORDS + " again"))
        lifted = (await ann("GET", "/v1/break-glass"))[1]["items"]
        bodies = [bytes(each.body) for each in bench.arrived]
        key = Keyring(bench.state / "keys").signing_key().public_key

    assert sorted(states.values()) == ["refused", "released"]
    assert [WORDS.encode() in body for body in bodies] == [True, False]
    assert lifted == []
    for public in (old.public_key, key):
        assert verify_store(tmp_path / "state" / "egress.db", public).ok

    database = apsw.Connection(str(tmp_path / "state" / "vault" / "held.db"))
    for hold, statement in database.execute("SELECT hold, statement FROM votes").fetchall():
        database.execute(
            "UPDATE votes SET signature = ? WHERE hold = ?", (old.sign(PURPOSE + statement), hold)
        )  # type: ignore[operator]
    database.close()
    async with gateway(tmp_path, document) as bench:
        reply = await bench.send(tool())
        forged = WORDS.encode() in bytes(bench.arrived[0].body)
    assert (reply.status, forged) == (200, False)


async def test_a_change_that_was_cut_short_carries_over_when_it_is_finished(
    tmp_path: Path, monkeypatch: Any
) -> None:
    document = settings(tmp_path)
    async with gateway(tmp_path, document) as bench:
        ann = Control(bench)
        await bench.send(tool())
        await ann("POST", f"/v1/quarantine/{(await held(ann))['id']}/release", {})

    def killed(*_given: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("gateway.app.upkeep.carry_over", killed)
    with contextlib.suppress(KeyboardInterrupt):
        await asyncio.to_thread(rotated, tmp_path, document)
    monkeypatch.undo()
    done = await asyncio.to_thread(rotated, tmp_path, document)
    async with gateway(tmp_path, document) as bench:
        await bench.send(tool())
        assert WORDS.encode() in bytes(bench.arrived[0].body)
    assert done["decisions"] == 1
