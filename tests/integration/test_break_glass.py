"""Break-glass end to end: who may, for how long, what is announced, and what counts for nothing."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import orjson

from tests.integration.test_operation import ask
from tests.integration.test_review import Control, layer
from tests.support.gateway import Bench, gateway

KEY = "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"
RULES = """
[[rule]]
id = "team.keys"
why = "w"
when = { category = "secret", confidence_min = 300 }
then = { disposition = "deny", reason_codes = ["secret.blocked"] }
"""
WISH = {"rules": ["team.keys", "secret.*"], "minutes": 5, "reason": "outage 4711"}


def settings(folder: Path, **more: Any) -> dict[str, Any]:
    for name in ("ann", "bob"):
        (folder / f"{name}.token").write_text(f"{name}-{'t' * 40}\n")
    return {
        "policy": {"bundles": ["policies/default", layer(folder, RULES)], "poll_s": 0},
        "reviewers": {
            "ann": {"token_file": str(folder / "ann.token"), "roles": ["break_glass"]},
            "bob": {"token_file": str(folder / "bob.token"), "roles": ["operate", "approve", "release"]},
        },
        **more,
    }


async def health(bench: Bench) -> dict[str, Any]:
    _, body = await Control(bench)("GET", "/healthz")
    found: dict[str, Any] = body
    return found


async def test_rules_are_lifted_for_a_while_and_everything_says_so(tmp_path: Path) -> None:
    async with gateway(tmp_path, settings(tmp_path)) as bench:
        ann, bob = Control(bench), Control(bench, "bob")
        before = await bench.send(ask(f"key {KEY}"))
        assert (await bob("POST", "/v1/break-glass", WISH))[0] == 403
        status, begun = await ann("POST", "/v1/break-glass", WISH)
        assert status == 200
        during = await bench.send(ask(f"my key {KEY}"))
        announced = await health(bench)
        listed = (await bob("GET", "/v1/break-glass"))[1]["items"]
        metrics = bench.running.core.metrics.render().decode()
        assert (await bob("POST", f"/v1/break-glass/{begun['id']}/end", {}))[0] == 403
        assert (await ann("POST", f"/v1/break-glass/{begun['id'][:6]}/end", {}))[0] == 200
        after = await bench.send(ask(f"our key {KEY}"))
        rows = await bench.rows()
        events, _ = await bench.running.core.egress.store.rows({"kind": "event", "limit": 100})
        assert (await ann("POST", f"/v1/break-glass/{begun['id']}/end", {}))[0] == 404

    assert [r.status for r in (before, during, after)] == [400, 200, 400]
    assert KEY.encode() in bytes(bench.arrived[0].body)
    assert (announced["status"], announced["break_glass"]) == (
        "ok",
        [{"id": begun["id"], "expires": begun["expires"]}],
    )
    assert (listed[0]["owner"], listed[0]["reason"]) == ("ann", "outage 4711")
    assert "gateway_break_glass 1.0" in metrics
    during_row, after_row = rows[1]["evaluation"], rows[0]["evaluation"]
    assert during_row["exceptions_used"] == [f"break-glass:{begun['id']}"]
    (touched,) = [o for o in during_row["objects"] if "policy.break_glass" in o["reason_codes"]]
    assert touched["disposition"] == "allow"
    assert "exceptions_used" not in after_row
    assert during_row["bundles"] != rows[2]["evaluation"]["bundles"] == after_row["bundles"]
    told = [e for e in events if str(e.get("event", "")).startswith("break_glass.")]
    assert [(e["event"], e["reviewer"]) for e in told] == [
        ("break_glass.ended", "ann"),
        ("break_glass.begun", "ann"),
    ]
    log = [json.loads(line) for line in bench.log.getvalue().splitlines()]
    assert [e["effect"] for e in log if e["event"] == "break_glass"] == ["rules_lifted", "over"]


async def test_the_token_of_the_port_lifts_nothing_though_there_are_no_reviewers(tmp_path: Path) -> None:
    document = {k: v for k, v in settings(tmp_path).items() if k != "reviewers"}
    async with gateway(tmp_path, document) as bench:
        token = (bench.state / "control.token").read_text().strip()
        port = Control(bench)
        port._headers = {"authorization": f"Bearer {token}"}
        status, said = await port("POST", "/v1/break-glass", WISH)

    assert (status, said["error"]["code"]) == (403, "review.role")


WRONG = [
    ({"minutes": 241}, "break_glass.minutes"),
    ({"minutes": 0}, "break_glass.malformed"),
    ({"minutes": True}, "break_glass.malformed"),
    ({"minutes": None}, "break_glass.malformed"),
    ({"rules": []}, "break_glass.malformed"),
    ({"rules": "team.keys"}, "break_glass.malformed"),
    ({"rules": ["*a*b*c*d*e*f*g"]}, "break_glass.rules"),
    ({"rules": ["team.keys", "team.kyes"]}, "break_glass.unknown"),
    ({"rules": ["mode.*"]}, "break_glass.unknown"),
    ({"project": "acme-wbe"}, "break_glass.unknown"),
    ({"principal": "alcie"}, "break_glass.unknown"),
    ({"reason": " "}, "break_glass.malformed"),
    ({"reason": "two\nlines"}, "break_glass.malformed"),
    ({"unknown": 1}, "break_glass.malformed"),
]


async def test_what_is_asked_for_must_be_right(tmp_path: Path) -> None:
    async with gateway(tmp_path, settings(tmp_path)) as bench:
        for change, code in WRONG:
            status, said = await Control(bench)("POST", "/v1/break-glass", {**WISH, **change})
            assert (status, said["error"]["code"]) == (400, code)
        sent = await bench.send(ask(f"key {KEY}"))

    assert sent.status == 400


async def test_it_holds_for_whom_it_names_over_a_restart_and_not_for_what_the_mode_decides(
    tmp_path: Path,
) -> None:
    document = settings(tmp_path, projects={"acme": {}})
    unread = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AAAA"}}
    picture = {"model": "m", "messages": [{"role": "user", "content": [unread]}]}
    async with gateway(tmp_path, document) as bench:
        wish = {**WISH, "rules": ["*"], "project": "acme"}
        assert (await Control(bench)("POST", "/v1/break-glass", wish))[0] == 200
    async with gateway(tmp_path, document) as bench:
        named = await bench.send(ask(f"key {KEY}"), user="acme")
        other = await bench.send(ask(f"key {KEY}"))
        partly = await bench.send(picture, user="acme")

    assert (named.status, other.status, partly.status) == (200, 400, 400)


async def test_what_is_over_forged_or_put_back_counts_for_nothing(tmp_path: Path) -> None:
    async with gateway(tmp_path, settings(tmp_path)) as bench:
        path, ann, glass = bench.state / "break_glass.json", Control(bench), bench.running.core.glass
        _, begun = await ann("POST", "/v1/break-glass", WISH)
        (signed,) = orjson.loads(path.read_bytes())
        await ann("POST", f"/v1/break-glass/{begun['id']}/end", {})

        async def holds(rows: Any) -> bool:
            path.write_bytes(rows if isinstance(rows, bytes) else orjson.dumps(rows))
            await bench.running.core.policy.rejoin()
            return (await bench.send(ask(f"key {KEY}"))).status == 200

        ended = orjson.loads(path.read_bytes())
        statement = orjson.loads(signed["statement"])
        longer = {**statement, "expires": "2099-01-01T00:00:00.000000Z"}
        assert not await holds(ended)
        assert not await holds([*ended, signed])
        assert not await holds([{**signed, "statement": orjson.dumps(longer).decode()}])
        assert not await holds([{**signed, "signature": "AAAA"}])
        assert not await holds([{"statement": 3}, {}, 7])
        assert not await holds(b"no json")
        assert await holds([signed])
        glass.max_minutes = 1  # shorter than what was signed: read anew with the next change of the file
        assert not await holds([signed, {}])


async def test_its_end_needs_nobody(tmp_path: Path) -> None:
    async with gateway(tmp_path, settings(tmp_path)) as bench:
        glass = bench.running.core.glass
        _, begun = await Control(bench)("POST", "/v1/break-glass", WISH)
        later = begun["expires"][:-1] + "Z"

        class Later:
            def now(self) -> str:
                return later

            def monotonic_us(self) -> int:
                return 0

        glass.clock = Later()
        await bench.running.core.policy.rejoin()
        after = await bench.send(ask(f"key {KEY}"))
        assert "break_glass" not in await health(bench)
        await asyncio.sleep(0)

    assert after.status == 400
