"""Break-glass as people make and end it: a signed statement that lifts named rules until an instant.

Who begins one needs the role `break_glass`, which the token of the control port never has. The statement stands in the
evidence log before it has any effect; the file is an index of statements, of which each is verified when it is read.
What does not verify, is over, was ended, or lasts longer than the configuration allows counts for nothing.
"""

from __future__ import annotations

import asyncio
from base64 import b64decode, b64encode
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, Final, Protocol

import orjson

from gateway.config import Config, unknown_name
from gateway.contract.canonical import canonical_json
from gateway.egress.records import record
from gateway.errors import PolicyError, ReviewError
from gateway.evidence.sign import Signer, verifies
from gateway.files import replace_file
from gateway.policy import Breakage
from gateway.policy.rule import Rule
from gateway.ports import Clock, EvidenceStore, Reviewer

FILE: Final = "break_glass.json"
ROLE: Final = "break_glass"
_PURPOSE: Final = b"egress-break-glass:1\0"
_MAX_TEXT: Final = 300
_MAX_KEPT: Final = 256
_BEGUN, _ENDED = "break_glass.begun", "break_glass.ended"


class Keys(Protocol):
    """The key that this needs (store.keys.Keyring)."""

    def signing_key(self) -> Signer:
        """The key that signs evidence, and statements of people."""
        ...


@dataclass(frozen=True, slots=True)
class Wish:
    """What somebody asks for. `rules` are globs over rule ids."""

    rules: tuple[str, ...]
    reason: str
    minutes: int
    project: str = ""
    principal: str = ""


def read_wish(document: Mapping[str, Any]) -> Wish | None:
    """A wish as the control port takes it; None where it is none."""
    if not document.keys() <= {"rules", "minutes", "reason", "project", "principal"}:
        return None
    rules, minutes = document.get("rules"), document.get("minutes")
    texts = [document.get(name, "") for name in ("reason", "project", "principal")]
    listed = isinstance(rules, list) and bool(rules) and all(isinstance(r, str) and r.strip() for r in rules)
    counted = isinstance(minutes, int) and not isinstance(minutes, bool) and minutes > 0
    if not listed or not counted or not all(isinstance(text, str) for text in texts):
        return None
    reason, project, principal = texts
    if not reason.strip() or len(reason) > _MAX_TEXT or any(ord(c) < 32 for c in reason):
        return None
    return Wish(tuple(map(str, rules or ())), reason.strip(), int(minutes or 0), project, principal)


def unknown_to(config: Config, rules: Sequence[Rule], statement: Breakage) -> str:
    """What a statement names and there is none of: a typing error must not look as if something were lifted."""
    for pattern in statement.rules:
        if not replace(statement, rules=(pattern,)).lifts(rules):
            return f"no bundle in force has a rule {pattern}; `egress policy explain --all` names them"
    return unknown_name(config, statement.project, statement.principal)


@dataclass(slots=True)
class BreakGlass:
    """The statements of a state folder.

    When one begins or ends `changed` is called, and `spread`, which has other processes load their policy anew.
    """

    folder: Path
    evidence: EvidenceStore
    keys: Keys
    clock: Clock
    max_minutes: int
    new_id: Callable[[], str]
    changed: Callable[[], Awaitable[None]] | None = None
    spread: Callable[[], Awaitable[Sequence[str]]] | None = None
    unknown: Callable[[Breakage], str] = lambda _: ""
    _seen: tuple[int, int, int] | None = None
    _read: tuple[dict[str, Any], ...] = ()
    _turn: asyncio.Lock = field(default_factory=asyncio.Lock)

    def current(self) -> tuple[Breakage, ...]:
        """What is in force now, oldest first."""
        now = datetime.fromisoformat(self.clock.now())
        return tuple(b for b in map(_breakage, self._statements()) if b.begins <= now < b.expires)

    def rows(self) -> Sequence[Mapping[str, Any]]:
        """What is in force now, as commands and the control port show it."""
        now = self.clock.now()
        return [dict(statement) for statement in self._statements() if now < statement["expires"]]

    async def begin(self, who: Reviewer, document: Mapping[str, Any]) -> Mapping[str, Any]:
        """Lift rules for a while; ReviewError where this person may not, or not for so long.

        `document` holds `rules` (globs over rule ids), `minutes`, `reason`, and, for less than everybody, `project` and
        `principal`.
        """
        _require(who)
        if (wish := read_wish(document)) is None:
            raise ReviewError(
                "break_glass.malformed", "needs rules (names), minutes and a reason of one line"
            )
        if not 0 < wish.minutes <= self.max_minutes:
            raise ReviewError(
                "break_glass.minutes",
                f"at most {self.max_minutes} minutes (review.break_glass_minutes)"
                if self.max_minutes
                else "the configuration allows none (review.break_glass_minutes = 0)",
            )
        if who.projects and wish.project not in who.projects:
            raise ReviewError(
                "review.role", f"this reviewer decides for {', '.join(sorted(who.projects))} only"
            )
        now = self.clock.now()
        until = datetime.fromisoformat(now) + timedelta(minutes=wish.minutes)
        statement = {
            "event": _BEGUN,
            "id": f"bg-{self.new_id()[:12]}",
            "owner": who.name,
            "reason": wish.reason,
            "begins": now,
            "expires": until.strftime("%Y-%m-%dT%H:%M:%S.%fZ"),
            "rules": list(wish.rules),
            "project": wish.project,
            "principal": wish.principal,
        }
        self._check(_breakage(statement))
        await self._say(statement, who)
        return statement

    def _check(self, statement: Breakage) -> None:
        try:
            statement.check()
        except PolicyError as error:
            raise ReviewError("break_glass.rules", str(error)) from None
        if missing := self.unknown(statement):
            raise ReviewError("break_glass.unknown", missing)

    async def end(self, who: Reviewer, name: str) -> Mapping[str, Any]:
        """Put the rules back in force; ReviewError where there is nothing of this id."""
        _require(who)
        found = [s for s in self._statements() if s["id"].startswith(name)]
        if len(found) != 1:
            raise ReviewError(
                "review.unknown", "nothing of this id is in force" if not found else "more than one"
            )
        await self._say(
            {"event": _ENDED, "id": found[0]["id"], "owner": who.name, "begins": self.clock.now()}, who
        )
        return found[0]

    async def _say(self, statement: Mapping[str, Any], who: Reviewer) -> None:
        """Record, sign, keep, and have it applied: in this order."""
        body = canonical_json(statement)
        told = {"time": self.clock.now(), "reviewer": who.name, **statement}
        await self.evidence.append([record("event", (canonical_json(told),))])
        signed = {
            "statement": body.decode("utf-8"),
            "signature": b64encode(self.keys.signing_key().sign(_PURPOSE + body)).decode("ascii"),
        }
        async with self._turn:
            await asyncio.to_thread(self._keep, signed)
        if self.changed is not None:
            await self.changed()
        if self.spread is not None:
            await self.spread()

    def _keep(self, signed: Mapping[str, str]) -> None:
        kept = [*_rows_of(self.path), signed][-_MAX_KEPT:]
        replace_file(self.path, (orjson.dumps(kept),))  # durable: what was ended must not come back

    @property
    def path(self) -> Path:
        """The file."""
        return self.folder / FILE

    def _statements(self) -> tuple[dict[str, Any], ...]:
        """Genuine statements that were not ended; read anew where the file changed."""
        try:
            stat = self.path.stat()
            seen = (stat.st_mtime_ns, stat.st_size, stat.st_ino)
        except OSError:
            self._seen, self._read = None, ()
            return ()
        if seen != self._seen:
            said = [s for row in _rows_of(self.path) if (s := self._genuine(row)) is not None]
            ended = {s["id"] for s in said if s["event"] == _ENDED}
            self._read = tuple(s for s in said if s["event"] == _BEGUN and s["id"] not in ended)
            self._seen = seen
        return self._read

    def _genuine(self, row: Mapping[str, Any]) -> dict[str, Any] | None:
        """What this installation signed and the configuration still allows."""
        try:
            body = row["statement"].encode("utf-8")
            signature = b64decode(row["signature"], validate=True)
            if not verifies(self.keys.signing_key().public_key, signature, _PURPOSE + body):
                return None
            statement: dict[str, Any] = orjson.loads(body)
            if statement["event"] == _ENDED:
                return statement
            lasts = datetime.fromisoformat(statement["expires"]) - datetime.fromisoformat(statement["begins"])
        except (KeyError, AttributeError, TypeError, ValueError):
            return None
        return statement if lasts <= timedelta(minutes=self.max_minutes) else None


def _breakage(statement: Mapping[str, Any]) -> Breakage:
    return Breakage(
        statement["id"],
        statement["owner"],
        statement["reason"],
        datetime.fromisoformat(statement["begins"]),
        datetime.fromisoformat(statement["expires"]),
        tuple(statement["rules"]),
        statement["project"],
        statement["principal"],
    )


def _rows_of(path: Path) -> list[dict[str, Any]]:
    """The rows of the file; none where it is not there or holds something else."""
    try:
        rows = orjson.loads(path.read_bytes())
    except (OSError, orjson.JSONDecodeError):
        return []
    return [row for row in rows if isinstance(row, dict)] if isinstance(rows, list) else []


def _require(who: Reviewer) -> None:
    if ROLE not in who.roles:
        raise ReviewError("review.role", f"this needs a reviewer with the role {ROLE}")
