"""Rules of later layers that could only be meant to loosen: each is an error that names both rules.

The strictest rule wins, so that such a rule has no effect; whoever wrote it believes that it has. It is one that speaks
only where an earlier rule speaks too, asks for something weaker, and adds nothing: no mask, no cut, no destination.
Where it cannot be told whether the earlier rule always speaks, nothing is said. That findings must be sure enough, or
that a rule names the places where a text can stand, is left out of the comparison: it says where a rule looks, not what
it is about.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, override

from gateway.contract import ContextDispositionV1
from gateway.policy.conditions import Conditions, FindingConditions
from gateway.policy.globs import matcher
from gateway.policy.rule import Rule

_NAMES = ("kind", "channel", "classification", "provenance", "trust", "coverage")
_OBJECT_GLOBS = ("coverage_reason", "pointer")
_REQUEST_GLOBS = ("principal", "project", "team", "provider", "model", "region")
_REQUEST_NAMES = ("principal_kind", "role", "locality", "route")


@dataclass(frozen=True, slots=True)
class Loosening:
    """A rule of a later layer, and the one of an earlier layer that it would loosen."""

    later: Rule
    earlier: Rule

    @override
    def __str__(self) -> str:
        """The problem, for whoever wrote the later rule."""
        return (
            f"rule {self.later.id!r} asks for {self.later.then.disposition} where {self.earlier.id!r}"
            f" ({self.earlier.source}) of an earlier layer asks for {self.earlier.then.disposition}; a later layer"
            " cannot loosen. Leave it out, or make an exception in the first layer"
        )


def loosenings(
    earlier: Sequence[Rule], later: Sequence[Rule], categories: Mapping[str, str]
) -> Iterator[Loosening]:
    """What rules of a layer would loosen of those of the layers before; `categories` are those of finding types."""
    known = _Earlier.of(earlier)
    for rule in later:
        adds = bool(rule.then.mask or rule.then.transformations or rule.then.destinations is not None)
        for before in known.about(rule):
            if adds and before.then.disposition is not ContextDispositionV1.DENY:
                continue
            weaker = rule.then.disposition.order < before.then.disposition.order
            if weaker and _speaks_wherever(before, rule, categories):
                yield Loosening(rule, before)
                break


@dataclass(frozen=True, slots=True)
class _Earlier:
    """Rules of earlier layers: those that name types without wildcards by each of them, and all others."""

    by_type: Mapping[str, list[Rule]]
    others: list[Rule]

    @classmethod
    def of(cls, rules: Sequence[Rule]) -> _Earlier:
        by_type: dict[str, list[Rule]] = defaultdict(list)
        others: list[Rule] = []
        for rule in rules:
            types = rule.when.finding.type
            if not types or any("*" in name for name in types):
                others.append(rule)
                continue
            for name in types:
                by_type[name].append(rule)
        return cls(by_type, others)

    def about(self, rule: Rule) -> Iterator[Rule]:
        """The rules that could speak wherever this one does: one that names types speaks of all of this one's."""
        yield from self.others
        types = rule.when.finding.type
        if types:
            yield from self.by_type.get(types[0], ())


def _speaks_wherever(before: Rule, rule: Rule, categories: Mapping[str, str]) -> bool:
    """Whether `before` speaks of everything that `rule` speaks of."""
    if before.scope is not None and before.scope != rule.scope:
        return False
    if before.unless is not None and _implied(before.unless, rule.when, categories):
        return False
    return _implied(before.when, rule.when, categories)


def _implied(general: Conditions, special: Conditions, categories: Mapping[str, str]) -> bool:
    """Whether whatever satisfies `special` satisfies `general`."""
    pairs = [(general.modes, special.modes)]
    pairs += [(getattr(general.object, n), getattr(special.object, n)) for n in _NAMES]
    pairs += [(getattr(general.request, n), getattr(special.request, n)) for n in _REQUEST_NAMES]
    globs = [(getattr(general.object, n), getattr(special.object, n)) for n in _OBJECT_GLOBS]
    globs += [(getattr(general.request, n), getattr(special.request, n)) for n in _REQUEST_GLOBS]
    same: list[tuple[Any, Any]] = [
        (general.object.rewritable, special.object.rewritable),
        (general.request.organization_managed, special.request.organization_managed),
        (general.request.time, special.request.time),
    ]
    return (
        all(not wide or (narrow and set(narrow) <= set(wide)) for wide, narrow in pairs)
        and all(not wide or (narrow and all(map(_of(wide), narrow))) for wide, narrow in globs)
        and all(wide is None or wide == narrow for wide, narrow in same)
        and _between(general, special)
        and _same_findings(general.finding, special.finding, categories)
    )


def _of(patterns: tuple[str, ...]) -> Any:
    """Whether a pattern is one of these, or a name that one of these describes."""
    described = matcher(patterns)
    return lambda name: name in patterns or ("*" not in name and described(name))


def _between(general: Conditions, special: Conditions) -> bool:
    low, high = general.object.bytes_min, general.object.bytes_max
    lower, higher = special.object.bytes_min, special.object.bytes_max
    return (low is None or (lower is not None and lower >= low)) and (
        high is None or (higher is not None and higher <= high)
    )


def _same_findings(
    general: FindingConditions, special: FindingConditions, categories: Mapping[str, str]
) -> bool:
    if not general.asks:
        return True
    types = bool(special.type) and all(map(_of(general.type), special.type))
    if general.type and not types:
        return False
    if general.not_type and (not special.type or any(map(_of(general.not_type), special.type))):
        return False
    if general.category:
        named = special.category or tuple(categories.get(name, "?") for name in special.type)
        if not named or not set(named) <= set(general.category):
            return False
    places = set(special.leaf_role) or {"text"}
    if general.leaf_role and not places <= set(general.leaf_role):
        return False
    counted = general.count_min is None or (special.count_min or 1) >= general.count_min
    grave = not general.severity_min or special.severity_min == general.severity_min
    return counted and grave and special.asks
