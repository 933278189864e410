"""Layers: several bundles as one set of rules, in which a later bundle can only tighten an earlier one.

Because decisions combine to the strictest, every rule that is added tightens. So a later layer may add
rules, and loosening has exactly these forms, each an error at load that names both sides: defining an id
again, an exception outside the first layer, a role or a switch that permits what an earlier layer does not.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from gateway.context.decisions import ANSWER_LEVELS, AnswerRules
from gateway.policy.breaking import SOURCE, Breakage
from gateway.policy.bundle import BOUNDARY_SWITCHES, LAYERS, Bundle
from gateway.policy.conditions import MODES
from gateway.policy.loosening import loosenings
from gateway.policy.modes import UNREAD, mode_rules, unread_action
from gateway.policy.reading import Problems
from gateway.policy.rule import PolicyException, Rule

BOUNDARY_DEFAULTS = {
    "cross_project_search": False,
    "cross_project_import": False,
    "audit_cross_access": True,
    "universal_gotchas_enabled": True,
}
"""BoundaryPolicy where no bundle speaks (contract.md §9.1)."""

_PERMITS_WHEN = {
    "cross_project_search": True,
    "cross_project_import": True,
    "audit_cross_access": False,
    "universal_gotchas_enabled": True,
}


@dataclass(frozen=True, slots=True)
class Layers:
    """The bundles of one gateway, joined: everything a policy is compiled from."""

    bundles: tuple[Bundle, ...]
    mode: str
    rules: tuple[Rule, ...]
    exceptions: tuple[PolicyException, ...]
    roles: Mapping[str, bool]
    boundary: Mapping[str, bool]
    unread: Mapping[str, str]
    answers: AnswerRules
    texts: Mapping[str, str]


def join_layers(
    bundles: Sequence[Bundle],
    mode: str,
    broken: Sequence[Breakage] = (),
    categories: Callable[[], Mapping[str, str]] = dict,
) -> Layers:
    """Join bundles, the organisation's first.

    `broken` are the rules that people have lifted for a while; `categories` gives the categories of finding types, by
    which it is told that a rule about a type would loosen one about its category.

    Raises:
        PolicyError: `policy.invalid`, with every conflict between layers, and every bundle that does not
        know `mode`.
    """
    problems = Problems()
    if mode not in MODES:
        problems.add("policy.mode", f"{mode!r} is none of {', '.join(MODES)}")
    if not bundles:
        problems.add("policy.bundles", "names no bundle")
    names: set[str] = set()
    for bundle in bundles:
        if bundle.name in names:
            problems.add(bundle.name, "two bundles have this name")
        names.add(bundle.name)
        if mode in MODES and mode not in bundle.modes:
            problems.add(bundle.name, f"is not made for mode {mode}, only for {', '.join(bundle.modes)}")
    _check_order(bundles, problems)
    _check_ids(bundles, problems)
    _check_loosening(bundles, problems, categories)
    exceptions = _exceptions(bundles, problems)
    roles, boundary = _roles(bundles, problems), _boundary(bundles, problems)
    unread = _unread(bundles, mode, problems)
    answers = _answers(bundles, problems)
    problems.raise_any()
    rules = (*mode_rules(mode, unread), *(r for b in bundles for r in b.rules))
    texts = {code: text for b in bundles for code, text in b.texts.items()}
    active = tuple(r for r in rules if not r.when.modes or mode in r.when.modes)
    lifted = tuple(breakage.exception(active) for breakage in broken)
    return Layers(
        tuple(bundles), mode, active, (*exceptions, *lifted), roles, boundary, unread, answers, texts
    )


def _check_order(bundles: Sequence[Bundle], problems: Problems) -> None:
    """Organisation, team, project, run; a bundle that does not say belongs to the layer of the one before."""
    before, at = "", 0
    for bundle in bundles:
        mine = LAYERS.index(bundle.layer) if bundle.layer else at
        if mine < at:
            problems.add(
                f"{bundle.name}: bundle.toml",
                f"layer {bundle.layer!r} comes after {before} ({LAYERS[at]}); the order is {', '.join(LAYERS)}",
            )
        before, at = bundle.name, max(mine, at)


def _check_loosening(
    bundles: Sequence[Bundle], problems: Problems, categories: Callable[[], Mapping[str, str]]
) -> None:
    if len(bundles) < 2:
        return
    known = categories()
    earlier: list[Rule] = []
    for bundle in bundles:
        for found in loosenings(earlier, bundle.rules, known):
            problems.add(found.later.source, str(found))
        earlier += bundle.rules


def broken_glass(layers: Layers) -> tuple[PolicyException, ...]:
    """The exceptions that people made by break-glass."""
    return tuple(e for e in layers.exceptions if e.source == SOURCE)


def _check_ids(bundles: Sequence[Bundle], problems: Problems) -> None:
    seen: dict[str, str] = {}
    for bundle in bundles:
        mine: dict[str, str] = {}
        for rule in bundle.rules:
            if rule.id in seen:
                problems.add(
                    rule.source,
                    f"rule {rule.id!r} is defined by an earlier layer ({seen[rule.id]});"
                    " a later layer adds rules under ids of its own and cannot replace one",
                )
            mine[rule.id] = rule.source
        seen |= mine


def _exceptions(bundles: Sequence[Bundle], problems: Problems) -> tuple[PolicyException, ...]:
    for later in bundles[1:]:
        for exception in later.exceptions:
            problems.add(
                exception.source,
                f"exception {exception.id!r} would loosen {', '.join(map(repr, exception.rules))} of an"
                f" earlier layer; exceptions stand in the first one ({bundles[0].name})",
            )
    if not bundles:
        return ()
    own = {r.id: r for r in bundles[0].rules}
    for exception in bundles[0].exceptions:
        for name in exception.rules:
            if name not in own:
                problems.add(
                    exception.source, f"exception {exception.id!r} lifts {name!r}, which is no rule here"
                )
            elif exception.when.finding.asks and not own[name].when.finding.asks:
                problems.add(
                    exception.source,
                    f"exception {exception.id!r} names findings, but {name!r} ({own[name].source}) sees none",
                )
    return bundles[0].exceptions


def _roles(bundles: Sequence[Bundle], problems: Problems) -> dict[str, bool]:
    found: dict[str, bool] = {}
    for position, bundle in enumerate(bundles):
        for role in bundle.roles:
            wanted = role.allow_cross_project_search
            if position and wanted and not found.get(role.name, False):
                problems.add(
                    role.source,
                    f"role {role.name!r} permits allow_cross_project_search, which no earlier layer does"
                    f" ({', '.join(b.name for b in bundles[:position])})",
                )
            if wanted is not None or role.name not in found:
                found[role.name] = bool(wanted)
    return found


def _boundary(bundles: Sequence[Bundle], problems: Problems) -> dict[str, bool]:
    found = dict(BOUNDARY_DEFAULTS)
    for position, bundle in enumerate(bundles):
        for switch in BOUNDARY_SWITCHES:
            wanted = bundle.boundary.get(switch)
            if wanted is None:
                continue
            if position and wanted is _PERMITS_WHEN[switch] and found[switch] is not wanted:
                problems.add(
                    f"{bundle.name}: bundle.toml",
                    f"boundary.{switch} = {str(wanted).lower()} loosens an earlier layer"
                    f" ({', '.join(b.name for b in bundles[:position])})",
                )
            found[switch] = wanted
    return found


def _unread(bundles: Sequence[Bundle], mode: str, problems: Problems) -> dict[str, str]:
    found: dict[str, str] = {}
    for position, bundle in enumerate(bundles):
        for what in UNREAD:
            wanted = bundle.unread.get(what)
            if wanted is None:
                continue
            if position and wanted == "flag" and unread_action(what, mode, found) == "deny" and mode in MODES:
                problems.add(
                    f"{bundle.name}: bundle.toml",
                    f"unread.{what} = 'flag' loosens an earlier layer"
                    f" ({', '.join(b.name for b in bundles[:position])})",
                )
            found[what] = wanted
    return found


def _answers(bundles: Sequence[Bundle], problems: Problems) -> AnswerRules:
    found: dict[str, str] = {}
    for position, bundle in enumerate(bundles):
        for category, wanted in bundle.answers.items():
            before = found.get(category, ANSWER_LEVELS[0])
            if position and ANSWER_LEVELS.index(wanted) < ANSWER_LEVELS.index(before):
                problems.add(
                    f"{bundle.name}: bundle.toml",
                    f"answers.{category} = {wanted!r} loosens {before!r} of an earlier layer"
                    f" ({', '.join(b.name for b in bundles[:position])})",
                )
            found[category] = wanted
    return AnswerRules(tuple(sorted(found.items())))
