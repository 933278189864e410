"""What each trigger leads to, and how the triggers of one database are put together from rules, families and views."""

from __future__ import annotations

import codecs
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from gateway.context.findings import Category
from gateway.context.views import VIEW_RULES, View
from gateway.context.views.mirrored import reversed_word, rot13_word
from gateway.detect.dialect import Atom, render, trigger_length
from gateway.detect.families import Family
from gateway.detect.matcher import Trigger
from gateway.detect.rule import Rule

_MIRROR_LITERAL = (
    3  # characters of literal text a trigger must begin with to be looked for reversed and rotated
)
_LITERAL = re.compile(r"\\?[A-Za-z0-9_.\-/:~]")


@dataclass(frozen=True, slots=True)
class Target:
    """Where a hit goes: a rule, a family, or the finder of a view."""

    rule: int = -1
    family: int = -1
    view: str = ""
    find: Callable[[str, int], View | None] | None = None


class Plan:
    """The triggers of one database and their targets, index by index."""

    def __init__(self) -> None:
        self.triggers: list[Trigger] = []
        self.targets: list[Target] = []

    def add(self, trigger: Trigger, target: Target) -> None:
        """One more trigger."""
        self.triggers.append(trigger)
        self.targets.append(target)


def make_plans(rules: Sequence[Rule], families: Sequence[Family], *, views: bool) -> tuple[Plan, Plan]:
    """The plan for the text itself and the one for its shape (digits and letters folded)."""
    core, shape = Plan(), Plan()
    for index, rule in enumerate(rules):
        for atoms in rule.triggers:
            trigger = Trigger(render(atoms), trigger_length(atoms), rule.caseless)
            (shape if rule.shape else core).add(trigger, Target(rule=index))
    for index, family in enumerate(families):
        for trigger in family.triggers:
            (shape if trigger.shape else core).add(trigger, Target(family=index))
    if views:
        for view in VIEW_RULES:
            for expression in view.triggers:
                core.add(Trigger(expression, 0), Target(view=view.kind, find=view.find))
        _add_mirrors(core, rules)
        for expression in ("[^0A]0000-00-000[^0]", "0000000AA[^0Aa]", "0000 00AA[^0Aa]"):
            shape.add(Trigger(expression, 0), Target(view="reversed", find=reversed_word))
    return core, shape


def _add_mirrors(core: Plan, rules: Sequence[Rule]) -> None:
    seen: set[str] = set()
    for rule in rules:
        if rule.category is not Category.SECRET or rule.near or rule.at or rule.shape:
            continue
        for atoms in rule.triggers:
            literal = _leading_literal(atoms)
            if len(literal) < _MIRROR_LITERAL:
                continue
            back = render(tuple(reversed(atoms)))
            turned = _rotated(literal, atoms)
            for expression, kind, find in ((back, "reversed", reversed_word), (turned, "rot13", rot13_word)):
                if expression not in seen:
                    seen.add(expression)
                    core.add(Trigger(expression, 0), Target(view=kind, find=find))


def _leading_literal(atoms: tuple[Atom, ...]) -> list[Atom]:
    out: list[Atom] = []
    for atom in atoms:
        if atom.count != 1 or not _LITERAL.fullmatch(atom.source):
            break
        out.append(atom)
    return out


def _rotated(literal: list[Atom], atoms: tuple[Atom, ...]) -> str:
    head = "".join(
        atom.source if atom.source.startswith("\\") else codecs.encode(atom.source, "rot13")
        for atom in literal
    )
    rest = sum(atom.count for atom in atoms) - len(literal)
    return head + (f"[A-Za-z0-9_+/-]{{{rest}}}" if rest else "")
