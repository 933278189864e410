"""What `/healthz` and `/readyz` say while traffic is stopped or an older policy holds, and what the log says of it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from gateway.app.telling import places
from tests.integration.test_review import Control, layer, settings
from tests.support.gateway import gateway

RULE = '[[rule]]\nid = "told.{}"\nwhy = "w"\nwhen = {{ kind = "text" }}\nthen = {{ disposition = "allow" }}\n'


async def test_a_kill_switch_is_said_and_keeps_traffic_away(tmp_path: Path) -> None:
    async with gateway(tmp_path, {"policy": {"poll_s": 0}, "projects": {"shop": {}}}) as bench:
        control = Control(bench)
        before = [await control("GET", path) for path in ("/healthz", "/readyz")]
        (bench.state / "kill").write_text('{"projects": ["shop"]}')
        part = [await control("GET", path) for path in ("/healthz", "/readyz")]
        (bench.state / "kill").write_bytes(b"")
        healthz, readyz = [await control("GET", path) for path in ("/healthz", "/readyz")]
        live = await control("GET", "/livez")
        (bench.state / "kill").unlink()
        after = [await control("GET", path) for path in ("/healthz", "/readyz")]

    assert [status for status, _ in (*before, *part, *after)] == [200] * 6
    assert all("kill_switch" not in said for _, said in (*before, *after))
    assert all(said["kill_switch"]["projects"] == ["shop"] for _, said in part)
    assert (healthz[0], healthz[1]["status"], healthz[1]["kill_switch"]["all"]) == (200, "ok", True)
    assert (readyz[0], readyz[1]["status"]) == (503, "unavailable")
    assert "kill switch" in readyz[1]["reason"]
    assert live[0] == 200


async def test_a_stale_policy_is_said_and_its_places_are_logged_without_content(tmp_path: Path) -> None:
    document = settings(tmp_path)
    document["reviewers"]["ann"]["roles"] = ["operate"]
    document["policy"]["bundles"][1] = layer(tmp_path, RULE.format("one"))
    async with gateway(tmp_path, document) as bench:
        control = Control(bench)
        rules = tmp_path / "layer" / "rules" / "r.toml"
        rules.write_text(
            RULE.format("one")
            + '[[rule]]\nid = "x.y"\nwhy = "do-not-log-me"\nthen = { disposition = "do-not-log-me-either" }\n'
        )
        reloaded = await control("POST", "/v1/reload", {})
        stale = [await control("GET", path) for path in ("/healthz", "/readyz")]
        rules.write_text(RULE.format("two"))
        again = await control("POST", "/v1/reload", {})
        fresh = await control("GET", "/healthz")
        lines: list[dict[str, Any]] = [json.loads(line) for line in bench.log.getvalue().splitlines()]

    assert (reloaded[1]["ok"], again[1]["ok"]) == (False, True)
    assert [(status, said["policy"]) for status, said in stale] == [(200, "stale")] * 2
    assert "policy" not in fresh[1]
    told = [line for line in lines if line["event"] == "policy_problem"]
    assert {(line["bundle"], line["file"], line["place"]) for line in told} >= {
        (2, "rules/r.toml", "rule[1].then.disposition")
    }
    assert "do-not-log-me" not in bench.log.getvalue()


def test_places_are_taken_from_problems_and_nothing_else() -> None:
    problems = (
        "rules/r.toml: rule[0].then.disposition: 'redakt' is none of allow",
        "rules/r.toml: rule[0].then.disposition: required",
        "rules/z.toml: not TOML: Expected '=' after a key (at line 1)",
        "bundle 2: layer/rules/r.toml: rule 'a.b': no local model 'secret words' is configured",
        "the bundles change while they are read",
        "bundle.toml: foo bar: unknown key",
    )
    assert places(problems) == [
        {"file": "rules/r.toml", "place": "rule[0].then.disposition"},
        {"file": "rules/z.toml"},
        {"bundle": 2, "file": "layer/rules/r.toml", "rule": "a.b"},
        {"file": "bundle.toml"},
    ]
