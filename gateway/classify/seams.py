"""Values that are cut in two: the end of one text and the start of the next one, looked at together.

Parts of one message and neighbouring messages reach the model as one text, so a key whose halves stand in two of them
is whole again there. The end of each text is therefore scanned together with the start of the next (a *run*; texts that
are short stand in it whole, so that a value may be cut more than once). What is found over a seam is a finding in every
piece of it, each with a placeholder of its own: side by side they restore to what was there.

Only what is new is edited: the newer object, and an older one that comes for the first time with it. An object that
has left before stays as it left. What was found is remembered by the digests on both sides, and a clean seam by a mark
on the newer object, so that a later turn pays nothing for it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any, Final

from gateway.classify.consequences import is_masked
from gateway.classify.documents import Document
from gateway.classify.lookups import Lookup, Recalled, Scan
from gateway.classify.objects import ContextObject, Crossing, LeafFinding, chain
from gateway.classify.reading import PARTIAL, Reader, findings_of, spans_in
from gateway.classify.runs import FAR, NEAR, Part, Piece, Run, pieces_of, runs_over, texts_of
from gateway.context.decisions import Decision, combine
from gateway.context.findings import Finding, ScanItem, ScanResult
from gateway.context.objects import ObjectKind
from gateway.contract import ContextDispositionV1

_READ: Final = frozenset(
    {ObjectKind.SYSTEM, ObjectKind.TEXT, ObjectKind.TOOL_RESULT, ObjectKind.DOCUMENT, ObjectKind.MEMORY}
)
_LEFT: Final = Decision(ContextDispositionV1.DENY, ("redaction.incomplete",))
_SHORT: Final = 512  # bytes of an object over which what stands before it is out of a run's reach


@dataclass(slots=True)
class Seams:
    """The seams of one request: its texts in order, and what was found over the seam before each."""

    texts: list[ContextObject]
    links: list[bytes]  # of each text: its digest, with those before it as far as a run reaches
    found: dict[int, Crossing] = field(default_factory=dict)  # by index of the newest text it reaches into
    unseen: set[int] = field(default_factory=set)  # texts over whose front seam a detector did not look whole

    def before(self, index: int) -> bytes:
        """The link of the text before; none at the start of a part of the body."""
        if not index or self.texts[index - 1].prefix != self.texts[index].prefix:
            return b""
        return self.links[index - 1]

    def reaches_beyond(self, index: int) -> bool:
        """Whether a run over text `index` goes on to the one before it."""
        return self.texts[index].size < _SHORT and bool(self.before(index))

    def key(self, index: int, reader: Reader) -> tuple[Any, ...]:
        """Under which what is found over a seam is remembered: the digests on both sides."""
        return ("seam", self.links[index - 1], *reader.key(self.texts[index]))


def look_across(
    objects: Sequence[ContextObject], reader: Reader, recalled: Recalled | None
) -> Generator[Lookup, Any, Seams]:
    """Add to objects what is found over the seams between them, where that is not known already."""
    seams, clean = _seams(objects), _clean(reader)
    unknown = []
    for index, item in enumerate(seams.texts):
        before = seams.before(index)
        if not before or clean.get(item.digest) == before:
            continue
        known = reader.cache.crossing(seams.key(index, reader))
        if known is None:
            unknown.append(index)
        elif known:
            seams.found[index] = known
    if unknown:
        yield from _look(seams, unknown, reader)
    if seams.found:
        _attach(seams, objects, recalled)
    return seams


def _seams(objects: Sequence[ContextObject]) -> Seams:
    seams = Seams([item for item in objects if item.block.kind in _READ], [])
    for index, item in enumerate(seams.texts):
        link = item.digest
        if seams.reaches_beyond(index):
            link = hashlib.blake2b(seams.links[-1] + link, digest_size=32).digest()
        seams.links.append(link)
    return seams


def _look(seams: Seams, unknown: Sequence[int], reader: Reader) -> Generator[Lookup, Any, None]:
    """Scan the seams before these texts; those that go on beyond a run a second time, in a longer one."""
    found: dict[int, list[tuple[int, LeafFinding]]] = {}
    clean = _clean(reader)
    longer = yield from _scan_runs(seams, unknown, reader, found, NEAR)
    if longer:
        yield from _scan_runs(seams, longer, reader, found, FAR)
    for index in unknown:
        item = seams.texts[index]
        if index in seams.unseen:  # it may be seen the next time, so nothing is remembered of it
            seams.found[index] = tuple((index - owner, f) for owner, f in found.get(index, ()))
        elif index in found:
            seams.found[index] = tuple((index - owner, f) for owner, f in found[index])
            reader.cache.put_crossing(seams.key(index, reader), seams.found[index])
        elif item.digest not in clean:
            clean[item.digest] = seams.before(index)
        else:  # it has another neighbour elsewhere
            reader.cache.put_crossing(seams.key(index, reader), ())


def _clean(reader: Reader) -> dict[bytes, bytes]:
    return reader.cache.clean_seams((reader.project, reader.dialect, reader.revision))


def _scan_runs(
    seams: Seams,
    indexes: Sequence[int],
    reader: Reader,
    found: dict[int, list[tuple[int, LeafFinding]]],
    reach: int,
) -> Generator[Lookup, Any, list[int]]:
    """Fill in `found` by index of the newest text; the answer is which texts need a longer run."""
    runs = runs_over(_reading(seams.texts, reader), indexes, reach, seams.reaches_beyond)
    results: list[ScanResult] = (yield Scan([_item(run, seams.texts) for run in runs])) if runs else []
    known = cache(lambda n: spans_in(seams.texts[n].scanned.findings))
    longer: set[int] = set()
    places: list[tuple[int, int]] = []
    pieces: list[tuple[Piece, Finding]] = []
    for run, result in zip(runs, results, strict=True):
        if reach == NEAR:
            longer.update(run.cut(result))
        if not result.complete:
            _leave_unseen(seams, run, result.reason)
        if not result.findings:
            continue
        own = list(reader.placeholders.find(run.text))
        for finding, newest, each in pieces_of(run, result, own, known):
            if newest not in longer:
                places += [(newest, piece[0].owner) for piece in each]
                pieces += [(piece, finding) for piece in each]
    for (newest, owner), leaf_finding in zip(places, (yield from findings_of(pieces, reader)), strict=True):
        found.setdefault(newest, []).append((owner, leaf_finding))
    return sorted(longer)


def _leave_unseen(seams: Seams, run: Run, reason: str) -> None:
    """What a detector did not look over whole counts as not fully inspected: the newer texts of its seams.

    Where a text of the run is known to be that by itself, its neighbours are not held to account for it.
    """
    seams.unseen.update(run.seams)
    if any(seams.texts[part.owner].scanned.coverage == "partial" for part in run.parts):
        return
    for index in run.seams:
        item = seams.texts[index]
        if item.scanned.coverage != "failed":  # which denies in every mode
            item.scanned = replace(item.scanned, coverage="partial", coverage_reason=reason or PARTIAL)


def _reading(texts: Sequence[ContextObject], reader: Reader) -> Callable[[int], Sequence[Part]]:
    """The texts of one object by its index, each object read once."""
    read: dict[int, list[Part]] = {}

    def parts_of(owner: int) -> Sequence[Part]:
        found = read.get(owner)
        if found is None:
            leaves = reader.leaves(texts[owner])
            found = read[owner] = [
                Part(owner, n, role, text, 0, len(text)) for n, role, text in texts_of(leaves)
            ]
        return found

    return parts_of


def _item(run: Run, texts: Sequence[ContextObject]) -> ScanItem:
    return ScanItem(run.text, "", texts[run.parts[-1].owner].block.channel)


def _attach(seams: Seams, objects: Sequence[ContextObject], recalled: Recalled | None) -> None:
    """Give objects the findings over their seams: the newest always, an older one where it may still be edited.

    Edits are remembered by digest, so what one object gets, every object of the same content gets.
    """
    sent, edits = _sent(objects, recalled)
    alike: dict[bytes, list[ContextObject]] = {}
    for item in seams.texts:
        alike.setdefault(item.digest, []).append(item)
    for index, crossing in seams.found.items():
        for back, finding in crossing:
            digest = seams.texts[index - back].digest
            if back and digest in sent and finding not in edits.get(digest, ()):
                continue
            for item in alike[digest]:
                if finding not in item.seams:
                    item.seams = (*item.seams, finding)
                    item.scanned = replace(item.scanned, findings=(*item.scanned.findings, finding))


def _sent(
    objects: Sequence[ContextObject], recalled: Recalled | None
) -> tuple[set[bytes], Mapping[bytes, tuple[LeafFinding, ...]]]:
    """The digests of what has left before, and how it was edited."""
    if recalled is None:
        return set(), {}
    indexes, _ = chain(objects)
    return {objects[i].digest for i in indexes[: recalled.length]}, recalled.edits


def look_again(seams: Seams, document: Document, body: bytes, reader: Reader) -> Generator[Lookup, Any, None]:
    """Scan the seams of what was edited: what was to be masked and still reaches over one denies."""
    if not seams.found:
        return
    checks = {index: _checked(seams, index, reader) for index in sorted(seams.found)}
    checks = {index: key for index, key in checks.items() if reader.cache.crossing(key) is None}
    if not checks:
        return
    after = document.again(body)
    place = {id(item): n for n, item in enumerate(document.objects)}
    edited = [after[place[id(item)]] for item in seams.texts]
    runs = runs_over(_reading(edited, reader), list(checks), FAR, seams.reaches_beyond)
    results: list[ScanResult] = (yield Scan([_item(run, edited) for run in runs])) if runs else []
    known = cache(lambda n: spans_in(edited[n].scanned.findings))
    left: set[int] = set()
    for run, result in zip(runs, results, strict=True):
        if not result.complete:
            left.update(checks.keys() & set(run.seams))
        own = list(reader.placeholders.find(run.text))
        for finding, newest, pieces in pieces_of(run, result, own, known):
            reaches_in = any(piece[0].owner == newest for piece in pieces)
            if reaches_in and is_masked(_as_leaf(finding, pieces[-1][0]), seams.texts[newest].decision):
                left.add(newest)
    for index, key in checks.items():
        if index in left:
            item = seams.texts[index]
            item.decision = combine(item.decision, _LEFT)
        else:
            reader.cache.put_crossing(key, ())


def _checked(seams: Seams, index: int, reader: Reader) -> tuple[Any, ...]:
    """Under which it is remembered that these very edits left nothing over a seam."""
    backs = {back for back, _ in seams.found[index]}
    return (
        "seamless",
        *seams.key(index, reader),
        *(seams.texts[index - back].edits for back in sorted(backs)),
    )


def _as_leaf(finding: Finding, part: Part) -> LeafFinding:
    return LeafFinding(
        part.leaf, part.role, part.start, part.end, finding.type, finding.category, finding.severity,
        finding.confidence_milli, finding.detector, "",
    )  # fmt: skip
