"""Receipts and evaluation records joined from cached canonical fragments instead of from models.

An agent resends its history with every turn, so nearly all decisions of a receipt were made before. Their
canonical bytes are made once, by the strict models (`decision_fragment`, `object_fragment`), and joined
here. The concatenated parts are byte for byte what the model's `to_json` would give; tests read them back
through the models.

The fragments are grouped into chunks whose boundaries depend on the fragments themselves (a checksum, so
about one fragment in nine ends a chunk). Two records with a common history share its chunks, and a store
that keeps parts once by digest grows with what is new.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any
from zlib import crc32

from gateway.contract.canonical import dump
from gateway.contract.decisions import ContextDecisionV1, DetectorSignalV1
from gateway.contract.dispositions import (
    ContextDecisionOutcomeV1,
    ContextDispositionV1,
    TransformationKindV1,
)
from gateway.contract.evaluation import EvaluationHead, EvaluationObjectV1, EvaluationRecordV1
from gateway.contract.lineage import ContextDecisionLineageV1, ObjectOutcomeV1
from gateway.contract.receipts import MAX_DECISIONS, ContextDecisionReceiptV1, ReceiptHead
from gateway.contract.refusals import contract_error

_CHUNK_MIN = 4  # a run of equal fragments must not become a part each
_CHUNK_MAX = 64  # nor one part without end
_BOUNDARY_ONE_IN = (
    6  # with the minimum: a mean of nine fragments a chunk; the last one is written anew every turn
)

_MAX_CHUNKS = 4096  # of about two kilobytes that are remembered
_known_chunks: dict[tuple[bool, tuple[bytes, ...]], bytes] = {}

_DENIED = b'"disposition":"deny"'
_QUARANTINED = b'"disposition":"quarantine"'
_KEYED = b'"keyed":true'
_OUTCOME_DENIED = b'"outcome":"deny"'
# Canonical text cannot hold these sequences inside a string: its quotes are escaped there.


def decision_fragment(
    object: str,  # noqa: A002  # the contract's own name of the member
    disposition: ContextDispositionV1,
    reason_codes: Iterable[str] = (),
    signals: Iterable[DetectorSignalV1] = (),
    required_transformations: Iterable[TransformationKindV1] = (),
) -> bytes:
    """Canonical bytes of one ContextDecisionV1; transformations may be a set, they are sorted."""
    return ContextDecisionV1(
        object=object,
        disposition=disposition,
        reason_codes=tuple(reason_codes),
        signals=tuple(signals),
        required_transformations=tuple(sorted(required_transformations)),
    ).to_json()


def object_fragment(**members: Any) -> bytes:
    """Canonical bytes of one EvaluationObjectV1, given its members; findings may be plain mappings."""
    return EvaluationObjectV1(**members).to_json()


def outcome_fragment(
    object: str,  # noqa: A002  # the contract's own name of the member
    outcome: ContextDecisionOutcomeV1,
    reason_codes: Iterable[str] = (),
) -> bytes:
    """Canonical bytes of one ObjectOutcomeV1 of a lineage."""
    return ObjectOutcomeV1(object=object, outcome=outcome, reason_codes=tuple(reason_codes)).to_json()


def join_receipt(head: Mapping[str, Any], decisions: Sequence[bytes]) -> tuple[bytes, ...]:
    """The parts of a ContextDecisionReceiptV1 made of `head`, its members but `decisions`, and fragments.

    Raises ContractError for a head that is not valid, more than 4096 decisions, or counts of denials and
    quarantines that are not those of the fragments. Fragments come from `decision_fragment` and are not
    read again.
    """
    record = ContextDecisionReceiptV1.__name__
    checked = ReceiptHead.from_value(head)
    _require_bound(decisions, record)
    joined = _chunks(decisions)
    if (
        _count(joined, _DENIED) != checked.security.blocked_objects
        or _count(joined, _QUARANTINED) != checked.security.quarantined_objects
    ):
        raise contract_error("security_counts", record)
    members = checked.model_dump()
    if not decisions:
        return (dump(members),)
    return _around(members, "decisions", joined)


def join_evaluation(head: Mapping[str, Any], objects: Sequence[bytes]) -> tuple[bytes, ...]:
    """The parts of an EvaluationRecordV1 made of `head`, its members but `objects`, and fragments.

    Raises ContractError for a head that is not valid, more than 4096 objects, or a keyed digest without
    `digest_key`. Fragments come from `object_fragment` and are not read again.
    """
    record = EvaluationRecordV1.__name__
    checked = EvaluationHead.from_value(head)
    _require_bound(objects, record)
    joined = _chunks(objects)
    if checked.digest_key is None and any(_KEYED in chunk for chunk in joined):
        raise contract_error("missing_field", record)
    return _around(checked.model_dump(), "objects", joined)


def join_lineage(head: Mapping[str, Any], outcomes: Sequence[bytes]) -> tuple[bytes, ...]:
    """The parts of a ContextDecisionLineageV1 made of `head`, its members but `outcomes`, and fragments.

    Raises ContractError for a head that is not valid as a lineage without outcomes, more than 4096 of them, or a
    clean claim beside a denial. Fragments come from `outcome_fragment` and are not read again.
    """
    record = ContextDecisionLineageV1.__name__
    checked = ContextDecisionLineageV1.from_value({**head, "outcomes": []})
    _require_bound(outcomes, record)
    joined = _chunks(outcomes)
    if checked.receipt_state.claims_clean_delivery and any(_OUTCOME_DENIED in chunk for chunk in joined):
        raise contract_error("state_overclaims", record)
    members = checked.model_dump()
    return _around(members, "outcomes", joined) if outcomes else (dump(members),)


def _require_bound(fragments: Sequence[bytes], record: str) -> None:
    if len(fragments) > MAX_DECISIONS:
        raise contract_error("bounds_exceeded", record)


def _count(chunks: Sequence[bytes], needle: bytes) -> int:
    return sum(chunk.count(needle) for chunk in chunks)


def _chunks(fragments: Sequence[bytes]) -> list[bytes]:
    """Fragments joined by commas and cut at content-defined boundaries.

    The comma leads every chunk but the first, so that a chunk does not change when more fragments follow.
    """
    chunks: list[bytes] = []
    start = 0
    for end, fragment in enumerate(fragments, 1):
        size = end - start
        if size < _CHUNK_MIN or (crc32(fragment) % _BOUNDARY_ONE_IN and size < _CHUNK_MAX):
            continue
        chunks.append(_joined(tuple(fragments[start:end]), led=start > 0))
        start = end
    if start < len(fragments):  # written anew every turn
        chunks.append((b"," if start else b"") + b",".join(fragments[start:]))
    return chunks


def _joined(fragments: tuple[bytes, ...], *, led: bool) -> bytes:
    """One chunk, the same object every time: whoever has hashed it once need not hash it again."""
    found = _known_chunks.get((led, fragments))
    if found is None:
        if len(_known_chunks) >= _MAX_CHUNKS:
            _known_chunks.clear()
        found = (b"," if led else b"") + b",".join(fragments)
        _known_chunks[led, fragments] = found
    return found


def _around(members: Mapping[str, Any], name: str, chunks: Sequence[bytes]) -> tuple[bytes, ...]:
    """The record's other members in canonical order around the list `name`."""
    before = dump({key: value for key, value in members.items() if key < name})[:-1]
    after = dump({key: value for key, value in members.items() if key > name})[1:]
    opening = b'%s%s"%s":[' % (before, b"," if len(before) > 1 else b"", name.encode())
    closing = b"]%s%s" % (b"," if len(after) > 1 else b"", after)
    return (opening, *chunks, closing)
