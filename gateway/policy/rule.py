"""A rule as it is written: when it speaks, when it is silent, what it then asks for.

```toml
[[rule]]
id = "secret.redact"
why = "A key that left is a key to change."
when = { category = ["secret"], leaf_role = ["text"], confidence_min = 300 }
unless = { locality = ["local"] }
then = { disposition = "allow_redacted", reason_codes = ["secret.redacted"] }
```
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from urllib.parse import urlencode

from gateway.context.decisions import FindingFacts
from gateway.context.findings import Category
from gateway.contract import ContextDispositionV1, TransformationKindV1
from gateway.policy.conditions import Conditions, FindingConditions, read_conditions
from gateway.policy.globs import matcher
from gateway.policy.reading import Table

RULE_ID = re.compile(r"[a-z][a-z0-9_.\-]{1,63}")
REASON_CODE = re.compile(r"[a-z][a-z0-9_.]{2,63}")
EXCEPTION_ID_MAX = 48
"""An exception stands in evaluation records as `exception:<id>`, whose names have at most 64 characters."""
RESERVED = "mode."
"""Rules that the modes of the contract bring along; a bundle can neither define nor lift one."""

_D, _T = ContextDispositionV1, TransformationKindV1

TRANSFORMATIONS: dict[ContextDispositionV1, frozenset[TransformationKindV1]] = {
    _D.ALLOW: frozenset(),
    _D.ALLOW_MINIMIZED: frozenset({_T.SELECTION, _T.DEDUPLICATION, _T.STRUCTURAL_EXTRACTION, _T.COMPRESSION}),
    _D.ALLOW_REDACTED: frozenset({_T.REDACTION}),
    _D.ALLOW_SUMMARY_ONLY: frozenset({_T.SUMMARIZATION, _T.STRUCTURAL_EXTRACTION}),
}
"""What a disposition may ask for; those that are not named may ask for nothing but a mask."""

_IMPLIED = {_D.ALLOW_REDACTED: _T.REDACTION, _D.ALLOW_SUMMARY_ONLY: _T.SUMMARIZATION}


@dataclass(frozen=True, slots=True)
class Mask:
    """Which finding types must not leave in clear: those the rule matched, or those that are named."""

    matched: bool = False
    types: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return self.matched or bool(self.types or self.categories)

    def of(self, findings: Iterable[FindingFacts], matched: Iterable[FindingFacts]) -> frozenset[str]:
        """The types to mask in an object with these findings, of which some made the rule speak."""
        if self.matched:
            return frozenset(f.type for f in matched)
        types = matcher(self.types)
        return frozenset(f.type for f in findings if f.category in self.categories or types(f.type))


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a rule asks for. `coverage_reason` adds the scanner's reason for not reading everything."""

    disposition: ContextDispositionV1
    reason_codes: tuple[str, ...] = ()
    transformations: frozenset[TransformationKindV1] = frozenset()
    parameters: tuple[tuple[str, str], ...] = ()
    mask: Mask = Mask()
    destinations: frozenset[str] | None = None
    coverage_reason: bool = False


@dataclass(frozen=True, slots=True)
class Scope:
    """For whom a layer is: the teams or the projects that its manifest names, as globs."""

    of: str  # team | project
    names: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule; `source` is `bundle: file` and is named in errors about conflicts. `scope` is that of its layer."""

    id: str
    why: str
    when: Conditions
    unless: Conditions | None
    then: Outcome
    source: str
    scope: Scope | None = None


@dataclass(frozen=True, slots=True)
class PolicyException:
    """The only way to loosen: until `expires` (exclusive) rules do not speak of what `when` describes."""

    id: str
    owner: str
    reason: str
    expires: datetime
    rules: tuple[str, ...]
    when: Conditions
    source: str


def read_rule(table: Table, source: str) -> Rule:
    """Read one `[[rule]]`; problems are noted in the table's collection."""
    identity = _identity(table)
    why = table.text("why", required=True)
    when = read_conditions(inner) if (inner := table.table("when")) else Conditions()
    silent = read_conditions(inner, findings=False) if (inner := table.table("unless")) else None
    if silent == Conditions():
        table.wrong("unless", "names no condition, so the rule could never speak")
    then_table = table.table("then")
    if then_table is None:
        table.wrong("then", "required")
        then = Outcome(_D.DENY)
    else:
        then = _read_outcome(then_table, when.finding)
    table.end()
    return Rule(identity, why, when, silent, then, source)


def read_exception(table: Table, source: str) -> PolicyException:
    """Read one `[[exception]]`; owner, reason, expiry and the rules it lifts are all required."""
    identity = _identity(table)
    if len(identity) > EXCEPTION_ID_MAX:
        table.wrong("id", f"more than {EXCEPTION_ID_MAX} characters")
    owner, reason = table.text("owner", required=True), table.text("reason", required=True)
    expires = table.instant("expires", required=True)
    rules = table.texts("rules")
    if not rules:
        table.wrong("rules", "names no rule")
    when = read_conditions(inner) if (inner := table.table("when")) else Conditions()
    if when.finding.count_min is not None:
        table.wrong("when.count_min", "an exception lifts a rule finding by finding and cannot count them")
    table.end()
    far_past = datetime.min  # noqa: DTZ901  (stands in for a missing expiry that was already reported)
    return PolicyException(identity, owner, reason, expires or far_past, rules, when, source)


def _identity(table: Table) -> str:
    identity = table.text("id", required=True)
    if identity and not RULE_ID.fullmatch(identity):
        table.wrong("id", "must be 2 to 64 of a-z 0-9 _ . - and begin with a letter")
    if identity.startswith(RESERVED):
        table.wrong("id", f"names that begin with {RESERVED!r} are the gateway's own")
    return identity


def _read_outcome(table: Table, finding: FindingConditions) -> Outcome:
    name = table.choice("disposition", tuple(_D), required=True)
    disposition = _D(name) if name else _D.DENY
    codes = table.texts("reason_codes")
    for code in codes:
        if not REASON_CODE.fullmatch(code):
            table.wrong(
                "reason_codes", f"{code!r} is not a reason code: a letter, then 2 to 63 of a-z 0-9 _ ."
            )
    if not codes and disposition is not _D.ALLOW:
        table.wrong("reason_codes", "required for everything but allow")
    mask = _read_mask(table, disposition, finding)
    destinations = table.texts("destinations")
    transformations = _read_transformations(table, disposition, mask)
    outcome = Outcome(
        disposition,
        codes,
        transformations,
        _read_parameters(table, disposition, transformations),
        mask,
        frozenset(destinations) if destinations else None,
        bool(table.flag("coverage_reason")),
    )
    table.end()
    return outcome


_WORKERS = {_D.ALLOW_MINIMIZED: "minimiser", _D.ALLOW_SUMMARY_ONLY: "summariser"}
_STUBS = ("replace", "drop", "refuse")


def _read_parameters(
    table: Table, disposition: ContextDispositionV1, transformations: frozenset[TransformationKindV1]
) -> tuple[tuple[str, str], ...]:
    """The parameters as pairs; those of a minimiser or summariser are one pair, `name?key=value&...`.

    Decisions of several rules are united pair by pair, and the numbers of one rule must not end up with the minimiser
    of another. Where none is named the default of the disposition stands in, so that every rule says what it means.
    """
    given = table.scalars("parameters")
    worker = _WORKERS.get(disposition)
    if worker is not None:
        default = "deduplicate" if transformations == {_T.DEDUPLICATION} else "head_tail"
        name = given.pop(worker, default if worker == "minimiser" else "auto")
        return ((worker, pack(name, given)),)
    if "reroute" in given and disposition is not _D.ALLOW_LOCAL_MODEL_ONLY:
        table.wrong("parameters.reroute", "goes with allow_local_model_only alone")
    if given.get("stub", "replace") not in _STUBS:
        table.wrong("parameters.stub", f"must be one of {', '.join(_STUBS)}")
    return tuple(sorted(given.items()))


def pack(name: str, parameters: Mapping[str, str]) -> str:
    """A minimiser or summariser with its parameters, as it stands in a decision."""
    return f"{name}?{urlencode(sorted(parameters.items()))}" if parameters else name


def _read_mask(table: Table, disposition: ContextDispositionV1, finding: FindingConditions) -> Mask:
    if "mask" not in table:
        # A denied object can stand in old history, where a stub takes its place: its values leave from nowhere else.
        mask = Mask(matched=disposition in (_D.ALLOW_REDACTED, _D.DENY) and finding.asks)
        if disposition is _D.ALLOW_REDACTED and not mask:
            table.wrong("mask", "required: the rule redacts but has no finding condition that says what")
        return mask
    if (inner := table.table("mask")) is None:
        return Mask()
    mask = Mask(types=inner.texts("type"), categories=inner.choices("category", tuple(Category)))
    inner.end()
    if not mask:
        table.wrong("mask", "names neither type nor category")
    if disposition is _D.ALLOW:
        table.wrong("mask", "a rule that masks is not allow but allow_redacted")
    return mask


def _read_transformations(
    table: Table, disposition: ContextDispositionV1, mask: Mask
) -> frozenset[TransformationKindV1]:
    legal = TRANSFORMATIONS.get(disposition, frozenset())
    named = frozenset(_T(n) for n in table.choices("transformations", tuple(_T)))
    for kind in sorted(named - legal):
        table.wrong("transformations", f"{kind} does not go with {disposition}")
    if disposition is _D.ALLOW_MINIMIZED and not named & legal:
        table.wrong("transformations", f"allow_minimized needs one of {', '.join(sorted(legal))}")
    implied = {_IMPLIED[disposition]} if disposition in _IMPLIED else set()
    masks = bool(mask) and not (
        mask.matched and disposition is _D.DENY
    )  # nothing is redacted in what stays here
    return named & legal | implied | ({_T.REDACTION} if masks else set())
