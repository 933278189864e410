"""The Ownership port: whose text is it, by the fingerprints of what each project has sent, and who may see it.

Kept in one file beside the vault (keyed fingerprints only), written whole and replaced, so that a crash costs what was
learnt since the last time and nothing else.
"""

from __future__ import annotations

import asyncio
import json
import os
import struct
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from gateway.boundary import (
    Asking,
    Attempt,
    BoundaryPolicy,
    CrossProjectEventTypeV1,
    Fact,
    FactPrivacy,
    FingerprintIndex,
    Match,
    crossing_event,
    is_ownable,
    ownable_text,
    visibility,
)
from gateway.errors import SetupError
from gateway.ports import ForeignText, OwnedText, Peer

_MAGIC = b"EGFP\x01"
_ENTRY = struct.Struct("<8sQ")
MIN_LETTERS = 40  # shorter texts cannot hold enough evidence
SAVE_EVERY_S = 60.0


@dataclass(frozen=True, slots=True)
class ProjectFacts:
    """What the boundary rule knows of one project."""

    hash: str
    team: str = ""
    links: frozenset[str] = frozenset()  # hashes of the projects that it links to


@dataclass(slots=True)
class Fingerprints:
    """ports.Ownership. Off where no two projects are told apart: nothing could be crossed."""

    path: Path
    key: bytes = field(repr=False)
    projects: Mapping[str, ProjectFacts]
    policy: BoundaryPolicy
    role_allows: Callable[[Sequence[str]], bool]
    index: FingerprintIndex = field(init=False)
    _learnt: int = 0

    def __post_init__(self) -> None:
        self.index = FingerprintIndex(self.key)

    @property
    def enabled(self) -> bool:
        """Whether there are projects to tell apart."""
        return len(self.projects) > 1

    async def foreign(self, peer: Peer, texts: Sequence[str], time: str) -> list[tuple[ForeignText, ...]]:
        """See ports.Ownership."""
        if not self.enabled or not len(self.index):
            return [()] * len(texts)
        return await asyncio.to_thread(lambda: [self._foreign(peer, text, time) for text in texts])

    def _foreign(self, peer: Peer, text: str, time: str) -> tuple[ForeignText, ...]:
        if len(text) < MIN_LETTERS:
            return ()
        matches = (match for match in self.index.look_up(text) if match.project != peer.project)
        return tuple(self._judge(peer, match, time) for match in matches)

    def _judge(self, peer: Peer, match: Match, time: str) -> ForeignText:
        owner = self.projects.get(match.project, ProjectFacts(match.project))
        mine = self.projects.get(peer.project, ProjectFacts(peer.project))
        privacy = FactPrivacy.LINKED_PROJECTS if mine.hash in owner.links else FactPrivacy.PROJECT_ONLY
        fact = Fact(owner.hash, privacy, owner.team, owner.links)
        asking = Asking(mine.hash, peer.team, self.role_allows(peer.roles))
        crossing = visibility(fact, asking, self.policy)
        attempt = Attempt(
            CrossProjectEventTypeV1.SEARCH, mine.hash, owner.hash, "model_egress", "send", len(match.spans)
        )
        event = crossing_event(attempt, crossing, at=time, policy=self.policy)
        return ForeignText(
            spans=() if crossing.allowed else match.spans,
            allowed=crossing.allowed,
            event=event.to_json() if event is not None else b"",
        )

    async def learn(self, project: str, texts: Sequence[OwnedText]) -> None:
        """See ports.Ownership."""
        if not self.enabled or project not in self.projects:
            return
        owned = [ownable_text(t.text) for t in texts if is_ownable(t.kind, t.channel)]
        if owned:
            await asyncio.to_thread(self._add, project, owned)

    def _add(self, project: str, texts: Sequence[str]) -> None:
        self._learnt += sum(self.index.add(project, text) for text in texts)

    # -- the file --------------------------------------------------------------------------------------------------

    def load(self) -> None:
        """Read what was learnt before; SetupError where the file is not one of ours."""
        if not self.path.exists():
            return
        data = self.path.read_bytes()
        try:
            magic, size = struct.unpack_from("<5sI", data)
            start = struct.calcsize("<5sI") if magic == _MAGIC else len(data) + 1
            head = json.loads(data[start : start + size])
            entries = list(_ENTRY.iter_unpack(data[start + size :]))
        except (ValueError, struct.error):
            hint = f"move {self.path} away; `egress project index` makes it again"
            raise SetupError("boundary.fingerprints", "the fingerprints cannot be read", hint=hint) from None
        self.index.restore(entries, head["projects"], head["sources"])

    def save(self) -> None:
        """Write everything, atomically, when something was learnt since the last time."""
        if not self._learnt:
            return
        self._learnt = 0
        projects, sources = self.index.names()
        head = json.dumps({"projects": list(projects), "sources": list(sources)}).encode()
        body = b"".join(_ENTRY.pack(print_, owner) for print_, owner in list(self.index.entries()))
        draft = self.path.with_name(self.path.name + ".new")
        self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            file.write(_MAGIC + struct.pack("<I", len(head)) + head + body)
            file.flush()
            os.fsync(file.fileno())
        draft.replace(self.path)

    async def keep_saving(self) -> None:
        """Save now and then until cancelled."""
        while True:
            await asyncio.sleep(SAVE_EVERY_S)
            await asyncio.to_thread(self.save)
