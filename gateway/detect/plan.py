"""What each trigger leads to, and how the triggers of one database are put together from rules, families and views."""

from __future__ import annotations

import codecs
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

from gateway.context.findings import Category
from gateway.context.views import VIEW_RULES, View
from gateway.context.views.joined import decimal_list, spaced
from gateway.context.views.mirrored import reversed_groups, reversed_word, rot13_word
from gateway.detect.confirm import WIDE
from gateway.detect.dialect import Atom, render, trigger_length
from gateway.detect.families import Family
from gateway.detect.matcher import Trigger
from gateway.detect.rule import Rule

_FAMILY_COST = 5
VIEW_COST = 2
_TELLING_LITERAL = 4  # characters that are rare by themselves; `re_` backwards is in every second word
_LEAST_LITERAL = 3  # characters of literal text a trigger must begin with to be looked for in disguise
_EDGE = r"(?:[^A-Za-z0-9]|\\[nrtbf]|%[0-9A-Fa-f]{2})"  # what may stand before a token, see `left_edge`
_SEPARATORS = (" ", r"\.", "-", "_", r"\|", r"\*", ",", "  ", ", ")
_SHAPE_VIEWS: tuple[tuple[str, str, Callable[[str, int], View | None]], ...] = (
    ("[^0A]0000-00-000[^0]", "reversed", reversed_word),
    ("0000000AA[^0Aa]", "reversed", reversed_word),
    ("0000 00AA[^0Aa]", "reversed", reversed_groups),
    ("AAAAAA00A00A000A", "rot13", rot13_word),
    ("(?:0{2,3}(?:, ?| )){6}", "byte_list", decimal_list),
    *(
        (f"[^0Aa]{sep.join(shape)}{sep}", "spaced", partial(spaced, size=2 * len(shape)))
        for shape in ("AA00", "AAAAAA00", "000-00-", "000000000")
        for sep in (" ", "[.]", "-", "_", "[|]", "[*]", ",")
        if sep != "-" or "-" not in shape
    ),
)
_LITERAL = re.compile(r"\\?[A-Za-z0-9_.\-/:~]")


@dataclass(frozen=True, slots=True)
class Target:
    """Where a hit goes: a rule, a family, or the finder of a view."""

    rule: int = -1
    family: int = -1
    view: str = ""  # "wrapped" alone, without a finder: a line end cuts what may be a token
    find: Callable[[str, int], View | None] | None = None
    cost: int = 1  # of looking at one hit, in units of the budget


class Plan:
    """The triggers of one database and their targets, index by index."""

    def __init__(self, *, shape: bool = False) -> None:
        self.shape = shape  # whether it runs on the text with digits and letters folded
        self.triggers: list[Trigger] = []
        self.targets: list[Target] = []

    def add(self, trigger: Trigger, target: Target) -> None:
        """One more trigger."""
        self.triggers.append(trigger)
        self.targets.append(target)


def make_plans(rules: Sequence[Rule], families: Sequence[Family], *, views: bool) -> tuple[Plan, ...]:
    """The plans, one database each: secrets, people and phrases, views, shapes.

    Several databases are faster than one: an expression without a literal slows all that share its database.
    """
    secrets, others, decoded, shapes = Plan(), Plan(), Plan(), Plan(shape=True)
    for index, rule in enumerate(rules):
        plan = shapes if rule.shape else secrets if rule.category is Category.SECRET else others
        for atoms in rule.triggers:
            target = Target(rule=index, cost=_cost(rule))
            plan.add(Trigger(render(atoms), trigger_length(atoms), rule.caseless), target)
    for index, family in enumerate(families):
        for trigger in family.triggers:
            (shapes if trigger.shape else secrets).add(trigger, Target(family=index, cost=_FAMILY_COST))
    if views:
        for view in VIEW_RULES:
            for expression in view.triggers:
                decoded.add(Trigger(expression, 0), Target(view=view.kind, find=view.find, cost=VIEW_COST))
        _add_disguises(secrets, rules)
        for expression, kind, find in _SHAPE_VIEWS:
            shapes.add(Trigger(expression, 0), Target(view=kind, find=find, cost=VIEW_COST))
    return tuple(plan for plan in (secrets, others, decoded, shapes) if plan.triggers)


def _cost(rule: Rule) -> int:
    """Units for one hit: a search costs by its window, a slow validator more."""
    window = sum(rule.near) // 64 if rule.near and sum(rule.near) <= WIDE else 0
    return 1 + window + (6 if rule.check.startswith("phone") else 0)


def _add_disguises(plan: Plan, rules: Sequence[Rule]) -> None:
    """Triggers for tokens that are reversed, rotated or spaced out: each still has a known literal in it."""
    seen: set[str] = set()
    heads: dict[str, list[str]] = {}
    for rule in rules:
        if rule.category is not Category.SECRET or rule.near or rule.at or rule.shape:
            continue
        for atoms in rule.triggers:
            literal = _leading_literal(atoms)
            if len(literal) < _LEAST_LITERAL or len({atom.source for atom in literal}) == 1:
                continue  # `AAAA` backwards is everywhere
            backwards = render(tuple(reversed(literal)))
            before = "[A-Za-z0-9_-]{7}" if len(literal) < _TELLING_LITERAL else ""
            heads.setdefault(before + backwards, []).append(render(atoms))
            for expression, target in _disguises(literal, atoms):
                if expression not in seen:
                    seen.add(expression)
                    plan.add(Trigger(expression, 0), target)
    for expression, forms in heads.items():
        head = re.compile("|".join(forms)) if expression.startswith("[") else None
        plan.add(
            Trigger(expression, 0),
            Target(view="reversed", find=partial(reversed_word, head=head), cost=VIEW_COST),
        )


def _disguises(literal: list[Atom], atoms: tuple[Atom, ...]) -> Iterator[tuple[str, Target]]:
    yield _rotated(literal, atoms), Target(view="rot13", find=rot13_word, cost=VIEW_COST)
    reach = min(48, max(16, sum(atom.count for atom in atoms) - len(literal)))
    cut = f"[A-Za-z0-9_.-]{{1,{reach}}}\r?\n[A-Za-z0-9_.-]{{4}}"
    yield "[^A-Za-z0-9]" + render(tuple(literal)) + cut, Target(view="wrapped")
    head = [atom.source for atom in literal[:4]]
    for separator in _SEPARATORS:
        yield (
            "".join(source + separator for source in head),
            Target(view="spaced", find=_spaced(len(head) * (1 + len(separator.removeprefix("\\"))))),
        )


def _spaced(size: int) -> Callable[[str, int], View | None]:
    return partial(spaced, size=size)


def _leading_literal(atoms: tuple[Atom, ...]) -> list[Atom]:
    out: list[Atom] = []
    for atom in atoms:
        if atom.count != 1 or not _LITERAL.fullmatch(atom.source):
            break
        out.append(atom)
    return out


def _rotated(literal: list[Atom], atoms: tuple[Atom, ...]) -> str:
    head = _EDGE if len(literal) < _TELLING_LITERAL else ""
    head += "".join(
        atom.source if atom.source.startswith("\\") else codecs.encode(atom.source, "rot13")
        for atom in literal
    )
    rest = sum(atom.count for atom in atoms) - len(literal)
    return head + (f"[A-Za-z0-9_+/-]{{{rest}}}" if rest else "")
