"""What the policy asks of answers: scanned when they are over, or held back, and masked or refused.

An answer that is only reported on has reached the client when it is scanned: nothing waits for it. One that is held
back is scanned whole, so that nothing of a finding is given out before the rest of it is known.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from gateway.classify.answers import AnswerRestoration
from gateway.classify.hearing import Heard, Listener
from gateway.classify.marking import Marks, mark
from gateway.classify.values import Values
from gateway.context.decisions import ANSWER_LEVELS, AnswerRules
from gateway.context.findings import Finding, ScanItem, ScanResult
from gateway.errors import GatewayError
from gateway.ports import (
    AnswerFinding,
    BodyRestorer,
    Clock,
    Ending,
    Headers,
    Meter,
    NativeAnswer,
    Policy,
    Refusal,
    Released,
    Scanner,
)

SURE_ENOUGH_MILLI: Final = 300
"""Findings below this confidence change nothing, as in requests (`gateway.policy.modes`)."""

_CODES: Final = {"prompt_injection": "injection"}
UNSCANNED: Final = "answer.unscanned"
_MASKED, _BLOCKED = "answer.masked", "answer.blocked"
_MEDIA: Final = re.compile(rb"\s*(?:image/(?!svg)|audio/|video/)", re.IGNORECASE)
_MAX_FINDINGS: Final = 64  # types of one answer that are written down


@dataclass(slots=True)
class Scanned:
    """What was found in one answer: the findings as they are told, and the texts by what is to be done with them."""

    findings: tuple[AnswerFinding, ...] = ()
    texts: dict[str, dict[str, str]] = field(default_factory=dict, repr=False)  # level: text: finding type
    complete: bool = True

    @property
    def codes(self) -> tuple[str, ...]:
        """One reason code a category that was found."""
        codes = {f"answer.{_CODES.get(f.category, f.category)}" for f in self.findings}
        return (*sorted(codes), *(() if self.complete else (UNSCANNED,)))


def listener(rules: AnswerRules) -> Listener:
    """What notes an answer under these rules."""
    return Listener(heard=Heard() if rules.scans else None)


@dataclass(slots=True)
class Back:
    """The way back of one admitted request. `scanned` once a held answer was looked at, with what was done then."""

    rules: AnswerRules
    restoration: AnswerRestoration
    policy: Policy
    asked: Refusal  # host, path, request id and receipt, for an answer that is refused
    scanned: Scanned | None = None
    done: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Answering:
    """Scans answers. `deadline_us` is for one answer."""

    scanner: Scanner
    clock: Clock
    meter: Meter
    deadline_us: int

    async def told(self, back: Back, ending: Ending) -> Ending:
        """An ending with what was found in the answer."""
        scanned = back.scanned
        if scanned is None:
            heard = back.restoration.listener.heard
            scanned = await self._scan(heard, back.rules)
            if heard is not None:
                heard.forget()
        self.meter.answered(scanned.findings)
        return replace(ending, findings=scanned.findings, answer_codes=(*scanned.codes, *back.done))

    async def release(self, back: Back, answer: NativeAnswer) -> Released:
        """What the client gets of an answer that was held back."""
        plain = _decoded(back.restoration, answer)
        if plain is None and (not answer.body or _is_media(answer)):
            back.scanned = Scanned(complete=not answer.body)  # no texts to scan
            return Released(answer)
        if plain is None or plain.restorer.broken:  # of a kind or in a coding that nobody here can read
            back.scanned = Scanned(complete=False)
            return Released(self._refused(back, 502, (UNSCANNED,)))
        back.scanned = scanned = await self._scan(back.restoration.listener.heard, back.rules)
        if not scanned.complete or scanned.texts.get("block"):
            back.done = (_BLOCKED,)
            return Released(self._refused(back, 400, (*scanned.codes, _BLOCKED)), plain.restorer)
        body = plain.body
        if scanned.texts.get("mask"):
            body = _masked(back.restoration, plain, scanned.texts["mask"])
            back.done = (_MASKED,)
        return _restored(back.restoration, NativeAnswer(answer.status, plain.headers, body), plain.restorer)

    def refused(self, back: Back, status: int, code: str) -> NativeAnswer:
        """The answer in place of one that cannot be held."""
        back.scanned, back.done = Scanned(complete=False), (code,)
        return self._refused(back, status, (code,))

    def _refused(self, back: Back, status: int, codes: Sequence[str]) -> NativeAnswer:
        shown = tuple(codes)[:8]
        refusal = replace(back.asked, status=status, reason_codes=shown, message=back.policy.text(shown[-1]))
        return back.restoration.adapter.refuse(refusal)

    async def _scan(self, heard: Heard | None, rules: AnswerRules) -> Scanned:
        items = heard.items() if heard is not None else []
        if heard is None or not items:
            return Scanned(complete=heard is None or heard.complete)
        try:
            until = self.clock.monotonic_us() + self.deadline_us
            results = await self.scanner.scan(items, deadline_us=until)
        except GatewayError as error:
            self.meter.failed_closed(error.code)
            return Scanned(complete=False)
        return _judged(items, results, rules, complete=heard.complete)


def _judged(
    items: Sequence[ScanItem], results: Iterable[ScanResult], rules: AnswerRules, *, complete: bool
) -> Scanned:
    scanned = Scanned(complete=complete)
    kept: dict[str, Finding] = {}
    values: dict[str, set[str]] = {}
    for item, result in zip(items, results, strict=True):
        scanned.complete &= result.complete
        for finding in result.findings:
            level = rules.level(str(finding.category))
            if level == ANSWER_LEVELS[0] or finding.confidence_milli < SURE_ENOUGH_MILLI:
                continue
            text = item.text[finding.start : finding.end]
            scanned.texts.setdefault(level, {})[text] = finding.type
            values.setdefault(finding.type, set()).add(finding.value or text)
            before = kept.get(finding.type)
            if before is None or finding.confidence_milli > before.confidence_milli:
                kept[finding.type] = finding
    ordered = sorted(kept.values(), key=lambda f: (-f.severity.rank, f.type))[:_MAX_FINDINGS]
    scanned.findings = tuple(
        AnswerFinding(f.type, str(f.category), str(f.severity), f.confidence_milli, len(values[f.type]))
        for f in ordered
    )
    return scanned


@dataclass(frozen=True, slots=True)
class _Plain:
    """An answer without its content coding, as it was heard."""

    headers: Headers
    body: bytes = field(repr=False)
    restorer: BodyRestorer


def _decoded(restoration: AnswerRestoration, answer: NativeAnswer) -> _Plain | None:
    """Read an answer; None for one that is no text."""
    listening = replace(restoration, values=Values({}))
    opened = listening.open(answer.status, answer.headers, decode=True)
    if opened is None:
        return None
    headers, restorer = opened[0], opened[1]
    return _Plain(headers, restorer.feed(answer.body) + restorer.end(), restorer)


def _is_media(answer: NativeAnswer) -> bool:
    kind = next((value for name, value in answer.headers if name.lower() == b"content-type"), b"")
    return _MEDIA.match(kind) is not None


def _masked(restoration: AnswerRestoration, plain: _Plain, texts: Mapping[str, str]) -> bytes:
    marks = Marks({text: mark(kind) for text, kind in texts.items()})
    opened = replace(restoration, values=marks, listener=Listener()).open(200, plain.headers)
    return plain.body if opened is None else opened[1].feed(plain.body) + opened[1].end()


def _restored(restoration: AnswerRestoration, answer: NativeAnswer, read: BodyRestorer) -> Released:
    opened = replace(restoration, listener=Listener(usage=restoration.listener.usage)).open(
        answer.status, answer.headers
    )
    if opened is None or not restoration.values:
        return Released(answer, read)
    headers, restorer = opened
    body = restorer.feed(answer.body) + restorer.end()
    return Released(NativeAnswer(answer.status, headers, body), restorer)
