"""Provider accounts where only listed ones may be used anywhere, and in shadow enforcement: a gateway of its own each."""

from __future__ import annotations

import json
from pathlib import Path

from tests.integration.test_accounts import PERSONAL, ask, document
from tests.support.gateway import gateway


async def test_other_providers_are_open_unless_only_listed_accounts_may_be_used(tmp_path: Path) -> None:
    (tmp_path / "state").mkdir(mode=0o700)
    settings = document(tmp_path, unlisted_accounts="refuse")
    host = {"host": "generativelanguage.googleapis.com", "target": "/v1beta/models/g:generateContent"}
    body = json.dumps({"contents": [{"role": "user", "parts": [{"text": "hi"}]}]}).encode()
    async with gateway(tmp_path, settings) as bench:
        refused = await ask(bench, "x-goog-api-key: AIza-x", body=body, **host)
    del settings["policy"]["unlisted_accounts"]
    async with gateway(tmp_path, settings) as bench:
        passed = await ask(bench, "x-goog-api-key: AIza-x", body=body, **host)

    assert refused.status == 400
    assert "account.not_allowed" in refused.body.decode()
    assert passed.status == 200


async def test_in_shadow_enforcement_it_is_only_said(tmp_path: Path) -> None:
    (tmp_path / "state").mkdir(mode=0o700)
    async with gateway(tmp_path, document(tmp_path, enforcement="shadow")) as bench:
        reply = await ask(bench, f"x-api-key: {PERSONAL}")
        (row,) = await bench.rows()

    assert reply.status == 200
    assert {"shadow.would_deny", "account.not_allowed"} <= set(row["evaluation"]["shadow_reason_codes"])
