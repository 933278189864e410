"""`egress memory`: a record is judged, waits, is assigned by a person, or discarded."""

from __future__ import annotations

import io
import json
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.unit.cli.conftest import Done, Run

RECORD: dict[str, Any] = {
    "raw_content": "The navbar lives in src/nav.tsx; ask 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",
    "candidate_project_id": "acme",
    "memory_type": "note",
    "source": "user message",
    "timestamp": "2026-05-03T09:43:12Z",
    "confidence": 0.9,
}


@pytest.fixture
def guard(egress: Run, monkeypatch: pytest.MonkeyPatch) -> Any:
    def run(*options: str, **changes: Any) -> Done:
        data = json.dumps({**RECORD, **changes}).encode()
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data)))
        return egress("memory", "guard", *options)

    return run


def test_a_record_goes_its_way(egress: Run, guard: Any, folder: Path) -> None:
    for name in ("acme", "kestrel"):
        assert egress("project", "add", name).status == 0
    accepted = guard("--exit-code")
    assert accepted.status == 0, accepted.err
    assert "ask [REDACTED:" in json.loads(accepted.out)["normalized_record"]["raw"]
    assert "ghp_" not in accepted.out

    assert guard("--exit-code", confidence=0.2).status == 1
    assert guard(raw_content="as in kestrel").status == 0
    rows = [json.loads(line) for line in egress("memory", "inbox", "list", "--json").out.splitlines()]
    assert sorted(row["queue"] for row in rows) == ["cleanup", "inbox"]
    assert "navbar" not in egress("memory", "inbox", "list").out
    (waiting,) = (row["id"] for row in rows if row["queue"] == "inbox")

    assert egress("memory", "inbox", "assign", waiting, "nobody").status != 0
    assigned = json.loads(egress("memory", "inbox", "assign", waiting, "kestrel").out)
    assert (assigned["project_id"], assigned["confidence"]) == ("kestrel", 1.0)
    assert "candidate_project_id" not in assigned
    (left,) = (json.loads(line) for line in egress("memory", "inbox", "list", "--json").out.splitlines())
    assert left["queue"] == "cleanup"
    assert egress("memory", "inbox", "discard", left["id"]).status == 0
    assert egress("memory", "inbox", "discard", left["id"]).status != 0
    assert egress("memory", "inbox", "list", "--queue", "cleanup", "--json").out == ""
