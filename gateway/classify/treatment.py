"""What is done to an object beyond masking: cut, summarised, stubbed or dropped.

stub      a text in its place that says what was withheld (quarantine)
drop      the whole element of its array goes (signed thinking in a turn that is over)
summary   a local extract in its place
cut       parts of its text go
refuse    nothing of this can be done here, so the whole request is held back
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final
from urllib.parse import parse_qsl

from gateway.classify.consequences import workers
from gateway.classify.objects import ContextObject, Treatment
from gateway.classify.reshape import reshaped
from gateway.context.decisions import Decision, combine
from gateway.context.findings import Edit
from gateway.context.objects import Block, Channel, Json, Leaf, LeafRole, ObjectKind, WalkRules
from gateway.context.splice import merged
from gateway.contract import ContextDispositionV1
from gateway.errors import PolicyError
from gateway.ports import Minimiser, Summariser

_D = ContextDispositionV1
SIGNED: Final = frozenset({ObjectKind.THINKING, ObjectKind.SEALED})
_TURNS: Final = frozenset({"content", "parts"})  # lists of what one message says
_CUT_ROLES: Final = frozenset({LeafRole.TEXT, LeafRole.ENCODED})


@dataclass(frozen=True, slots=True)
class Transformers:
    """The active minimisers and summarisers by name."""

    minimisers: Mapping[str, Minimiser] = field(default_factory=dict)
    summarisers: Mapping[str, Summariser] = field(default_factory=dict)

    def check(self, worker: str, packed: str) -> None:
        """PolicyError `policy.invalid` where a rule names something that is not active, or parameters it rejects."""
        name, parameters = unpack(packed)
        known = self.minimisers if worker == "minimiser" else self.summarisers
        if name not in known:
            raise PolicyError("policy.invalid", f"no {worker} {name!r} is active")
        known[name].check(parameters)


def unpack(packed: str) -> tuple[str, dict[str, str]]:
    """Name and parameters of a minimiser or summariser (gateway.policy.rule.pack)."""
    name, _, query = packed.partition("?")
    return name, dict(parse_qsl(query, keep_blank_values=True))


def stub_text(hold: str) -> str:
    """What a model reads in the place of an object that is held back."""
    return (
        f"[Withheld by your organisation's egress gateway (quarantine {hold}): this content was not sent."
        " A reviewer can release it. Go on without it, and do not guess what it says.]"
    )


def plan(item: ContextObject, hold: Callable[[], str], *, droppable: bool, shapeable: bool) -> None:
    """Set what the object's decision asks for, or add the denial that follows where it cannot be done.

    Args:
        item: decided, its review known.
        hold: gives the id under which the object is held.
        droppable: its element may go from its array.
        shapeable: its body is one JSON text, so that values can be replaced.
    """
    decision = item.decision
    if decision.disposition is _D.QUARANTINE:
        item.treatment = _held(item, hold, droppable=droppable, shapeable=shapeable)
        return
    if not decision.disposition.delivers_content:
        return
    cutters, extracts = workers(decision, "minimiser"), workers(decision, "summariser")
    if not cutters and not extracts:
        return
    if item.block.kind in SIGNED:
        item.treatment = Treatment("drop") if droppable and shapeable else None
    elif extracts:
        item.treatment = Treatment("summary", extracts) if shapeable and fits(item) else None
    else:
        item.treatment = Treatment("cut", cutters)
    if item.treatment is None:
        item.decision = combine(decision, Decision(_D.DENY, ("transform.impossible",)))


def _held(item: ContextObject, hold: Callable[[], str], *, droppable: bool, shapeable: bool) -> Treatment:
    ways = {value for key, value in item.decision.parameters if key == "stub"} or {"replace"}
    if "refuse" in ways or not shapeable:
        return Treatment("refuse")
    if item.block.kind in SIGNED or "drop" in ways:
        return Treatment("drop") if droppable else Treatment("refuse")
    return Treatment("stub", text=stub_text(hold())) if fits(item) else Treatment("refuse")


def fits(item: ContextObject) -> bool:
    """Whether the shape of an object has a place for another text."""
    return item.rules is not None and reshaped(item.block, item.rules, lambda text: text) is not None


def droppable(index: int, objects: Sequence[ContextObject]) -> bool:
    """Whether an element may go: others stay beside it, and its turn is over.

    Providers insist on the thinking of the turn that is going on, and on content in every message. Where thinking is
    an item beside messages and calls (OpenAI Responses), these name it, so that it cannot go without them.
    """
    path = objects[index].block.path
    if len(path) < 2 or not isinstance(path[-1], int) or path[-2] not in _TURNS:
        return False
    beside = any(
        other.block.path[:-1] == path[:-1] and other.block.kind not in SIGNED
        for other in objects
        if other.block.path
    )
    later = objects[index + 1 :]
    return beside and any(o.block.kind is ObjectKind.TEXT and o.block.channel is Channel.USER for o in later)


def cut_edits(
    leaves: Sequence[Leaf], packed: Sequence[str], earlier: Sequence[str], transformers: Transformers
) -> list[tuple[Leaf, tuple[Edit, ...]]]:
    """The cuts of all minimisers in each whole text of an object, united. PolicyError for a name that is not active."""
    result = []
    for leaf in whole_texts(leaves):
        edits: list[Edit] = []
        for each in packed:
            name, parameters = unpack(each)
            if name not in transformers.minimisers:
                raise PolicyError("policy.rule_error", "a minimiser is not active")
            edits += transformers.minimisers[name].cuts(leaf.text, earlier, parameters)
        if edits:
            result.append((leaf, tuple(merged(edits))))
    return result


def whole_texts(leaves: Sequence[Leaf]) -> list[Leaf]:
    """The texts of an object as they stand in its block: of JSON inside a string the string, once."""
    found: dict[int, Leaf] = {}
    for leaf in leaves:
        outermost = leaf
        while outermost.outer is not None:
            outermost = outermost.outer
        if outermost.role in _CUT_ROLES:
            found.setdefault(id(outermost), outermost)
    return list(found.values())


def replacement(block: Block, rules: WalkRules, treatment: Treatment, transformers: Transformers) -> Json:
    """The value that stands in a masked object's place. PolicyError for a summariser that is not active."""
    if treatment.kind == "stub":
        return reshaped(block, rules, lambda _: treatment.text)
    return reshaped(block, rules, lambda text: _extract(text, treatment.workers, transformers))


def _extract(text: str, packed: Sequence[str], transformers: Transformers) -> str:
    """The extract of a text; where rules ask for different ones, only what all of them say: how much was withheld."""
    distinct = sorted(set(packed))
    name, parameters = unpack(distinct[0]) if len(distinct) == 1 else ("counts", {})
    if name not in transformers.summarisers:
        raise PolicyError("policy.rule_error", "a summariser is not active")
    return transformers.summarisers[name].summarise(text, parameters)
