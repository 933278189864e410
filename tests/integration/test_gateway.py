"""The whole way: an agent's request through CONNECT and TLS, evaluated, admitted, observed, answered, restored."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.support.gateway import Bench, gateway

SECRET = "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"  # a published sample whose checksum holds
MAIL = "alice.meyer@northwind-traders.org"


@pytest.fixture
async def bench(tmp_path: Path):  # type: ignore[no-untyped-def]
    async with gateway(tmp_path) as running:
        yield running


def anthropic(text: str, **more: object) -> dict[str, object]:
    return {"model": "claude-x", "max_tokens": 5, "messages": [{"role": "user", "content": text}], **more}


async def test_a_clean_request_arrives_byte_for_byte_and_is_observed(bench: Bench) -> None:
    body = b'{"model": "claude-x",  "max_tokens":5, "messages":[{"role":"user","content":"h\\u0065llo"}]}'
    reply = await bench.send(body)
    (row,) = await bench.rows()

    assert reply.status == 200
    assert bytes(bench.arrived[0].body) == body
    assert row["effect"] == "forwarded"
    assert row["receipt_state"] == "observed_model_egress"
    assert row["evaluation"]["coverage"] == {
        "bytes_total": len(body),
        "bytes_inspected": len(body),
        "bytes_opaque": 0,
        "bytes_refused": 0,
    }
    assert reply.header("x-egress-receipt") == row["digest"]


async def test_a_secret_is_masked_on_the_way_out_and_whole_on_the_way_back(bench: Bench) -> None:
    reply = await bench.send(anthropic(f"Repeat {SECRET} and {MAIL}"))
    (row,) = await bench.rows()

    assert SECRET not in bytes(bench.arrived[0].body).decode()
    assert MAIL not in bytes(bench.arrived[0].body).decode()
    assert reply.status == 200
    assert reply.header("x-egress-effect") == "rewritten"
    assert row["receipt"]["security"]["redactions"] == 2
    assert row["receipt_state"] == "observed_model_egress"


async def test_what_policy_denies_gets_the_providers_own_error_and_nothing_leaves(bench: Bench) -> None:
    reply = await bench.send(anthropic("hi", model=SECRET))
    (row,) = await bench.rows()

    assert reply.status == 400
    assert json.loads(reply.body)["type"] == "error"
    assert reply.header("x-should-retry") == "false"
    assert SECRET not in reply.body.decode()
    assert row["digest"] in reply.body.decode()
    assert bench.arrived == []
    assert row["receipt_state"] == "rejected"
    assert row["effect"] == "refused"
