"""Reading objects: which leaves are scanned, and what the results mean for the object.

Remembered objects are not read again; new ones are scanned in one batch, compared with the values that were masked
before, and their values get placeholders.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

from gateway.classify import belonging
from gateway.classify.accounting import written
from gateway.classify.belonging import Asker
from gateway.classify.consequences import MASKABLE
from gateway.classify.layout import Layout, layouts, pieces
from gateway.classify.lookups import Issued, Lookup, Masked, Scan
from gateway.classify.masked import MaskedValue, Shapes, compare, may_hold, shapes_in
from gateway.classify.objects import UNSCANNED, ContextObject, LeafFinding, ScanCache, Scanned
from gateway.classify.placeholders import Placeholders, label_for
from gateway.classify.remembering import guard_writes
from gateway.classify.runs import Piece, Run, inner_runs, pieces_of
from gateway.classify.spans import Holding, Spans
from gateway.classify.unread import DOCUMENT, MEDIA, OPAQUE, judged_leaf
from gateway.context import walk
from gateway.context.findings import Finding, ScanItem, ScanResult
from gateway.context.objects import Leaf, LeafRole, Limits, ObjectKind, WalkRules

MIN_TEXT = 4
PARTIAL: Final = "coverage.partial"


@dataclass(frozen=True, slots=True)
class Reader:
    """What reading needs to know besides the objects."""

    project: str
    dialect: str  # adapter id and version
    rules: WalkRules
    limits: Limits
    revision: str  # of the detectors
    cache: ScanCache
    placeholders: Placeholders
    projects: int = 0  # revision of what is known of projects
    time: str = ""  # RFC 3339
    is_kept: Callable[[str], bool] = lambda _: False  # whether the value behind a placeholder is in the vault
    values: dict[str, str] = field(default_factory=dict, repr=False)  # token -> value, of this request alone

    def key(self, item: ContextObject) -> tuple[Any, ...]:
        """Under which the scan of an object is remembered."""
        block = item.block
        return (
            self.project,
            item.digest,
            block.kind,
            block.channel,
            item.dialect or self.dialect,
            self.revision,
        )

    def leaves(self, item: ContextObject) -> list[Leaf]:
        """The leaves of an object, read once an evaluation."""
        if item.leaves is None:
            item.leaves = walk.leaves(item.block, item.rules or self.rules, self.limits)
        return item.leaves


def scannable(leaves: Sequence[Leaf]) -> list[int]:
    """Indexes of the leaves that detectors look at."""
    return [i for i, leaf in enumerate(leaves) if leaf.role not in UNSCANNED and len(leaf.text) >= MIN_TEXT]


def read(objects: Sequence[ContextObject], reader: Reader, text: str) -> Generator[Lookup, Any, None]:
    """Fill in `scanned` of every object; `text` is the body, for a fast look whether old objects need comparing."""
    new = []
    for item in objects:
        remembered = reader.cache.get(reader.key(item)) if item.leaves is None else None
        if remembered is None:
            item.fresh = True
            new.append(item)
        else:
            item.scanned = item.remembered = remembered
    version, masked = yield Masked()
    yield from scan(new, reader)
    asker = Asker(reader.project, reader.projects, reader.time)
    yield from belonging.claim(objects, asker, reader.leaves)
    yield from belonging.rule(objects, asker)
    guard_writes(objects, asker, reader.leaves)
    _compare_all(new, reader, masked, version)
    old = [item for item in objects if not item.fresh and item.scanned.compared < version]
    since = min((item.scanned.compared for item in old), default=version)
    recent = masked[len(masked) - (version - since) :] if version > since else []
    if recent and may_hold(text, recent):
        _compare_all(old, reader, recent, version)
    else:
        for item in old:
            item.scanned = replace(item.scanned, compared=version)


def scan(objects: Sequence[ContextObject], reader: Reader) -> Generator[Lookup, Any, None]:
    """Scan whole objects and give every maskable value its placeholder."""
    places: list[tuple[ContextObject, int]] = []
    items: list[ScanItem] = []
    runs: list[tuple[ContextObject, Run]] = []
    laid: list[tuple[ContextObject, Layout]] = []
    for item in objects:
        leaves = reader.leaves(item)
        for index in scannable(leaves):
            leaf = leaves[index]
            places.append((item, index))
            items.append(ScanItem(leaf.text, leaf.name, item.block.channel))
        runs += [(item, run) for run in inner_runs(leaves)]
        laid += [(item, layout) for layout in layouts(leaves)]
    items += [ScanItem(run.text, "", item.block.channel) for item, run in runs]
    items += [ScanItem(layout.text, "", item.block.channel) for item, layout in laid]
    results: list[ScanResult] = (yield Scan(items)) if items else []
    rest = len(places) + len(runs)
    whole, over, beside = results[: len(places)], results[len(places) : rest], results[rest:]
    tokens = yield from _tokens([(items[i].text, f) for i, r in enumerate(whole) for f in r.findings], reader)
    found: dict[int, list[LeafFinding]] = {}
    gaps: dict[int, tuple[str, int]] = {}
    for (item, index), entry, result in zip(places, items, whole, strict=False):
        own = Holding(reader.placeholders.find(entry.text))
        role = reader.leaves(item)[index].role
        for finding in result.findings:
            if not own.holds(finding.start, finding.end):
                found.setdefault(id(item), []).append(_leaf_finding(index, role, finding, entry.text, tokens))
        if not result.complete:
            lost = gaps.get(id(item), ("", 0))[1] + written(reader.leaves(item)[index])
            gaps[id(item)] = result.reason or PARTIAL, lost
    joined = (*(item for item, _ in runs), *(item for item, _ in laid))
    for item, result in zip(joined, (*over, *beside), strict=True):
        if not result.complete:
            gaps.setdefault(id(item), (result.reason or PARTIAL, 0))
    yield from _scan_over(runs, over, reader, found)
    yield from _read_beside(laid, beside, reader, found)
    for item in objects:
        item.scanned = _scanned(
            item, reader.leaves(item), tuple(found.get(id(item), ())), gaps.get(id(item), ("", 0))
        )


def _scan_over(
    runs: Sequence[tuple[ContextObject, Run]],
    results: Sequence[ScanResult],
    reader: Reader,
    found: dict[int, list[LeafFinding]],
) -> Generator[Lookup, Any, None]:
    """Add what lies over the seams between the parts of one object (see gateway.classify.seams)."""
    owners: list[ContextObject] = []
    cuts: list[tuple[Piece, Finding]] = []
    known = _known(found)
    for (item, run), result in zip(runs, results, strict=True):
        own = list(reader.placeholders.find(run.text))
        for finding, _, each in pieces_of(run, result, own, lambda _, i=item: known(i)):  # type: ignore[misc]
            owners += [item] * len(each)
            cuts += [(piece, finding) for piece in each]
    for item, leaf_finding in zip(owners, (yield from findings_of(cuts, reader)), strict=True):
        found.setdefault(id(item), []).append(leaf_finding)


def _read_beside(
    laid: Sequence[tuple[ContextObject, Layout]],
    results: Sequence[ScanResult],
    reader: Reader,
    found: dict[int, list[LeafFinding]],
) -> Generator[Lookup, Any, None]:
    """Add what members of JSON tell about each other (see gateway.classify.layout)."""
    owners: list[ContextObject] = []
    told: list[tuple[Piece, Finding]] = []
    known = _known(found)
    for (item, layout), result in zip(laid, results, strict=True):
        if result.findings:
            own = list(reader.placeholders.find(layout.text))
            each = list(pieces(layout, reader.leaves(item), result, own, known(item)))
            owners += [item] * len(each)
            told += each
    for item, leaf_finding in zip(owners, (yield from findings_of(told, reader)), strict=True):
        found.setdefault(id(item), []).append(leaf_finding)


def _known(found: Mapping[int, Sequence[LeafFinding]]) -> Callable[[ContextObject], Spans]:
    """What was found in the leaves of an object, put in order where it is asked for."""
    known: dict[int, Spans] = {}

    def of(item: ContextObject) -> Spans:
        if id(item) not in known:
            known[id(item)] = spans_in(found.get(id(item), ()))
        return known[id(item)]

    return of


def spans_in(found: Sequence[LeafFinding]) -> Spans:
    """Where something was found in each leaf."""
    spans: dict[int, list[tuple[int, int]]] = {}
    for each in found:
        spans.setdefault(each.leaf, []).append((each.start, each.end))
    return spans


def findings_of(
    cuts: Sequence[tuple[Piece, Finding]], reader: Reader
) -> Generator[Lookup, Any, list[LeafFinding]]:
    """Findings whose pieces stand apart, each piece as a finding of its own with the placeholder of its own text."""
    cut = [
        (part.whole, finding._replace(start=start, end=end, value=None))
        for (part, start, end), finding in cuts
    ]
    tokens = yield from _tokens(cut, reader)
    return [
        _leaf_finding(part.leaf, part.role, finding, text, tokens)
        for ((part, _, _), _), (text, finding) in zip(cuts, cut, strict=True)
    ]


def _tokens(found: Sequence[tuple[str, Finding]], reader: Reader) -> Generator[Lookup, Any, dict[str, str]]:
    """Placeholders by value. A value that several rules saw gets the label of the first type by name."""
    labels: dict[str, str] = {}
    for text, finding in found:
        if finding.category in MASKABLE:
            value = _value(text, finding)
            labels[value] = min(labels.get(value, finding.type), finding.type)
    if not labels:
        return {}
    macs = {reader.placeholders.mac(value): value for value in labels}
    issued: dict[bytes, str] = yield Issued(tuple(macs))
    tokens = {}
    for mac, value in macs.items():
        token = issued.get(mac) or reader.placeholders.issue(value, label_for(labels[value]))
        tokens[value] = token
        reader.values[token] = value
    return tokens


def _value(text: str, finding: Finding) -> str:
    return finding.value if finding.value is not None else text[finding.start : finding.end]


def _leaf_finding(
    index: int, role: LeafRole, finding: Finding, text: str, tokens: dict[str, str]
) -> LeafFinding:
    value = _value(text, finding)
    return LeafFinding(
        leaf=index,
        role=role,
        start=finding.start,
        end=finding.end,
        type=finding.type,
        category=finding.category,
        severity=finding.severity,
        confidence_milli=finding.confidence_milli,
        detector=finding.detector,
        token=tokens.get(value, ""),
        encoded=finding.value is not None and finding.value != text[finding.start : finding.end],
    )


def _scanned(
    item: ContextObject, leaves: Sequence[Leaf], findings: tuple[LeafFinding, ...], gap: tuple[str, int]
) -> Scanned:
    unseen = [leaf for leaf in leaves if leaf.role is LeafRole.MEDIA and leaf.path not in item.whole]
    media_bytes = sum(map(written, unseen))
    sealed_bytes = sum(written(leaf) for leaf in leaves if leaf.role is LeafRole.SEALED)
    coverage, reason = "complete", ""
    if item.unread is not None:
        (coverage, reason), media_bytes = item.unread, item.size
    elif item.block.kind is ObjectKind.OPAQUE and not item.whole:
        coverage, reason, media_bytes = "unsupported", "coverage.opaque", item.size
    elif gap[0]:
        coverage, reason = "partial", gap[0]
    elif media_bytes:
        coverage, reason = _worst(item.block.kind, unseen)
    elif sealed_bytes and all(leaf.role is LeafRole.SEALED for leaf in leaves if leaf.text):
        coverage = "not_required"
    return Scanned(findings, coverage, reason, media_bytes + sealed_bytes + gap[1])


_WORST: Final = (MEDIA, DOCUMENT, OPAQUE)


def _worst(kind: ObjectKind, leaves: Sequence[Leaf]) -> tuple[str, str]:
    """Coverage and reason of an object by its least readable file: what is malformed, opaque, a document, media."""
    found = [judged_leaf(leaf, kind) for leaf in leaves]
    return max(
        found, key=lambda each: (each[0] == "failed", _WORST.index(each[1]) if each[1] in _WORST else 0)
    )


def _compare_all(
    objects: Sequence[ContextObject], reader: Reader, masked: Sequence[MaskedValue], version: int | None
) -> None:
    """Compare objects with masked values; a version of None leaves what they were compared with as it is."""
    shapes = shapes_in((leaf.text for item in objects for leaf in reader.leaves(item)), masked)
    for item in objects:
        extra = _hits(item, reader, shapes) if shapes.each else ()
        compared = item.scanned.compared if version is None else version
        if extra or compared != item.scanned.compared:
            findings = (*item.scanned.findings, *extra)
            item.scanned = replace(item.scanned, findings=findings, compared=compared)


def _hits(item: ContextObject, reader: Reader, shapes: Shapes) -> list[LeafFinding]:
    """Where shapes stand that lie in nothing that was found already."""
    leaves = reader.leaves(item)
    known = {leaf: Holding(spans) for leaf, spans in spans_in(item.scanned.findings).items()}
    return [
        hit
        for hit in compare(leaves, scannable(leaves), shapes)
        if hit.leaf not in known or not known[hit.leaf].holds(hit.start, hit.end)
    ]


def spread(
    objects: Sequence[ContextObject], reader: Reader, new: Sequence[MaskedValue]
) -> list[ContextObject]:
    """Look in every object for values that this request masks for the first time; returns the objects that changed."""
    before = [len(item.scanned.findings) for item in objects]
    _compare_all(objects, reader, new, None)
    return [item for item, count in zip(objects, before, strict=True) if len(item.scanned.findings) > count]
