"""The evaluation of one request: read, decide, edit, and look again at what was edited.

Sans-I/O: `evaluate` is a generator that yields look-ups (gateway.classify.lookups) and returns an Evaluation. It never
returns a body that still holds what a decision said must not leave: a redaction that left something is a denial.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, override

from gateway.classify.belonging import FOREIGN_TYPE, STUB, bare
from gateway.classify.documents import Document, edits_of
from gateway.classify.lookups import Lookup, Recall, Recalled
from gateway.classify.masked import MaskedValue, memorable
from gateway.classify.objects import EDITABLE, ContextObject, LeafFinding, StickyEdits, chain
from gateway.classify.reading import MASKABLE, Reader, read, scan, scannable, spread
from gateway.context.decisions import Decision, RequestFacts, combine
from gateway.context.findings import Category
from gateway.context.objects import Leaf, LeafRole, ObjectKind
from gateway.contract import ContextDispositionV1, TransformationKindV1
from gateway.errors import BodyError
from gateway.ports import Policy

_D = ContextDispositionV1
_REDACTED = {
    Category.SECRET: "secret.redacted",
    Category.PII: "pii.redacted",
    Category.POLICY: "project.not_visible",
}
_ENFORCED = frozenset({_D.ALLOW, _D.ALLOW_REDACTED})


@dataclass(frozen=True, slots=True)
class Subject:
    """What surrounds the body: who asks, where it goes, which rules hold."""

    request: RequestFacts
    policy: Policy
    reader: Reader
    rewritable: bool = True  # false where the client signed the body (SigV4)


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

    @property
    def delivered(self) -> bool:
        """Whether the request may leave."""
        return self.body is not None


def evaluate(
    document: Document, envelope: Sequence[ContextObject], body: bytes, subject: Subject
) -> Generator[Lookup, Any, Evaluation]:
    """Evaluate a decoded body and its envelope. Raises BodyError where the body cannot be read as it must."""
    objects = [*document.objects, *envelope]
    reader = subject.reader
    yield from read(objects, reader, document.text)
    indexes, hashes = chain(objects)
    recalled: Recalled | None = yield Recall(tuple(hashes))
    _decide(objects, subject, recalled)
    _mask_everywhere(objects, subject, recalled)
    _hold_signed_prefix(objects, indexes, recalled)
    refused = any(item.decision.disposition not in _ENFORCED for item in objects)
    edited = {i: item for i, item in enumerate(objects) if item.edits}
    result = None if refused else body
    if edited and not refused:
        result = document.apply({i: edits_of(item.edits, reader.leaves(item)) for i, item in edited.items()})
        yield from _look_again(document, result, edited, subject)
        if any(item.decision.disposition is _D.DENY for item in objects):
            result = None
    if result is not None:
        _remember(objects, reader)
    codes = sorted({code for item in objects for code in item.decision.reason_codes})
    text = "" if result is None or not document.text else result.decode("utf-8", "replace")
    carried = tuple(
        dict.fromkeys(
            [*(text[a:b] for a, b in reader.placeholders.find(text)), *(_hidden(edited) if result else ())]
        )
    )
    return Evaluation(
        objects=objects,
        body=result,
        reason_codes=tuple(codes),
        rewritten=bool(edited) and result is not None,
        maskings=_maskings(edited, reader),
        carried=carried,
        lookalikes=reader.placeholders.lookalikes(text),
        chain=tuple(hashes),
        recalled=recalled,
        new_edits={item.digest: item.edits for item in edited.values()},
    )


def _decide(objects: Sequence[ContextObject], subject: Subject, recalled: Recalled | None) -> None:
    # Nearly all objects of a long history are clean and alike to the rules: one answer serves them all.
    alike: dict[tuple[Any, ...], Decision] = {}
    placed = subject.policy.reads_place
    for item in objects:
        scanned, block = item.scanned, item.block
        if placed or scanned.findings or (recalled is not None and item.digest in recalled.edits):
            _decide_one(item, subject, recalled)
            continue
        key = (block.kind, block.channel, scanned.coverage, scanned.coverage_reason, scanned.provenance)
        if key not in alike:
            _decide_one(item, subject, recalled)
            alike[key] = item.decision
        item.decision = alike[key]


def _decide_one(item: ContextObject, subject: Subject, recalled: Recalled | None) -> None:
    decision = subject.policy.decide(subject.request, item.facts(rewritable=subject.rewritable))
    masked = tuple(f for f in item.scanned.findings if _is_masked(f, decision))
    if recalled is not None and item.digest in recalled.edits:
        masked = _union(masked, recalled.edits[item.digest])
    if decision.disposition in _ENFORCED or decision.disposition is _D.ALLOW_LOCAL_MODEL_ONLY:
        decision = combine(decision, *_consequences(masked, rewritable=subject.rewritable))
    if decision.disposition is _D.ALLOW_LOCAL_MODEL_ONLY and subject.request.locality != "local":
        decision = combine(decision, Decision(_D.DENY, ("destination.remote_restricted",)))
    if decision.disposition is _D.ALLOW_LOCAL_MODEL_ONLY:
        decision = replace(decision, disposition=_D.ALLOW_REDACTED if masked else _D.ALLOW)
    item.decision = decision
    editable = tuple(f for f in masked if f.role in EDITABLE and f.token)
    item.edits = editable if decision.disposition in _ENFORCED else ()


def _is_masked(finding: LeafFinding, decision: Decision) -> bool:
    named = bool(decision.mask & {finding.type, str(finding.category), "*"})
    return named and (finding.category in MASKABLE or finding.type == FOREIGN_TYPE)


def _union(found: tuple[LeafFinding, ...], sticky: tuple[LeafFinding, ...]) -> tuple[LeafFinding, ...]:
    """Edits used before stay; new ones are added."""
    have = {(f.leaf, f.start, f.end) for f in sticky}
    return (*sticky, *(f for f in found if (f.leaf, f.start, f.end) not in have))


def _consequences(masked: Sequence[LeafFinding], *, rewritable: bool) -> list[Decision]:
    """What masking these findings means for the object: a redaction, or a denial where nothing may be rewritten."""
    decisions = []
    for finding in masked:
        if not rewritable:
            decisions.append(Decision(_D.DENY, ("egress.signed_body",)))
        elif finding.role is LeafRole.THINKING:
            decisions.append(Decision(_D.DENY, ("egress.sealed_content",)))
        elif finding.role not in EDITABLE or not finding.token:
            # What may be said of personal data in fixed places is the policy's; a secret never leaves.
            if finding.category != "pii":
                decisions.append(Decision(_D.DENY, ("secret.blocked",)))
        else:
            code = _REDACTED.get(finding.category, "policy.redacted")
            decisions.append(
                Decision(_D.ALLOW_REDACTED, (code,), frozenset({TransformationKindV1.REDACTION}))
            )
    return decisions


def _mask_everywhere(objects: Sequence[ContextObject], subject: Subject, recalled: Recalled | None) -> None:
    """A value that one object masks is masked in every object of the request, also where nothing gives it away."""
    reader = subject.reader
    tokens = {f.token: f.category for item in objects for f in item.edits}
    new = [
        MaskedValue(token, reader.values[token], category)
        for token, category in sorted(tokens.items())
        if memorable(reader.values.get(token, ""))
    ]
    for item in spread(objects, reader, new) if new else ():
        _decide_one(item, subject, recalled)


def _hold_signed_prefix(
    objects: Sequence[ContextObject], indexes: Sequence[int], recalled: Recalled | None
) -> None:
    """Models bind thinking signatures to all content before them: an old object may not change under one."""
    if recalled is None:
        return
    sent = indexes[: recalled.length]
    signed = [i for i in sent if objects[i].block.kind in (ObjectKind.THINKING, ObjectKind.SEALED)]
    for i in sent:
        before = recalled.edits.get(objects[i].digest, ())
        if set(objects[i].edits) != set(before) and any(s > i for s in signed):
            objects[i].decision = combine(
                objects[i].decision, Decision(_D.DENY, ("conversation.signed_prefix",))
            )
            objects[i].edits = ()


def _look_again(
    document: Document, body: bytes, edited: Mapping[int, ContextObject], subject: Subject
) -> Generator[Lookup, Any, None]:
    """Scan what was edited: anything that was to be masked and is still there denies.

    An object whose very edits were looked at before is not looked at again: old turns come back edited the same way.
    """
    reader = subject.reader
    edited = {i: item for i, item in edited.items() if reader.cache.get(_edited_key(item, reader)) is None}
    if not edited:
        return
    after = document.again(body)
    fresh = []
    for index in edited:
        remembered = reader.cache.get(reader.key(after[index]))
        if remembered is None:
            fresh.append(after[index])
        else:
            after[index].scanned = remembered
    yield from scan(fresh, reader)
    for index, item in edited.items():
        leaves = reader.leaves(after[index])
        left = [
            f for f in after[index].scanned.findings if f.role in EDITABLE and _is_masked(f, item.decision)
        ]
        texts = [leaves[i].text for i in scannable(leaves) if leaves[i].role in EDITABLE]
        values = [reader.values.get(f.token, "") for f in item.edits]
        clear = any(memorable(v) and any(v in text for text in texts) for v in values)
        if left or clear:
            item.decision = combine(item.decision, Decision(_D.DENY, ("redaction.incomplete",)))
        else:
            reader.cache.put(reader.key(after[index]), after[index].scanned)
            reader.cache.put(_edited_key(item, reader), item.scanned)


def _edited_key(item: ContextObject, reader: Reader) -> tuple[Any, ...]:
    return ("edited", *reader.key(item), item.edits)


def _remember(objects: Sequence[ContextObject], reader: Reader) -> None:
    for item in objects:
        # A value that stood encoded cannot be had again from its span, so only a masked one (kept in the vault) may
        # be remembered without its text.
        masked = {f.token for f in item.edits}
        if all(not f.encoded or f.token in masked for f in item.scanned.findings):
            reader.cache.put(reader.key(item), bare(item.scanned))


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
    return Decision(_D.DENY, (error.code,))
