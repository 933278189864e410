"""The memory guard as a service: admission first, then the guard, then the boundary; what is put aside waits sealed."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from gateway.app.ownership import Fingerprints
from gateway.app.projects import ProjectFacts
from gateway.app.remembering import MemoryDesk
from gateway.boundary import BoundaryPolicy
from gateway.errors import EvidenceError
from gateway.ports import OwnedText
from gateway.store.fingerprints import FingerprintFiles
from gateway.store.queues import MemoryQueues
from tests.support.detector import TinyDetector

NOW = "2026-05-03T09:43:12Z"
SECRET = "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"
FOREIGN = (
    "The settlement of the Brightwater account is due on the fourteenth of March, says the ledger of Kestrel."
)


class Desk:
    """A desk over two projects, and what it told."""

    def __init__(self, folder: Path) -> None:
        self.events: list[bytes] = []
        self.folder = folder
        self.queues = MemoryQueues(folder / "memory", lambda project: project.encode().ljust(32, b"-"))
        ownership = Fingerprints(
            files=FingerprintFiles(folder / "projects", b"k" * 32),
            key=b"k" * 32,
            projects={n: ProjectFacts(n, f"hash-{n}") for n in ("acme", "kestrel", "default")},
            policy=BoundaryPolicy(),
            role_allows=lambda _: False,
            now=lambda: NOW,
        )
        self.desk = MemoryDesk(TinyDetector(), ownership, self.queues, self.events.extend, b"d" * 32)

    async def owns(self, project: str, text: str) -> None:
        await self.desk.ownership.learn(project, [OwnedText(text, "text", "user")])

    def __call__(self, **changes: Any) -> dict[str, Any]:
        record: dict[str, Any] = {
            "raw_content": "The navbar lives in src/nav.tsx",
            "candidate_project_id": "acme",
            "memory_type": "note",
            "source": "user message",
            "timestamp": NOW,
            "confidence": 0.9,
        }
        return self.desk({**record, **changes})


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path)


def test_what_is_sure_is_accepted(desk: Desk) -> None:
    answer = desk()
    assert (answer["decision"], answer["destination"]) == ("accept", "acme")
    assert answer["normalized_record"]["raw"] == "The navbar lives in src/nav.tsx"
    assert answer["normalized_record"]["guard_version"] == "1.0"
    assert desk.queues.all() == []


def test_secrets_are_taken_out_before_anything_else(desk: Desk) -> None:
    for confidence in (0.9, 0.3):
        answer = desk(raw_content=f"deploy with {SECRET} please", confidence=confidence)
        record = answer["normalized_record"]
        assert SECRET not in json.dumps(answer)
        assert record["raw"].startswith("deploy with [REDACTED:")
        assert record["raw"].endswith("] please")
        assert record["redactions"] == 1
        assert record["raw_digest"].startswith("sha256:")
    (queued,) = desk.queues.all()
    assert SECRET not in json.dumps(queued.record)


def test_what_is_not_sure_waits_in_the_inbox_sealed(desk: Desk) -> None:
    answer = desk(confidence=0.59)
    assert (answer["decision"], answer["destination"]) == ("reroute", "inbox")
    (queued,) = desk.queues.all("inbox")
    assert queued.id == answer["normalized_record"]["queue_id"]
    assert queued.record["raw"] == "The navbar lives in src/nav.tsx"
    assert queued.record["project_id"] is None
    assert "navbar" not in json.dumps(queued.row())
    (path,) = (desk.folder / "memory").iterdir()
    assert b"navbar" not in path.read_bytes()
    assert path.stat().st_mode & 0o077 == 0
    assert desk.queues.all("cleanup") == []


async def test_text_of_another_project_goes_to_cleanup_and_is_told(desk: Desk) -> None:
    await desk.owns("kestrel", FOREIGN)
    answer = desk(raw_content=f"Remember: {FOREIGN}")
    (event,) = (json.loads(e) for e in desk.events)

    assert (answer["destination"], answer["contamination_risk"]) == ("cleanup", "high")
    assert event == {
        "timestamp": NOW,
        "event_type": "import",
        "source_project_hash": "hash-kestrel",
        "target_project_hash": "hash-acme",
        "tool": "model_egress",
        "action": "remember",
        "facts_accessed": 1,
        "allowed": False,
        "policy_reason": "role denies allow_cross_project_search",
    }
    assert desk(raw_content=f"Remember: {FOREIGN}", candidate_project_id="kestrel")["decision"] == "accept"
    assert len(desk.events) == 1


def test_naming_another_project_is_ambiguous(desk: Desk) -> None:
    assert desk(raw_content="as we do in kestrel")["destination"] == "cleanup"
    assert desk(raw_content="the default is fine")["destination"] == "acme"


@pytest.mark.parametrize("record", [None, [], "text", 7])
def test_what_is_no_record_is_rejected(desk: Desk, record: object) -> None:
    answer = desk.desk(record)
    assert (answer["decision"], answer["normalized_record"]) == ("reject", None)
    assert desk.queues.all() == []


def test_a_queue_forgets_what_is_discarded_or_whose_key_is_gone(desk: Desk) -> None:
    for _ in range(2):
        desk(confidence=0.1)
    first, _ = desk.queues.all()
    assert desk.queues.find(first.id) == first
    assert desk.queues.discard(first.id)
    assert not desk.queues.discard(first.id)
    assert desk.queues.find(first.id) is None
    assert desk.queues.find("../../x") is None
    assert not desk.queues.discard("../../x")
    erased = MemoryQueues(desk.folder / "memory", lambda _: b"x" * 32)
    assert erased.all() == []


def test_a_queue_that_cannot_be_written_says_so(desk: Desk) -> None:
    (desk.folder / "memory").write_text("a file where a folder must be")
    with pytest.raises(EvidenceError, match="queued"):
        desk(confidence=0.1)


def test_a_full_queue_says_so(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gateway.store.queues.MAX_RECORDS", 1)
    desk(confidence=0.1)
    with pytest.raises(EvidenceError, match="wait"):
        desk(confidence=0.1)
    assert replace(desk.queues.all()[0]).queue == "inbox"
