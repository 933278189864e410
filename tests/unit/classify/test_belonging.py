"""Whose an object is: what is remembered, what is decided in each request, and what a call says of its result."""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import Any

from gateway.classify.belonging import FOREIGN_TYPE, STUB, Asker, bare, claim, is_anothers, rule
from gateway.classify.lookups import Claims, Visible
from gateway.classify.objects import ContextObject, LeafFinding, make
from gateway.context.findings import Category, Severity
from gateway.context.objects import Block, Channel, Leaf, LeafRole, ObjectKind
from gateway.ports import Claimed, Reach

ASKER = Asker("zoo", 1)


def item(
    text: str, kind: ObjectKind = ObjectKind.TEXT, channel: Channel = Channel.USER, **value: Any
) -> ContextObject:
    made = make(Block(("messages", 0), kind, channel, {"text": text, **value}))
    made.leaves = [Leaf(("text",), text, LeafRole.TEXT)]
    return made


def known(text: str) -> tuple[Claimed, ...]:
    """The words of a text are what it is claimed by: `kestrel:fingerprint`."""
    found = []
    for word in text.split():
        project, _, evidence = word.partition(":")
        if evidence:
            start = text.index(word)
            found.append(Claimed(project, evidence, 500, ((start, start + len(word)),), ("file",)))
    return tuple(found)


class World:
    """Answers look-ups; what it was asked is kept."""

    def __init__(self, *visible: str) -> None:
        self.visible = visible
        self.claimed: list[str] = []
        self.reaches: list[Reach] = []

    def run(self, objects: list[ContextObject], asker: Asker = ASKER) -> None:
        self._drive(claim(objects, asker, lambda o: o.leaves or []), self._claims)
        self._drive(rule(objects, asker), self._visible)

    def _drive(self, work: Generator[Any, Any, None], answer: Callable[[Any], Any]) -> None:
        given = None
        while True:
            try:
                given = answer(work.send(given))
            except StopIteration:
                return

    def _claims(self, asked: Claims) -> list[tuple[Claimed, ...]]:
        self.claimed += asked.texts
        return [known(text) for text in asked.texts]

    def _visible(self, asked: Visible) -> list[bool]:
        self.reaches += asked.reaches
        return [reach.owner in self.visible for reach in asked.reaches]


def findings(of: ContextObject) -> list[tuple[int, int]]:
    return [(f.start, f.end) for f in of.scanned.findings if f.type == FOREIGN_TYPE]


def test_own_linked_and_foreign() -> None:
    own, linked, foreign, plain = (
        item(t) for t in ("zoo:fingerprint", "ark:fingerprint", "some kestrel:fingerprint", "nobody's text")
    )
    world = World("ark")
    world.run([own, linked, foreign, plain])
    assert [o.scanned.provenance for o in (own, linked, foreign, plain)] == ["own", "linked", "foreign", ""]
    assert findings(foreign) == [(5, 24)]
    assert findings(own) == findings(linked) == findings(plain) == []
    assert {f.token for f in foreign.scanned.findings} == {STUB}
    assert [(r.owner, r.event, r.facts, r.sources) for r in world.reaches] == [
        ("ark", "search", 1, ("file",)), ("kestrel", "search", 1, ("file",)),
    ]  # fmt: skip
    assert [is_anothers(o.scanned, "zoo") for o in (own, linked, foreign, plain)] == [
        False,
        True,
        True,
        False,
    ]


def test_what_is_remembered_is_the_claim_and_not_the_verdict() -> None:
    one = item("kestrel:fingerprint")
    World().run([one])
    assert findings(one) != []
    kept = bare(one.scanned)
    assert kept.findings == ()
    assert kept.provenance == ""
    again = item("kestrel:fingerprint")
    again.scanned = kept
    world = World("kestrel")
    world.run([again])
    assert world.claimed == []  # not looked up again
    assert (findings(again), again.scanned.provenance) == ([], "linked")
    world.run([again], Asker("zoo", 2))
    assert world.claimed == ["kestrel:fingerprint"]  # projects were indexed anew


def test_other_findings_stay_and_spans_that_meet_are_one() -> None:
    one = item("x kestrel:fingerprint")
    other = LeafFinding(0, LeafRole.TEXT, 0, 1, "email", Category.PII, Severity.LOW, 900, "d", "tok")
    one.scanned = type(one.scanned)(findings=(other,))
    World().run([one])
    World().run([one])
    assert [f.type for f in one.scanned.findings] == ["email", FOREIGN_TYPE]
    two = item("kestrel:fingerprint")
    two.leaves = [Leaf((), "kestrel:fingerprint", LeafRole.TEXT)]
    world = World()
    world._drive(claim([two], ASKER, lambda o: o.leaves or []), lambda _: [
        (Claimed("kestrel", "fingerprint", 700, ((0, 9),)), Claimed("ark", "canary", 1000, ((5, 19),)))
    ])  # fmt: skip
    world._drive(rule([two], ASKER), world._visible)
    assert findings(two) == [(0, 19)]


def test_a_mention_names_and_takes_nothing_out() -> None:
    path, tag = item("see kestrel:path"), item("a weak kestrel:tag")
    tag.scanned = type(tag.scanned)()
    world = World()
    world._drive(
        claim([tag], ASKER, lambda o: o.leaves or []),
        lambda _: [(Claimed("kestrel", "tag", 300, ((0, 1),)),)],
    )
    world.run([path])
    world._drive(rule([tag], ASKER), world._visible)
    assert (path.scanned.provenance, findings(path)) == ("foreign", [])
    assert (tag.scanned.provenance, findings(tag)) == ("", [])
    assert [(r.owner, r.facts, r.sources) for r in world.reaches] == [("kestrel", 0, ())]


def test_memory_is_recalled_and_a_write_is_an_import() -> None:
    memory, write = (
        item("kestrel:fingerprint", ObjectKind.MEMORY),
        item("kestrel:fingerprint", ObjectKind.MEMORY),
    )
    write.remembers = "record"
    world = World()
    world.run([memory, write])
    assert [r.event for r in world.reaches] == ["import", "recall"]


def test_a_result_is_whose_the_call_asked_for() -> None:
    call = item("kestrel:path", ObjectKind.TOOL_CALL, Channel.ASSISTANT, id="t1")
    result = item("17 4 8", ObjectKind.TOOL_RESULT, Channel.TOOL, tool_use_id="t1")
    other = item("17 4 8", ObjectKind.TOOL_RESULT, Channel.TOOL, tool_use_id="t2")
    World().run([call, result, other])
    assert [o.scanned.provenance for o in (call, result, other)] == ["foreign", "foreign", ""]
    assert findings(result) == []
    assert bare(result.scanned).provenance == ""  # another request may not hold the call
    World("kestrel").run([call, result, other])
    assert [o.scanned.provenance for o in (call, result, other)] == ["linked", "linked", ""]
