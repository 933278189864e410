"""Memory records that wait for a person: `inbox` (not sure enough) and `cleanup` (speaks of several projects).

One file a record, `<state>/vault/memory/<id>.json`, written whole and renamed into place, so that a gateway and a
command can use the folder at once. What a record says is sealed under its candidate's key: erasing a project's key
erases it.
"""

from __future__ import annotations

import base64
import json
import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from gateway.errors import EvidenceError, GatewayError
from gateway.files import private_folder, sync_folder
from gateway.ports import SealedValue
from gateway.store.sealing import open_value, seal_value

QUEUES: Final = ("inbox", "cleanup")
MAX_RECORDS: Final = 10_000
_ID: Final = re.compile(r"[0-9a-f]{16}")


@dataclass(frozen=True, slots=True)
class Queued:
    """One record that waits. `record` is the guard's normalized one and holds the content."""

    id: str
    queue: str
    project: str
    queued_at: str
    reason: str
    record: Mapping[str, Any] = field(repr=False)

    def row(self) -> dict[str, Any]:
        """What a list shows: everything but the content."""
        shown = {
            k: self.record.get(k) for k in ("candidate_project_id", "memory_type", "timestamp", "confidence")
        }
        size = len(str(self.record.get("raw", "")).encode("utf-8", "surrogatepass"))
        head = {"id": self.id, "queue": self.queue, "queued_at": self.queued_at}
        return {**head, **shown, "bytes": size, "reason": self.reason}


class MemoryQueues:
    """The folder. `key` gives the sealing key of a project."""

    def __init__(self, folder: Path, key: Callable[[str], bytes]) -> None:
        """Use a folder, which is made when something is queued."""
        self._folder = folder
        self._key = key

    def put(self, queue: str, project: str, record: Mapping[str, Any], *, at: str, reason: str) -> str:
        """Queue a record, sealed under the key of `project`; its id. EvidenceError where it cannot be kept."""
        identity = os.urandom(8).hex()
        plain = json.dumps({"record": dict(record), "reason": reason})
        sealed = seal_value(plain, project, f"memory:{queue}:{identity}", self._key(project))
        document = {
            "v": 1,
            "id": identity,
            "queue": queue,
            "project": project,
            "queued_at": at,
            "sealed": base64.b64encode(sealed).decode(),
        }
        path = self._folder / f"{identity}.json"
        draft = path.with_suffix(".new")
        try:
            private_folder(self._folder)
            if sum(1 for _ in self._folder.glob("*.json")) >= MAX_RECORDS:
                raise EvidenceError("memory.queue_full", f"{MAX_RECORDS} memory records wait already")
            descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
            with os.fdopen(descriptor, "w", encoding="ascii") as out:
                json.dump(document, out)
                out.flush()
                os.fsync(out.fileno())
            draft.replace(path)
            sync_folder(self._folder)
        except OSError as error:
            why = os.strerror(error.errno or 0)
            raise EvidenceError("memory.unavailable", f"a memory record cannot be queued: {why}") from error
        return identity

    def all(self, queue: str = "") -> list[Queued]:
        """The records of one queue, or of both, oldest first; what cannot be opened any more is left out."""
        found = [self._read(path) for path in self._folder.glob("*.json")]
        return sorted(
            (q for q in found if q is not None and queue in ("", q.queue)), key=lambda q: (q.queued_at, q.id)
        )

    def find(self, identity: str) -> Queued | None:
        """One record, None where there is none of this id."""
        return self._read(self._folder / f"{identity}.json") if _ID.fullmatch(identity) else None

    def discard(self, identity: str) -> bool:
        """Delete a record; False where there is none."""
        if not _ID.fullmatch(identity):
            return False
        try:
            (self._folder / f"{identity}.json").unlink()
            sync_folder(self._folder)
        except FileNotFoundError:
            return False
        return True

    def _read(self, path: Path) -> Queued | None:
        try:
            document = json.loads(path.read_bytes())
            identity, queue, project = document["id"], document["queue"], document["project"]
            sealed = base64.b64decode(document["sealed"])
            entry = SealedValue(project, f"memory:{queue}:{identity}", "memory", b"", sealed)
            plain = json.loads(open_value(entry, self._key(project)))
            return Queued(identity, queue, project, document["queued_at"], plain["reason"], plain["record"])
        except (OSError, ValueError, KeyError, TypeError, GatewayError):
            return None  # gone meanwhile, or its project's key was erased, and with it what it said
