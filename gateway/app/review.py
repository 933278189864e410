"""The Holding port, and what reviewers do with it: look, release, discard, approve, deny.

A decision is a statement that names the object, its project, destination and policy, who decided and until when;
it is signed with the installation's key, stands in the evidence log before it has any effect, and is checked again
each time it is used. Several reviewers can be asked for; one refusal is enough.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Final, Protocol

import orjson

from gateway.contract.canonical import canonical_json
from gateway.egress.records import record
from gateway.errors import ReviewError
from gateway.evidence.sign import Signer, verifies
from gateway.ports import Clock, EvidenceStore, Hold, Reviewer
from gateway.store.held import HeldObjects, HeldRow, Vote, facts_of, seal, unseal
from gateway.store.remote import RemoteHeld
from gateway.workers import spawn

PURPOSE: Final = b"egress-review:1\0"
RELEASED, REFUSED = "released", "refused"
VERDICTS: Final = {
    ("quarantine", "release"): RELEASED,
    ("quarantine", "discard"): REFUSED,
    ("approval", "approve"): RELEASED,
    ("approval", "deny"): REFUSED,
}
_NEVER: Final = "9999-12-31T23:59:59.999999Z"
_ROLE: Final = {"quarantine": "release", "approval": "approve"}


class Keys(Protocol):
    """The keys that this needs (store.keys.Keyring)."""

    def vault_key(self, project: str) -> bytes:
        """The key that seals what belongs to a project."""
        ...

    def signing_key(self) -> Signer:
        """The key that signs evidence, and decisions."""
        ...


@dataclass(slots=True)
class ReviewDesk:
    """ports.Holding, and the acts of reviewers. `needed` reviewers must release; a release holds `hours` hours."""

    objects: HeldObjects | RemoteHeld
    evidence: EvidenceStore
    keys: Keys
    clock: Clock
    needed: int = 1
    hours: int = 24
    notify: Callable[..., None] = lambda *_, **__: None
    _kept: set[tuple[str, str]] = field(default_factory=set)
    _decided: asyncio.Condition = field(default_factory=asyncio.Condition)

    # -- for requests ----------------------------------------------------------------------------------------------

    async def hold(self, holds: Sequence[Hold]) -> None:
        """See ports.Holding."""
        new = [hold for hold in holds if (hold.id, hold.principal) not in self._kept]
        if not new:
            return
        sealed = [(hold, self._sealed(hold)) for hold in new]
        await self.objects.put(sealed)
        self._kept.update((hold.id, hold.principal) for hold in new)
        for hold in new:
            event = "quarantine.held" if hold.kind == "quarantine" else "approval.pending"
            self.notify(event, facts_of(hold), principal=hold.principal)

    def _sealed(self, hold: Hold) -> bytes:
        facts = {"project": hold.project, "id": hold.id, "digest": hold.digest, "policy": hold.policy}
        return seal(hold.content, facts, self.keys.vault_key(hold.project))

    async def reviews(self, project: str, holds: Sequence[str]) -> Mapping[str, str]:
        """See ports.Holding."""
        found = {}
        for row in await self.objects.find(holds):
            if row.project != project or row.state == "held":
                continue
            verdict = self._verdict(row)
            if verdict:
                found[row.id] = verdict
            else:
                await self.objects.reopen(row.id)  # expired, or not what this gateway signed
        return found

    def _verdict(self, row: HeldRow) -> str:
        """What genuine statements that are not over say of an object; empty where that is nothing."""
        said = [self._statement(row, vote) for vote in row.votes]
        verdicts = [statement["verdict"] for statement in said if statement is not None]
        if REFUSED in verdicts:
            return REFUSED
        return RELEASED if len(verdicts) >= self.needed else ""

    def _statement(self, row: HeldRow, vote: Vote) -> Mapping[str, Any] | None:
        """A statement that this installation signed, about this very object, by this reviewer, and not over yet."""
        if not verifies(self.keys.signing_key().public_key, vote.signature, PURPOSE + vote.statement):
            return None
        statement: dict[str, Any] = orjson.loads(vote.statement)
        about = {name: row.facts.get(name) for name in ("digest", "destination", "policy")}
        expected = {
            **about,
            "hold": row.id,
            "kind": row.kind,
            "project": row.project,
            "reviewer": vote.reviewer,
        }
        if any(statement.get(name) != value for name, value in expected.items()):
            return None
        return statement if self.clock.now() < str(statement["expires"]) else None

    async def wait(self, holds: Sequence[str], timeout_us: int) -> bool:
        """See ports.Holding."""
        wanted = set(holds)

        async def some() -> None:
            async with self._decided:
                while True:
                    rows = await self.objects.find(sorted(wanted))
                    if any(row.state != "held" for row in rows):
                        return
                    await self._decided.wait()

        try:
            await asyncio.wait_for(some(), timeout_us / 1e6)
        except TimeoutError:
            return False
        return True

    # -- for reviewers ---------------------------------------------------------------------------------------------

    async def rows(
        self, kind: str, query: Mapping[str, Any], who: Reviewer
    ) -> tuple[list[dict[str, Any]], str | None]:
        """A page of what is held, newest first, and the cursor of the next one."""
        _require(who, "view")
        limit, after = int(query.get("limit", 100)), query.get("after")
        if after is not None and not str(after).isdigit():
            raise ReviewError("query.invalid", "after must be the `next` of the page before")
        rows = await self.objects.page(
            kind,
            before=None if after is None else int(after),
            project=str(query.get("project", "")),
            state=str(query.get("held", "")),
            limit=limit + 1,
        )
        shown = [self._shown(row) for row in rows[:limit] if _may_see(who, row)]
        return shown, str(rows[limit - 1].seq) if len(rows) > limit else None

    async def show(self, kind: str, name: str, who: Reviewer) -> dict[str, Any]:
        """One held object without its content; `name` may be cut short where it is still the only one."""
        _require(who, "view")
        return self._shown(await self._find(kind, name, who))

    async def content(self, kind: str, name: str, who: Reviewer) -> bytes:
        """The content itself, as canonical JSON. That it was looked at is recorded before it is shown."""
        _require(who, "content")
        row = await self._find(kind, name, who)
        content = unseal(row, self.keys.vault_key(row.project))
        await self._record({"event": "review.content", "hold": row.id, "project": row.project}, who)
        return content

    async def decide(self, kind: str, name: str, act: str, who: Reviewer) -> dict[str, Any]:
        """Carry out an act of VERDICTS; ReviewError where it is not this person's to do, or is done."""
        verdict = VERDICTS.get((kind, act))
        if verdict is None:
            raise ReviewError("review.act", f"no such act on {kind}")
        _require(who, _ROLE[kind])
        row = await self._find(kind, name, who)
        if {who.name, *who.principals} & row.askers:
            raise ReviewError(
                "review.own_request", "who asked for an object to be sent cannot decide about it"
            )
        if row.state != "held" and self._verdict(row):
            raise ReviewError("review.decided", "somebody has decided about this already")
        statement = self._about(row, verdict, who)
        await self._record({"event": f"{kind}.{verdict}", **statement}, who)
        vote = self._signed(statement, who)
        others = [v for v in row.votes if v.reviewer != who.name and self._statement(row, v) is not None]
        state = verdict if verdict == REFUSED or len(others) + 1 >= self.needed else "held"
        await self.objects.vote(row.id, vote, state)
        await self._wake()
        self.notify(f"{kind}.{verdict}", row.facts, reviewer=who.name)
        return self._shown(await self._find(kind, row.id, who))

    def _about(self, row: HeldRow, verdict: str, who: Reviewer) -> dict[str, Any]:
        now = self.clock.now()
        until = datetime.fromisoformat(now) + timedelta(hours=self.hours)
        return {
            "hold": row.id,
            "kind": row.kind,
            "project": row.project,
            "digest": row.facts["digest"],
            "destination": row.facts["destination"],
            "policy": row.facts["policy"],
            "verdict": verdict,
            "reviewer": who.name,
            "time": now,
            "expires": _NEVER if verdict == REFUSED else until.strftime("%Y-%m-%dT%H:%M:%S.%fZ"),
        }

    def _signed(self, statement: Mapping[str, Any], who: Reviewer) -> Vote:
        body = canonical_json(statement)
        return Vote(who.name, body, self.keys.signing_key().sign(PURPOSE + body))

    async def _record(self, event: Mapping[str, Any], who: Reviewer) -> None:
        """EvidenceError where it cannot be recorded: then nothing is done either."""
        body = {"time": self.clock.now(), "reviewer": who.name, **event}
        await self.evidence.append([record("event", (canonical_json(body),))])

    async def _find(self, kind: str, name: str, who: Reviewer) -> HeldRow:
        rows = [row for row in await self.objects.search(kind, name, 3) if _may_see(who, row)]
        exact = [row for row in rows if row.id == name]
        found = exact or rows
        if len(found) != 1:
            raise ReviewError(
                "review.unknown", "no object of this id" if not found else "more than one begins so"
            )
        return found[0]

    def _shown(self, row: HeldRow) -> dict[str, Any]:
        statements = [s for vote in row.votes if (s := self._statement(row, vote)) is not None]
        verdict = self._verdict(row) if row.state != "held" else ""
        return {
            **row.facts,
            "state": verdict or "held",
            "reviewers": [
                {name: s[name] for name in ("reviewer", "verdict", "time", "expires")} for s in statements
            ],
            "reviewers_needed": self.needed,
        }

    def told(self) -> None:
        """Somebody decided, or may have, in another process: who waits looks again."""
        _ = spawn(self._wake(), name="review")

    async def _wake(self) -> None:
        async with self._decided:
            self._decided.notify_all()


def _require(who: Reviewer, role: str) -> None:
    if role not in who.roles:
        raise ReviewError("review.role", f"this needs the role {role}")


def _may_see(who: Reviewer, row: HeldRow) -> bool:
    return not who.projects or row.project in who.projects
