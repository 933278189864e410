"""Dispositions that change an object, through the real proxy: what the provider gets, what evidence says, the next turn."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

from tests.integration.test_review import layer
from tests.support.gateway import gateway

TOKEN = "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"
SIGNATURE = base64.b64encode(bytes(range(200))).decode()
RULES = """
[[rule]]
id = "cut.long"
why = "w"
when = { kind = "tool_result", bytes_min = 600 }
then = { disposition = "allow_minimized", transformations = ["selection"], parameters = { minimiser = "head_tail", head_lines = 2, tail_lines = 1 }, reason_codes = ["budget.minimized"] }

[[rule]]
id = "sum.system"
why = "w"
when = { kind = "system" }
then = { disposition = "allow_summary_only", parameters = { summariser = "json_schema" }, reason_codes = ["budget.summary"] }

[[rule]]
id = "local.document"
why = "w"
when = { kind = "document" }
then = { disposition = "allow_local_model_only", reason_codes = ["custom.local"] }
"""


def request(*later: Any, **more: Any) -> dict[str, Any]:
    log = f"first {TOKEN}\n" + "".join(f"line number {n}\n" for n in range(60)) + "last\n"
    return {
        "model": "claude-x",
        "max_tokens": 5,
        "system": json.dumps({"customer": {"name": "Nightjar", "seats": 4}}),
        "messages": [
            {"role": "user", "content": "run"},
            {
                "role": "assistant",
                "content": [
                    {"type": "thinking", "thinking": f"I saw {TOKEN}", "signature": SIGNATURE},
                    {"type": "tool_use", "id": "t1", "name": "Bash", "input": {"command": "cat log"}},
                ],
            },
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t1", "content": log}]},
            {"role": "assistant", "content": "done"},
            {"role": "user", "content": "and now?"},
            *later,
        ],
        **more,
    }


async def test_objects_leave_cut_summarised_masked_and_without_thinking(tmp_path: Path) -> None:
    document = {"policy": {"bundles": ["policies/default", layer(tmp_path, RULES)], "poll_s": 0}}
    async with gateway(tmp_path, document) as bench:
        first = await bench.send(request())
        second = await bench.send(
            request({"role": "assistant", "content": "this"}, {"role": "user", "content": "thanks"})
        )
        part = {"type": "text", "media_type": "text/plain", "data": "for us"}
        local = await bench.send(
            {"model": "m", "messages": [{"role": "user", "content": [{"type": "document", "source": part}]}]}
        )
        rows = await bench.rows()

    one, two = (bytes(arrived.body) for arrived in bench.arrived)
    sent = json.loads(one)
    result = sent["messages"][2]["content"][0]
    objects = {item["kind"]: item for item in rows[2]["evaluation"]["objects"]}

    assert (first.status, second.status, local.status) == (200, 200, 400)
    assert [part["type"] for part in sent["messages"][1]["content"]] == ["tool_use"]
    lines = result["content"].splitlines()
    assert lines[0].startswith("first EGRESS_GITHUB_TOKEN_")
    assert lines[1:] == ["line number 0", "[59 lines cut by the egress gateway]", "last"]
    assert sent["system"].startswith("[extract by the egress gateway; withheld: ")
    assert "seats: integer" in sent["system"]
    assert "Nightjar" not in one.decode()
    assert TOKEN not in one.decode() + two.decode()
    assert two.startswith(one[: one.rindex(b"]")])
    assert (
        objects["tool_result"]["disposition"] == "allow_redacted"
    )  # the stricter of cutting and masking; both were done
    assert objects["system"]["disposition"] == "allow_summary_only"
    assert objects["thinking"]["disposition"] == "quarantine"
    kinds = {d["disposition"]: d.get("required_transformations", []) for d in rows[2]["receipt"]["decisions"]}
    assert kinds["allow_redacted"] == ["redaction", "selection"]
    assert kinds["allow_summary_only"] == ["summarization"]
    assert "destination.remote_restricted" in local.body.decode()
    assert rows[0]["effect"] == "refused"
    assert rows[2]["receipt_state"] != "rejected"
