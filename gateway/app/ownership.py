"""The Ownership port: whose text is it, by what was indexed, seen in traffic, planted or said; and who may see it."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import hmac
import re
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from itertools import chain

import numpy as np

from gateway.app.projects import ProjectFacts
from gateway.boundary import (
    Asking,
    Attempt,
    BoundaryPolicy,
    Crossing,
    Fact,
    FingerprintIndex,
    KnownProjects,
    Match,
    MentionKind,
    crossing_event,
    is_ownable,
    ownable_text,
    visibility,
)
from gateway.boundary.fingerprint import Prints
from gateway.boundary.provenance import CONFIDENCE_MILLI
from gateway.boundary.shingles import PRINT
from gateway.config import DEFAULT_PROJECT
from gateway.contract import CrossProjectEventTypeV1
from gateway.ports import Claimed, OwnedText, Peer, Reach, Ruling
from gateway.store.fingerprints import FingerprintFiles, SeenTail

MIN_LETTERS = 40  # shorter texts cannot hold enough evidence
INLINE = 32_768  # characters looked up where they are; more in a thread, so that the loop goes on
LOOK_EVERY_S = 2.0
SYNC_EVERY_S = 60.0

_CANARY = re.compile(r"egc-[a-z2-7]{26}")
_ACTIONS = {"search": "send", "recall": "recall", "import": "remember"}


@dataclass(slots=True)
class Fingerprints:
    """ports.Ownership. Off where only one project is known: nothing could be crossed."""

    files: FingerprintFiles
    key: bytes = field(repr=False)
    projects: Mapping[str, ProjectFacts]
    policy: BoundaryPolicy
    role_allows: Callable[[Sequence[str]], bool]
    now: Callable[[], str]
    seen_days: int = 90
    enforced: bool = True  # false in shadow enforcement: what the rule says is told and not done
    shared: bool = False  # other processes carry traffic of these projects too
    revision: int = 0
    index: FingerprintIndex = field(init=False, repr=False)
    _known: KnownProjects = field(init=False, repr=False)
    _canaries: Mapping[str, str] = field(init=False, repr=False)
    _stamp: Mapping[str, tuple[int, int, int]] = field(default_factory=dict)
    _today: tuple[str, dict[str, set[int]]] = ("", {})  # day, and what each project was noted to have on it
    _late: list[tuple[str, Prints]] | None = None  # learnt while the index is built anew
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False)
    _tail: SeenTail | None = None

    def __post_init__(self) -> None:
        self.index = FingerprintIndex(self.key)
        self._known = KnownProjects(
            {name: p.roots for name, p in self.projects.items()},
            {name: p.remotes for name, p in self.projects.items()},
        )
        self._canaries = {canary(self.key, name): name for name in self.projects if name != DEFAULT_PROJECT}

    @property
    def enabled(self) -> bool:
        """Whether there are projects to tell apart; requests without a project are one more."""
        return len(self.projects) > 1

    # -- look-ups --------------------------------------------------------------------------------------------------

    async def claims(self, texts: Sequence[str]) -> list[tuple[Claimed, ...]]:
        """See ports.Ownership."""
        if not self.enabled:
            return [()] * len(texts)
        self.follow()
        if sum(map(len, texts)) <= INLINE:
            return self._claims(texts)
        return await asyncio.to_thread(self._claims, texts)

    def _claims(self, texts: Sequence[str]) -> list[tuple[Claimed, ...]]:
        index = self.index
        matches = index.look_up_all([text if len(text) >= MIN_LETTERS else "" for text in texts])
        return [
            (*map(_claimed, found), *self._said(text)) for text, found in zip(texts, matches, strict=True)
        ]

    def follow(self) -> None:
        """Learn what other processes have learnt up to now."""
        if self._tail is None:
            return
        with self._lock:
            for project, joined in self._tail.read():
                if project in self.projects:
                    prints = np.frombuffer(joined, PRINT)
                    self.index.add_prints(project, prints)
                    if self._late is not None:
                        self._late.append((project, prints))

    def claims_of(self, text: str) -> Iterator[Claimed]:
        """The claims on one text, now and here."""
        yield from self._claims([text])[0]

    def _said(self, text: str) -> Iterator[Claimed]:
        """What a text says of itself: canaries, places, remotes, tags."""
        if "egc-" in text:
            for planted in dict.fromkeys(_CANARY.findall(text)):
                if planted in self._canaries:
                    # What stands around a canary was taken along with it.
                    yield Claimed(self._canaries[planted], "canary", 1000, ((0, len(text)),))
        said: dict[tuple[str, MentionKind], list[tuple[int, int]]] = {}
        for mention in self._known.mentions(text):
            said.setdefault((mention.project, mention.kind), []).append((mention.start, mention.end))
        for (project, kind), spans in said.items():
            yield Claimed(project, str(kind), CONFIDENCE_MILLI[kind], tuple(spans))

    def rule(self, peer: Peer, reaches: Sequence[Reach], time: str) -> list[Ruling]:
        """See ports.Ownership."""
        return [self._rule(peer, reach, time) for reach in reaches]

    def _rule(self, peer: Peer, reach: Reach, time: str) -> Ruling:
        owner, mine = self.projects[reach.owner], self.projects.get(peer.project)
        fact = Fact(owner.hash, owner.privacy, owner.team, owner.links)
        # Requests without a project come from nobody in particular: they never see what is somebody's.
        asking = "" if mine is None or mine.name == DEFAULT_PROJECT else mine.hash
        crossing = visibility(
            fact, Asking(asking, peer.team, self.role_allows(peer.roles)), self.policy, event=reach.event
        )
        if not crossing.allowed and not self.enforced:
            crossing = Crossing(False, f"{crossing.reason}; not enforced")
        audit = b""
        if reach.facts:
            event = crossing_event(
                Attempt(
                    CrossProjectEventTypeV1(reach.event),
                    mine.hash if mine is not None else "",
                    owner.hash,
                    "model_egress",
                    _ACTIONS[reach.event],
                    reach.facts,
                ),
                crossing,
                at=time,
                policy=self.policy,
            )
            audit = event.to_json() if event is not None else b""
        return Ruling(reach, owner.hash, crossing.allowed, audit)

    # -- what was seen ---------------------------------------------------------------------------------------------

    async def learn(self, project: str, texts: Sequence[OwnedText]) -> None:
        """See ports.Ownership. Requests without a project make nothing anyone's."""
        if not self.enabled or project == DEFAULT_PROJECT or project not in self.projects:
            return
        owned = [ownable_text(t.text) for t in texts if is_ownable(t.kind, t.channel)]
        if not owned:
            return
        if sum(map(len, owned)) <= INLINE:
            self._learn(project, owned)
        else:
            await asyncio.to_thread(self._learn, project, owned)

    def _learn(self, project: str, texts: Sequence[str]) -> None:
        prints = [self.index.prints(text) for text in texts]
        day = self._day()
        with self._lock:
            if self._today[0] != day:
                self._today = (day, {})
            noted = self._today[1].setdefault(project, set())
            for each in prints:
                self.index.add_prints(project, each)
                if self._late is not None:
                    self._late.append((project, each))
                # Once a day, so that what is still in use does not expire.
                values = each["print"].tolist()
                fresh = [n for n, print_ in enumerate(values) if print_ not in noted]
                noted.update(values)
                self.files.append_seen(day, project, each[fresh].tobytes())

    def _day(self, before: int = 0) -> str:
        moment = datetime.fromisoformat(self.now()).astimezone(UTC) - timedelta(days=before)
        return f"{moment:%Y%m%d}"

    # -- from and to the files -------------------------------------------------------------------------------------

    def load(self) -> None:
        """Build the index from the files: indexes first, for they are worth more; SetupError where one is damaged."""
        if not self.enabled:
            return
        oldest = self._day(self.seen_days)
        self.files.expire(oldest)
        with self._lock:
            self._late = []
        stamp = self.files.stamp()
        index = self._indexed({name: at for name, at in stamp.items() if name in self.projects})
        tail = self.files.tail() if self.shared else None
        seen = chain(self.files.read_seen(oldest), tail.read() if tail is not None else ())
        index.load(
            (project, "", np.frombuffer(prints, PRINT))
            for project, prints in seen
            if project in self.projects
        )
        with self._lock:
            for project, prints in self._late or ():
                index.add_prints(project, prints)
            self._late = None
            self.index, self._stamp, self._tail = index, stamp, tail
            self.revision += 1

    def _indexed(self, stamp: Mapping[str, tuple[int, int, int]]) -> FingerprintIndex:
        """The index of the projects' files, shared with every process that has mapped the same."""
        tag = hashlib.blake2b(repr(sorted(stamp.items())).encode(), digest_size=16).digest()
        if (kept := self.files.table(tag)) is None:
            index = FingerprintIndex(self.key)
            index.load(
                (project, file.digest.hex(), np.frombuffer(file.prints, PRINT))
                for project in sorted(stamp)
                for file in self.files.read_index(project)
            )
            if not stamp:
                return index
            self.files.write_table(tag, index.frozen())
            if (kept := self.files.table(tag)) is None:
                return index  # another process has written a newer one meanwhile
        return FingerprintIndex.thaw(self.key, kept)

    async def keep(self, failed: Callable[[Exception], None]) -> None:
        """Follow new indexes, sync what was seen and let old days go, until cancelled; what fails is tried again."""
        since, day = 0.0, self._day()
        while self.enabled:
            await asyncio.sleep(LOOK_EVERY_S)
            try:
                since += LOOK_EVERY_S
                if since >= SYNC_EVERY_S:
                    since = 0.0
                    await asyncio.to_thread(self._sync)
                if self._day() != day or self.files.stamp() != self._stamp:
                    day = self._day()
                    await asyncio.to_thread(self.load)
            except Exception as error:  # noqa: BLE001 - the index of before stays in use, and the failure is counted
                failed(error)

    def _sync(self) -> None:
        with self._lock:
            self.files.sync()

    def close(self) -> None:
        """Sync and close the files."""
        with self._lock:
            self.files.close()


def _claimed(match: Match) -> Claimed:
    confidence = min(990, 640 + match.bits)
    return Claimed(match.project, "fingerprint", confidence, match.spans, match.sources)


def canary(key: bytes, project: str) -> str:
    """The text to plant in files of a project: whatever holds it is the project's, wherever it turns up."""
    digest = hmac.digest(key, b"canary\0" + project.encode(), "sha256")[:16]
    return "egc-" + base64.b32encode(digest).decode().rstrip("=").lower()
