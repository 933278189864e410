"""Carrying decisions out on a body: masks and cuts inside texts first, then values replaced, then elements dropped.

Every step is a splice: what no decision names stays byte for byte as it was sent.
"""

from __future__ import annotations

import json
from collections.abc import Generator, Sequence
from dataclasses import dataclass
from typing import Any

from gateway.classify.consequences import is_masked
from gateway.classify.deciding import Subject
from gateway.classify.documents import Document, JsonDocument, edits_of
from gateway.classify.lookups import Lookup
from gateway.classify.masked import memorable
from gateway.classify.objects import EDITABLE, ContextObject
from gateway.classify.places import Sought
from gateway.classify.reading import scan, scannable
from gateway.classify.treatment import cut_edits, replacement, whole_texts
from gateway.context import jsontext, splice
from gateway.context.decisions import Decision, combine
from gateway.context.findings import Edit
from gateway.context.objects import Leaf, Path
from gateway.contract import ContextDispositionV1
from gateway.errors import BodyError

type _Edits = dict[int, list[tuple[Leaf, tuple[Edit, ...]]]]
_SHAPED = frozenset({"stub", "summary"})
_GONE = frozenset({"stub", "drop"})  # nothing of its own is left to be edited


@dataclass(frozen=True, slots=True)
class Carried:
    """What was done: the body before elements were dropped, the body that may leave, and the objects that changed."""

    kept: bytes
    body: bytes
    changed: dict[int, ContextObject]


def carry_out(document: Document, objects: Sequence[ContextObject], body: bytes, subject: Subject) -> Carried:
    """The body with everything done that decisions ask for. Raises BodyError where an edit cannot be carried out."""
    edits = _text_edits(objects, subject)
    shaped = {i: item for i, item in enumerate(objects) if item.treatment and item.treatment.kind in _SHAPED}
    dropped = [item.block.path for item in objects if item.treatment and item.treatment.kind == "drop"]
    kept = document.apply(edits) if edits else body
    if shaped:
        kept = _replace(document, kept, shaped, subject)
    left = splice.drop(kept.decode("utf-8"), dropped).encode("utf-8") if dropped else kept
    return Carried(kept, left, {i: objects[i] for i in sorted({*edits, *shaped})})


def _text_edits(objects: Sequence[ContextObject], subject: Subject) -> _Edits:
    """Masks and cuts by object, in the coordinates of their leaves."""
    reader, earlier = subject.reader, _Earlier(objects, subject)
    found: _Edits = {}
    for index, item in enumerate(objects):
        treatment = item.treatment
        if treatment is not None and treatment.kind in _GONE:
            continue
        edits = edits_of(item.edits, reader.leaves(item)) if item.edits else []
        if treatment is not None and treatment.kind == "cut":
            edits += cut_edits(
                reader.leaves(item), treatment.workers, earlier.of(index), subject.transformers
            )
        if edits:
            found[index] = edits
    return found


@dataclass(slots=True)
class _Earlier:
    """Texts that the model is given whole before an object; read only where a minimiser compares with them."""

    objects: Sequence[ContextObject]
    subject: Subject

    def of(self, index: int) -> list[str]:
        treatment = self.objects[index].treatment
        if treatment is None or not any(w.startswith("deduplicate") for w in treatment.workers):
            return []
        whole = (item for item in self.objects[:index] if item.treatment is None)
        return [leaf.text for item in whole for leaf in whole_texts(self.subject.reader.leaves(item))]


def _replace(document: Document, body: bytes, shaped: dict[int, ContextObject], subject: Subject) -> bytes:
    """Put another value in the place of whole objects, as these stand after masking."""
    if not isinstance(document, JsonDocument):
        raise BodyError("transform.impossible")
    masked, text = document.again(body), body.decode("utf-8")
    values: dict[Path, str] = {}
    for index, item in shaped.items():
        if item.treatment is None or item.rules is None:
            raise BodyError("transform.impossible")
        value = replacement(masked[index].block, item.rules, item.treatment, subject.transformers)
        if value is None:
            raise BodyError("transform.impossible")
        values[item.block.path] = json.dumps(value, separators=(",", ":"))
    spans = jsontext.locate(text, list(values))
    if len(spans) != len(values):
        raise BodyError("edit.misplaced")
    pieces, at = [], 0
    for path, (start, end) in sorted(spans.items(), key=lambda pair: pair[1]):
        pieces += [text[at:start], values[path]]
        at = end
    return "".join((*pieces, text[at:])).encode("utf-8")


def look_again(document: Document, carried: Carried, subject: Subject) -> Generator[Lookup, Any, None]:
    """Scan what was changed: anything that was to be masked and is still there denies.

    An object whose very changes were looked at before is not looked at again: old turns come back changed the same way.
    """
    reader = subject.reader
    changed = {
        i: item for i, item in carried.changed.items() if reader.cache.get(_key(item, subject)) is None
    }
    if not changed:
        return
    after = document.again(carried.kept)
    fresh = []
    for index in changed:
        remembered = reader.cache.get(reader.key(after[index]))
        if remembered is None:
            fresh.append(after[index])
        else:
            after[index].scanned = remembered
    yield from scan(fresh, reader)
    for index, item in changed.items():
        if _is_left(item, after[index], subject) or _is_less_seen(item, after[index]):
            item.decision = combine(
                item.decision, Decision(ContextDispositionV1.DENY, ("redaction.incomplete",))
            )
            item.treatment = None
        else:
            reader.cache.put(reader.key(after[index]), after[index].scanned)
            if item.treatment is None or item.treatment.kind == "stub":
                reader.cache.put(_key(item, subject), item.scanned)


def _is_left(item: ContextObject, after: ContextObject, subject: Subject) -> bool:
    """Whether something that was to be masked stands in the changed object."""
    reader = subject.reader
    leaves = reader.leaves(after)
    if any(f.role in EDITABLE and is_masked(f, item.decision) for f in after.scanned.findings):
        return True
    sought = Sought(filter(memorable, (reader.values.get(f.token, "") for f in item.edits)))
    return sought.stands_in([leaves[i].text for i in scannable(leaves) if leaves[i].role in EDITABLE])


def _is_less_seen(item: ContextObject, after: ContextObject) -> bool:
    """Whether a detector that saw an object whole did not see whole what it was changed to."""
    return item.scanned.coverage == "complete" and after.scanned.coverage == "partial"


def _key(item: ContextObject, subject: Subject) -> tuple[Any, ...]:
    return ("edited", *subject.reader.key(item), item.edits, item.treatment)
