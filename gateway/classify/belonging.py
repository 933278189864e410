"""Whose an object is, and what of it may not be seen here.

What is remembered of an object are claims: which project its text belongs to, and by which evidence. Whether a
project may see another's is decided anew in every request, for it depends on who asks and on the policy of now.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from gateway.classify.lookups import Claims, Lookup, Visible
from gateway.classify.memory import call_id
from gateway.classify.objects import Claim, ContextObject, LeafFinding, Scanned
from gateway.context.findings import Category, Severity
from gateway.context.objects import Leaf, LeafRole, ObjectKind
from gateway.contract import CrossProjectEventTypeV1
from gateway.ports import CONTENT_EVIDENCE, OwnedText, Reach

FOREIGN_TYPE = "cross_project"
STUB = "[text of another project, withheld by the egress gateway]"
OWN, LINKED, FOREIGN = "own", "linked", "foreign"

_CLAIMED_ROLES = frozenset({LeafRole.TEXT, LeafRole.ENCODED})
_MIN_CLAIMED = 6  # characters; a path of a root has more
_RECORDS = frozenset({ObjectKind.TOOL_RESULT, ObjectKind.MEMORY})
_SHORT = 40  # characters below which a text is not known by its fingerprints (gateway.app.ownership)
_BESIDE = 2  # values before and after a claimed one that belong to the same record
_PLACES = frozenset({"path", "cwd"})
_SURE_MENTION = 500  # thousandths: a working directory, a path or a remote; a tag alone says too little


@dataclass(frozen=True, slots=True)
class Asker:
    """Who asks, and when. `revision` is of what is known of projects, 0 where they are not told apart."""

    project: str
    revision: int
    time: str = ""


def claim(
    objects: Sequence[ContextObject], asker: Asker, leaves: Callable[[ContextObject], Sequence[Leaf]]
) -> Generator[Lookup, Any, None]:
    """Look up whose the text of objects is, where that was not asked since projects were last indexed."""
    asked = [item for item in objects if item.scanned.claimed != asker.revision]
    places = [
        (item, index, leaf)
        for item in asked
        for index, leaf in enumerate(leaves(item))
        if leaf.role in _CLAIMED_ROLES and len(leaf.text) >= _MIN_CLAIMED
    ]
    answers = (yield Claims([leaf.text for _, _, leaf in places])) if places else []
    found: dict[int, list[Claim]] = {}
    for (item, index, leaf), claims in zip(places, answers, strict=True):
        found.setdefault(id(item), []).extend(
            Claim(index, leaf.role, c.project, c.evidence, c.confidence_milli, c.spans, c.sources)
            for c in claims
        )
    for item in asked:
        claims = found.get(id(item), [])
        if claims and item.block.kind in _RECORDS:
            claims += _beside(claims, leaves(item))
        item.scanned = replace(item.scanned, claims=tuple(claims), claimed=asker.revision)


def _beside(claims: Sequence[Claim], leaves: Sequence[Leaf]) -> list[Claim]:
    """Claims on values too short to be known by themselves, such as the name of a record whose text is claimed."""
    content: dict[int, list[Claim]] = {}
    for c in claims:
        if c.evidence in CONTENT_EVIDENCE:
            content.setdefault(c.leaf, []).append(c)
    values = [index for index, leaf in enumerate(leaves) if leaf.role in _CLAIMED_ROLES]
    found = []
    for place, index in enumerate(values):
        text = leaves[index].text
        if index in content or not 0 < len(text) < _SHORT:
            continue
        near = [n for n in values[max(0, place - _BESIDE) : place + _BESIDE + 1] if n in content]
        owners = {c.project: c for n in near for c in content[n]}
        whole = ((0, len(text)),)
        found += [replace(c, leaf=index, role=leaves[index].role, spans=whole) for c in owners.values()]
    return found


def rule(objects: Sequence[ContextObject], asker: Asker) -> Generator[Lookup, Any, None]:
    """Give every object its provenance, and a finding for each span that is not visible to who asks."""
    named = _named_by_calls(objects)
    claimed = [item for item in objects if item.scanned.claims or _call(item) in named]
    if not claimed:
        return
    of = {id(item): _foreign(item, asker.project, named.get(_call(item), ())) for item in claimed}
    wanted: dict[tuple[str, CrossProjectEventTypeV1], list[Claim]] = {}
    for item in claimed:
        for owner, claims in of[id(item)].items():
            wanted.setdefault((owner, reached_by(item)), []).extend(claims)
    reaches = [_reach(owner, event, claims) for (owner, event), claims in sorted(wanted.items())]
    allowed: Sequence[bool] = (yield Visible(reaches)) if reaches else []
    visible = {(r.owner, r.event) for r, yes in zip(reaches, allowed, strict=True) if yes}
    for item in claimed:
        _apply(item, asker.project, of[id(item)], visible)


def reached_by(item: ContextObject) -> CrossProjectEventTypeV1:
    """How an object reaches for another project: it is taken into memory, put before a model from it, or just found."""
    if item.remembers:
        return CrossProjectEventTypeV1.IMPORT
    if item.block.kind is ObjectKind.MEMORY:
        return CrossProjectEventTypeV1.RECALL
    return CrossProjectEventTypeV1.SEARCH


def bare(scanned: Scanned) -> Scanned:
    """What may be remembered: claims stay, what was decided about them goes."""
    if not scanned.claims and not scanned.provenance:
        return scanned
    kept = tuple(f for f in scanned.findings if f.type != FOREIGN_TYPE)
    return replace(scanned, findings=kept, provenance="")


def alone(item: ContextObject) -> Scanned:
    """What may be remembered of an object: what it owes to its neighbours goes too."""
    scanned = bare(item.scanned)
    if not item.seams:
        return scanned
    return replace(scanned, findings=tuple(f for f in scanned.findings if f not in item.seams))


def is_anothers(scanned: Scanned, project: str) -> bool:
    """Whether content of another project stands in an object, visible or not: it is not learnt as one's own."""
    return any(c.project != project and c.evidence in CONTENT_EVIDENCE for c in scanned.claims)


def own_texts(objects: Sequence[ContextObject], project: str) -> list[OwnedText]:
    """What a project shows to be its own by sending it: all but what is another's, seen rightly or not."""
    return [
        OwnedText(leaf.text, item.block.kind, item.block.channel)
        for item in objects
        if item.fresh and not is_anothers(item.scanned, project)
        for leaf in item.leaves or ()
        if leaf.role is LeafRole.TEXT
    ]


def _call(item: ContextObject) -> str:
    """The id of the call whose result an object is; empty where it is none, or its dialect keeps ids elsewhere."""
    results = (ObjectKind.TOOL_RESULT, ObjectKind.MEMORY)
    return call_id(item.block.value) if item.block.kind in results and item.block.channel == "tool" else ""


def _named_by_calls(objects: Iterable[ContextObject]) -> dict[str, tuple[Claim, ...]]:
    """What calls name, by their ids: a file that was asked for by its path is that project's, whatever it holds."""
    calls = (o for o in objects if o.scanned.claims and o.block.channel == "assistant")
    named = {
        call_id(o.block.value): tuple(c for c in o.scanned.claims if c.evidence in _PLACES) for o in calls
    }
    named.pop("", None)
    return named


def _foreign(item: ContextObject, project: str, named: Iterable[Claim]) -> dict[str, list[Claim]]:
    """Claims of other projects by owner, those of its call included, weak ones left out."""
    found: dict[str, list[Claim]] = {}
    for c in (*item.scanned.claims, *named):
        sure = _SURE_MENTION if item.block.kind is not ObjectKind.MEMORY else 0
        if c.project != project and (c.evidence in CONTENT_EVIDENCE or c.confidence_milli >= sure):
            found.setdefault(c.project, []).append(c)
    return found


def _reach(owner: str, event: CrossProjectEventTypeV1, claims: Sequence[Claim]) -> Reach:
    content = [c for c in claims if c.evidence in CONTENT_EVIDENCE]
    sources = dict.fromkeys(source for c in content for source in c.sources)
    return Reach(owner, event, sum(len(c.spans) for c in content), tuple(sources))


def _apply(
    item: ContextObject, project: str, others: dict[str, list[Claim]], visible: set[tuple[str, str]]
) -> None:
    event = reached_by(item)
    hidden = [owner for owner in others if (owner, event) not in visible]
    findings = [
        _finding(c, span)
        for owner in hidden
        for c in others[owner]
        if c.evidence in CONTENT_EVIDENCE
        for span in c.spans
    ]
    if others:
        provenance = FOREIGN if hidden else LINKED
    else:
        provenance = OWN if any(c.project == project for c in item.scanned.claims) else ""
    kept = bare(item.scanned)
    item.scanned = replace(kept, findings=(*kept.findings, *_merged(findings)), provenance=provenance)


def _merged(findings: Sequence[LeafFinding]) -> list[LeafFinding]:
    """One finding where spans of one leaf meet: two projects can claim the same lines."""
    found: list[LeafFinding] = []
    for f in sorted(findings, key=lambda f: (f.leaf, f.start)):
        if found and found[-1].leaf == f.leaf and f.start <= found[-1].end:
            found[-1] = replace(found[-1], end=max(found[-1].end, f.end))
        else:
            found.append(f)
    return found


def _finding(c: Claim, span: tuple[int, int]) -> LeafFinding:
    return LeafFinding(
        leaf=c.leaf,
        role=c.role,
        start=span[0],
        end=span[1],
        type=FOREIGN_TYPE,
        category=Category.POLICY,
        severity=Severity.HIGH,
        confidence_milli=c.confidence_milli,
        detector="boundary",
        token=STUB,
    )
