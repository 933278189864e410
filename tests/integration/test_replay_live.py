"""Replay of more than ten thousand stored decisions: what it says is what a live gateway decides under the same bundles."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

from gateway.app.described import outbound
from gateway.app.replaying import replay
from gateway.app.serve import use_case
from gateway.config import parse
from gateway.ports import Peer
from tests.integration.test_review import layer

KEY = "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"
CARD = "4539 1488 0343 6467"
REQUESTS, MESSAGES = 68, 100
SAID = (
    "please go on with step {n}",
    "write to anna.{n}@northwind-traders.org about it",
    f"the card was {CARD} as I said",
    f"export GITHUB_TOKEN={KEY}",
    "nothing to see in {n}, and nothing to say " + "either " * 60,
)
TIGHTER = """
[[rule]]
id = "new.card"
why = "w"
when = { type = "credit_card", confidence_min = 500 }
then = { disposition = "deny", reason_codes = ["pii.card_blocked"] }

[[rule]]
id = "new.mail"
why = "w"
when = { type = "email", project = "shop" }
then = { disposition = "allow_with_approval", reason_codes = ["approval.pending"] }

[[rule]]
id = "new.long"
why = "w"
when = { kind = "tool_result", bytes_min = 300, trust = "untrusted" }
then = { disposition = "allow_minimized", transformations = ["selection"], reason_codes = ["budget.minimized"] }

[[rule]]
id = "new.last"
why = "w"
when = { pointer = "/messages/98/**", model = "claude-b" }
unless = { principal = "alice" }
then = { disposition = "quarantine", reason_codes = ["custom.held"] }
"""


def request(number: int) -> tuple[dict[str, Any], Peer]:
    """One long conversation of its own: prompts, answers, calls and their results."""
    messages: list[dict[str, Any]] = []
    for n in range(0, MESSAGES, 2):
        text = SAID[(number + n // 2) % len(SAID)].replace("{n}", str(number * MESSAGES + n))
        result = {"type": "tool_result", "tool_use_id": f"t{n - 2}", "content": text}
        call = {"type": "tool_use", "id": f"t{n}", "name": "Bash", "input": {"command": f"run {number} {n}"}}
        messages += [
            {"role": "user", "content": [result] if n else text},
            {"role": "assistant", "content": [{"type": "text", "text": f"answer {number} {n}"}, call]},
        ]
    messages.append({"role": "user", "content": f"and {number}?"})
    body = {"model": f"claude-{'ab'[number % 2]}", "max_tokens": 5, "messages": messages}
    url = "https://api.anthropic.com/v1/messages"
    peer = (Peer("shop", "alice", "person"), Peer("blog"))[number % 3 == 0]
    return {"url": url, "body": body, "headers": {}}, peer


async def _evaluations(folder: Path, bundles: list[str]) -> list[dict[str, Any]]:
    """The evaluation records of a gateway that judged all requests, oldest first."""
    document = {
        "state": {"dir": str(folder / "state")},
        "policy": {"bundles": bundles, "poll_s": 0},
        "projects": {"shop": {}, "blog": {}},
    }
    async with use_case(parse(document, folder, {"HOME": str(folder)})) as core:
        for number in range(REQUESTS):
            asked, peer = request(number)
            await core.egress.handle(replace(outbound(asked), peer=peer))
        rows, _ = await core.egress.store.rows({"limit": 1000})
    return [row["evaluation"] for row in reversed(rows)]


async def test_what_a_replay_says_is_what_a_live_gateway_decides(tmp_path: Path) -> None:
    stack = ["policies/default", layer(tmp_path, TIGHTER)]
    (tmp_path / "old").mkdir()
    (tmp_path / "new").mkdir()
    before = await _evaluations(tmp_path / "old", ["policies/default"])
    live = await _evaluations(tmp_path / "new", stack)
    config = parse(
        {"state": {"dir": str(tmp_path / "old" / "state")}, "policy": {"bundles": stack}},
        tmp_path,
        {"HOME": str(tmp_path)},
    )
    same = replay(config, config.policy.folders[:1], since=None, project=None, limit=10_000)
    report = replay(config, config.policy.folders, since=None, project=None, limit=10_000)

    assert same.objects == same.same == report.objects >= 10_000
    assert not same.differences
    found, effects = Counter[tuple[str, str, str, str]](), Counter[tuple[str, str]]()
    for old, new in zip(before, live, strict=True):
        if old["effect"] != new["effect"]:
            effects[old["effect"], new["effect"]] += 1
        for was, now in zip(old["objects"], new["objects"], strict=True):
            assert (was["pointer"], was["bytes"]) == (now["pointer"], now["bytes"])
            if was["disposition"] != now["disposition"]:
                found[was["disposition"], now["disposition"], old["project"], old["provider"]] += 1
    assert report.changes == found
    assert {"new.card", "new.mail", "new.long", "new.last"} == {d.rule for d in report.differences.values()}
    assert len(found) >= 4
    assert report.effects == effects
