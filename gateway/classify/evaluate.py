"""The evaluation of one request: read, decide, edit, and look again at what was edited.

Sans-I/O: `evaluate` is a generator that yields look-ups (gateway.classify.lookups) and returns an Evaluation. It never
returns a body that still holds what a decision said must not leave: a redaction that left something is a denial.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, override

from gateway.classify.belonging import STUB, alone
from gateway.classify.carrying import carry_out, look_again
from gateway.classify.deciding import Decider, Subject
from gateway.classify.documents import Document, JsonDocument
from gateway.classify.history import keeps_here, stub_history, way_on
from gateway.classify.lookups import Lookup, Recall, Recalled
from gateway.classify.objects import ContextObject, Sticky, StickyEdits, StickyTreatments, chain
from gateway.classify.prefix import hold_prefix
from gateway.classify.reading import Reader, read
from gateway.classify.seams import look_across
from gateway.classify.seams import look_again as look_at_seams
from gateway.classify.treatment import SIGNED, droppable, plan
from gateway.context.decisions import Decision
from gateway.context.findings import Category
from gateway.context.objects import Leaf, LeafRole
from gateway.contract import ContextDispositionV1
from gateway.errors import BodyError

__all__ = ["Evaluation", "Masking", "Subject", "evaluate", "refused_for_body"]


@dataclass(frozen=True, slots=True)
class Masking:
    """A value that left as a placeholder for the first time in this evaluation, and must be kept first."""

    token: str
    category: Category
    mac: bytes = field(repr=False)
    value: str = field(repr=False)

    @override
    def __repr__(self) -> str:
        return f"Masking({self.token})"


@dataclass(slots=True)
class Evaluation:
    """The verdict on one request. `body` is what may leave (None where nothing may)."""

    objects: list[ContextObject]
    body: bytes | None = field(repr=False)
    reason_codes: tuple[str, ...]
    rewritten: bool
    maskings: tuple[Masking, ...]
    carried: tuple[str, ...]  # placeholders that stand in the forwarded body
    lookalikes: int  # texts of the placeholder form that this project never issued
    chain: tuple[bytes, ...] = ()
    recalled: Recalled | None = None
    new_edits: StickyEdits = field(default_factory=dict)
    new_treatments: StickyTreatments = field(default_factory=dict)
    way_on: str = ""  # which turn keeps a refused request here, and what to do about it

    @property
    def delivered(self) -> bool:
        """Whether the request may leave."""
        return self.body is not None

    @property
    def needed(self) -> set[str]:
        """The placeholders of its edits that stand in the body: their values must be kept before it leaves."""
        return {f.token for edits in self.new_edits.values() for f in edits} & set(self.carried)

    def kept_treatments(self) -> dict[bytes, Sticky]:
        """The treatments that the conversation uses from now on: a released object has none any more."""
        before = {} if self.recalled is None else self.recalled.treatments
        here = {item.digest for item in self.objects}
        return {
            **{digest: kept for digest, kept in before.items() if digest not in here},
            **self.new_treatments,
        }


def evaluate(
    document: Document, envelope: Sequence[ContextObject], body: bytes, subject: Subject
) -> Generator[Lookup, Any, Evaluation]:
    """Evaluate a decoded body and its envelope. Raises BodyError where the body cannot be read as it must."""
    objects = [*document.objects, *envelope]
    reader = subject.reader
    yield from read(objects, reader, document.text)
    indexes, hashes = chain(objects)
    recalled: Recalled | None = yield Recall(tuple(hashes))
    seams = yield from look_across(document.objects, reader, recalled)
    yield from Decider(objects, subject, recalled).run()
    _plan(document, objects, subject)
    shapeable = isinstance(document, JsonDocument) and subject.rewritable
    stub_history(objects, indexes, recalled, partial(_hold, subject), shapeable=shapeable)
    hold_prefix(objects, indexes, recalled, shapeable=shapeable)
    carried = None
    if not _is_refused(objects):
        carried = carry_out(document, objects, body, subject)
        yield from look_again(document, carried, subject)
        yield from look_at_seams(seams, document, carried.kept, reader)
    result = None if carried is None or _is_refused(objects) else carried.body
    if result is not None:
        _remember(objects, reader)
    edited = {i: item for i, item in enumerate(objects) if item.edits}
    shown = _shown(document, result)
    spans, lookalikes = reader.placeholders.look(shown)
    return Evaluation(
        objects=objects,
        body=result,
        reason_codes=tuple(sorted({code for item in objects for code in item.decision.reason_codes})),
        rewritten=result is not None and result != body,
        maskings=_maskings(edited, reader),
        carried=tuple(
            dict.fromkeys([*(shown[a:b] for a, b in spans), *_hidden(edited if result is not None else {})])
        ),
        lookalikes=lookalikes,
        chain=tuple(hashes),
        recalled=recalled,
        new_edits={item.digest: item.edits for item in edited.values()},
        new_treatments={
            item.digest: Sticky(item.treatment, item.decision)
            for item in objects
            if item.treatment is not None
        },
        way_on=way_on(objects, shapeable=shapeable) if result is None else "",
    )


def _plan(document: Document, objects: Sequence[ContextObject], subject: Subject) -> None:
    """Say of each object what is to be done to it."""
    shapeable = isinstance(document, JsonDocument) and subject.rewritable
    for index, item in enumerate(objects):
        if item.decision.disposition is not ContextDispositionV1.ALLOW or item.decision.parameters:
            may_go = item.block.kind in SIGNED and droppable(index, objects)
            plan(item, partial(subject.hold_id, ContextDispositionV1.QUARANTINE, item), droppable=may_go,
                 shapeable=shapeable)  # fmt: skip


def _hold(subject: Subject, item: ContextObject) -> str:
    return subject.hold_id(item.decision.disposition, item)


def _is_refused(objects: Sequence[ContextObject]) -> bool:
    """Whether any object keeps the whole request here: denied, waiting for approval, or held with no stub for it."""
    return any(keeps_here(item) for item in objects)


def _shown(document: Document, result: bytes | None) -> str:
    """The text that leaves; nothing where none does, or where it is no text."""
    if result is None or not document.text:
        return ""
    if isinstance(document, JsonDocument) and result is document.body:
        return document.text
    return result.decode("utf-8", "replace")


def _remember(objects: Sequence[ContextObject], reader: Reader) -> None:
    for item in objects:
        if item.scanned is item.remembered:
            continue
        # A value that stood encoded cannot be had again from its span, so only a masked one (kept in the vault) may
        # be remembered without its text.
        masked = {f.token for f in item.edits}
        if item.scanned.coverage_reason.startswith("detector."):
            continue  # a detector that did not answer may answer the next time
        if all(not f.encoded or f.token in masked for f in item.scanned.findings):
            reader.cache.put(reader.key(item), alone(item))


def _hidden(edited: Mapping[int, ContextObject]) -> list[str]:
    """Placeholders that stand in base64: the model reads them, and nobody sees them in the text of the body."""
    encoded = (f for item in edited.values() for f in item.edits if f.role is LeafRole.ENCODED)
    return [f.token for f in encoded if f.token != STUB]


def _maskings(edited: Mapping[int, ContextObject], reader: Reader) -> tuple[Masking, ...]:
    tokens = {f.token: f.category for item in edited.values() for f in item.edits}
    found = []
    for token, category in tokens.items():
        if token == STUB or reader.is_kept(token):
            continue
        value = reader.values.get(token)
        if value is None:
            value = next(
                (v for v in (_plain(item, token, reader) for item in edited.values()) if v is not None), None
            )
        if value is not None:
            found.append(Masking(token, category, reader.placeholders.mac(value), value))
    return tuple(found)


def _plain(item: ContextObject, token: str, reader: Reader) -> str | None:
    """The value behind a placeholder, from a span of a remembered object that holds it in plain."""
    for finding in item.edits:
        if finding.token == token and not finding.encoded:
            leaf: Leaf = reader.leaves(item)[finding.leaf]
            return leaf.text[finding.start : finding.end]
    return None


def refused_for_body(error: BodyError) -> Decision:
    """The decision on a body that cannot be read as it must."""
    return Decision(ContextDispositionV1.DENY, (error.code,))
