"""What each trigger leads to, and how the triggers of one database are put together from rules, families and views."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial

from gateway.context.findings import Category
from gateway.context.views import VIEW_RULES, View
from gateway.context.views.codes import octal_groups, three_digits
from gateway.context.views.escapes import form_blanks
from gateway.context.views.joined import byte_list, decimal_list, spaced
from gateway.context.views.mirrored import reversed_groups, reversed_word, rot13_word
from gateway.detect.confirm import WIDE, search_cost
from gateway.detect.dialect import render, trigger_length
from gateway.detect.disguises import disguises, first_letters, spaced_shapes
from gateway.detect.families import Family
from gateway.detect.matcher import Trigger
from gateway.detect.rule import Rule
from gateway.detect.target import Target, view_cost

_FEW_WAYS = 10  # alternatives that are tried at one place for nothing
_FAMILY_COST = 1  # of a hit; a family charges what it reads beyond that
_SHAPE_VIEWS: tuple[tuple[str, str, Callable[[str, int], View | None]], ...] = (
    ("[^0A]0000-00-000[^0]", "reversed", reversed_word),
    ("0000000AA[^0Aa]", "reversed", reversed_word),
    ("0000 00AA[^0Aa]", "reversed", reversed_groups),
    ("AAAAAA00A00A000A", "rot13", rot13_word),
    ("(?:0{2,3}(?:, ?| )){6}", "byte_list", decimal_list),
    ("(?:0{2,3}(?:-|\r?\n)){8}", "byte_list", byte_list),
    ("[^0A]0{27}", "digits", three_digits),
    ("=(?:%0A)?[0A]{2,4}[+][0A]{1,6}[+][0A]{2}", "form_blanks", form_blanks),
    ("[^0A]000(?: 000){7}", "digits", octal_groups),
    *(
        (f"[^0Aa]{sep.join(shape)}{sep}", "spaced", partial(spaced, size=2 * len(shape)))
        for shape in ("AA00", "AAAAAA00", "000-00-", "000000000")
        for sep in (" ", "[.]", "-", "_", "[|]", "[*]", ",")
        if sep != "-" or "-" not in shape
    ),
)
_LABEL_EDGES = frozenset(("[^A-Za-z]", "[^A-Za-z0-9]"))  # what labels of personal data begin with
_ESCAPED_EDGE = (
    r"\\[nrt]"  # a line end or a tab as JSON writes it, whose letter stands right before the label
)
# A number with dashes that a line end cuts, as such or as JSON writes it.
_CUT_NUMBER = r"[^0A.-]000-0{0,3}(?:-0{0,3})?(?:\r?\n|\\{1,4}a)[ \t>#*|+/]{0,8}[0-]"


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
    """The plans, one database each: what is written in one way, words in either case, views, shapes.

    Several databases are faster than one: an expression without a literal slows all that share its database, and so
    do thousands of literals beside some whose case does not matter.
    """
    exact, caseless, decoded, shapes = Plan(), Plan(), Plan(), Plan(shape=True)
    for index, rule in enumerate(rules):
        plan = shapes if rule.shape else caseless if rule.caseless else exact
        for atoms in rule.triggers:
            target = Target(rule=index, cost=_cost(rule))
            plan.add(Trigger(render(atoms), trigger_length(atoms), rule.caseless), target)
            if rule.category is Category.PII and atoms[0].source in _LABEL_EDGES and atoms[0].count == 1:
                behind = Trigger(_ESCAPED_EDGE + render(atoms[1:]), trigger_length(atoms) + 1, rule.caseless)
                plan.add(behind, target)
    for index, family in enumerate(families):
        for trigger in family.triggers:
            plan = shapes if trigger.shape else caseless if trigger.caseless else exact
            plan.add(trigger, Target(family=index, cost=_FAMILY_COST))
    if views:
        hidden = ((Trigger(expression, 0), target) for expression, target in disguises(rules).items())
        for plan, found in ((decoded, _viewed(rules)), (exact, hidden), (shapes, _shaped(rules))):
            for trigger, target in found:
                plan.add(trigger, target)
    return tuple(plan for plan in (exact, caseless, decoded, shapes) if plan.triggers)


def _viewed(rules: Sequence[Rule]) -> Iterator[tuple[Trigger, Target]]:
    """What the kinds of views are found by."""
    heads = first_letters(rules)
    for view in VIEW_RULES:
        find = partial(_guarded, find=view.find, heads=heads) if view.guarded else view.find
        for expression in view.triggers:
            target = Target(view=view.kind, find=find, cost=view_cost(view.kind))
            yield Trigger(expression, 0, view.caseless), target


def _shaped(rules: Sequence[Rule]) -> Iterator[tuple[Trigger, Target]]:
    """What views are found by in the text with digits and letters folded."""
    for expression, kind, find in _SHAPE_VIEWS:
        yield Trigger(expression, 0, shape=True), Target(view=kind, find=find, cost=view_cost(kind))
    yield Trigger(_CUT_NUMBER, 0, shape=True), Target(view="wrapped")
    for expression, target in spaced_shapes(rules).items():
        yield Trigger(expression, 0, shape=True), target


def _cost(rule: Rule) -> int:
    """Units for one hit: a search costs by its window, and what is tried by the alternatives of its pattern."""
    if rule.near is None:
        return 1 + 5 * max(0, rule.ways - _FEW_WAYS)
    window = sum(rule.near) if sum(rule.near) <= WIDE else 0
    return 1 + max(window // 64, search_cost(rule, window) // 2)


def _guarded(
    text: str, at: int, *, find: Callable[[str, int], View | None], heads: frozenset[str]
) -> View | None:
    """The view, without its text where nothing in it begins like a token: then the region was read, and that is all."""
    view = find(text, at)
    if view is None or any(
        not heads.isdisjoint([view.text[i : i + size] for i in range(len(view.text))]) for size in (3, 4)
    ):
        return view
    return View(view.kind, "", view.start, view.end, view.pieces)
