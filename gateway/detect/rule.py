"""Rules as data: what a TOML rule file may say, read and checked at load.

A `[[rule]]` names a trigger (a literal with a fixed-length tail, run by the multi-pattern engine over everything) and
a pattern (bounded, run only where a trigger hit). A `[[named]]` row gives a type to the value of an assignment by its
key (`DATADOG_API_KEY=...`), where the value alone says nothing. Both carry the fact they rest on (`source`) and
examples that are tests: every positive must be found, no negative may be.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any

from gateway.context.findings import Category, Severity
from gateway.detect.checks import CHECKS
from gateway.detect.dialect import Atom, compile_pattern, digits_held, parse_trigger, ways_in
from gateway.errors import PolicyError

_ID = re.compile(r"[a-z0-9][a-z0-9._-]{1,62}")
_TYPE = re.compile(r"[a-z][a-z0-9_.]{1,62}")
_WORD_END = r"(?![A-Za-z0-9])"
_UNCHECKED = ("keep", "drop", "lookalike")
_MAX_WINDOW = 4096


@dataclass(frozen=True, slots=True)
class Rule:
    """One detection rule.

    Without `near` the pattern must match at `trigger start - at`; with it, the pattern is searched from `near[0]`
    characters before the trigger to `near[1]` after it. The group `v`, where the pattern has one, is the datum;
    else the whole match. `edge` says what may stand left of it: "word" no letter or digit, "none" anything.
    `check` names a validator; where it fails, `unchecked` decides: keep (lower confidence), drop, or lookalike
    (reported as classification `token_lookalike` unless the text hands the value over as a value).
    `context` words must stand within 80 characters before it, where given; `unless` words must not
    stand within 24. `wide` words, which the engine cannot see, are looked for in texts that are not ASCII.
    `samples`: also what is published as a sample, and fillers, which are nobody's.
    `digits`: so many stand side by side in every match; `ways`: the alternatives that it tries at a place; both are
    read from the pattern.
    """

    id: str
    type: str
    category: Category
    severity: Severity
    triggers: tuple[tuple[Atom, ...], ...]
    pattern: re.Pattern[str]
    caseless: bool = False
    shape: bool = False
    at: int = 0
    near: tuple[int, int] | None = None
    edge: str = "word"
    check: str = ""
    unchecked: str = "keep"
    context: tuple[str, ...] = ()
    unless: tuple[str, ...] = ()
    wide: tuple[str, ...] = ()
    samples: bool = False
    digits: int = 0
    ways: int = 1
    confidence: int = 900
    checked: int = 990
    source: str = ""
    positive: tuple[str, ...] = field(default=(), repr=False)
    negative: tuple[str, ...] = field(default=(), repr=False)


@dataclass(frozen=True, slots=True)
class Named:
    """The type of an assigned value, by key and shape; `strict`: a value of another shape under this key is none."""

    id: str
    type: str
    severity: Severity
    key: re.Pattern[str]
    value: re.Pattern[str]
    confidence: int
    strict: bool = False
    source: str = ""
    positive: tuple[str, ...] = field(default=(), repr=False)
    negative: tuple[str, ...] = field(default=(), repr=False)


@dataclass(frozen=True, slots=True)
class RuleSet:
    """Everything loaded, in order of declaration."""

    rules: tuple[Rule, ...]
    named: tuple[Named, ...]


class _Table:
    """One TOML table with typed look-ups; complains about what it does not know."""

    def __init__(self, data: Mapping[str, Any], known: frozenset[str]) -> None:
        self.data = data
        self.id = str(data.get("id", "?"))
        unknown = set(data) - known
        if unknown:
            raise self.error(f"unknown keys {sorted(unknown)}")

    def error(self, message: str) -> PolicyError:
        return PolicyError("rule.invalid", f"rule {self.id}: {message}")

    def text(self, key: str, default: str | None = None, *, form: re.Pattern[str] | None = None) -> str:
        value = self.data.get(key, default)
        if not isinstance(value, str) or (form is not None and not form.fullmatch(value)):
            raise self.error(f"{key} is missing or not valid")
        return value

    def number(self, key: str, default: int, high: int) -> int:
        value = self.data.get(key, default)
        if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value <= high:
            raise self.error(f"{key} must be a whole number up to {high}")
        return value

    def flag(self, key: str) -> bool:
        value = self.data.get(key, False)
        if not isinstance(value, bool):
            raise self.error(f"{key} must be true or false")
        return value

    def texts(self, key: str) -> tuple[str, ...]:
        value = self.data.get(key, [])
        if not isinstance(value, list) or not all(isinstance(v, str) for v in value):
            raise self.error(f"{key} must be a list of strings")
        return tuple(value)


_RULE_KEYS = frozenset(f.name for f in fields(Rule)) - {"triggers", "digits", "ways"} | {"trigger"}
_NAMED_KEYS = frozenset(f.name for f in fields(Named)) | {"category"}


def load_rules(files: Sequence[Mapping[str, Any]]) -> RuleSet:
    """Read parsed TOML documents; raises PolicyError naming the rule that is not valid."""
    rules: list[Rule] = []
    named: list[Named] = []
    seen: set[str] = set()
    for data in files:
        unknown = set(data) - {"rule", "named"}
        if unknown:
            raise PolicyError("rule.invalid", f"unknown tables {sorted(unknown)}")
        rules += [_named_in_errors(_read_rule, _Table(row, _RULE_KEYS)) for row in data.get("rule", [])]
        named += [_named_in_errors(_read_named, _Table(row, _NAMED_KEYS)) for row in data.get("named", [])]
    for name in [r.id for r in rules] + [n.id for n in named]:
        if name in seen:
            raise PolicyError("rule.invalid", f"rule {name}: declared twice")
        seen.add(name)
    return RuleSet(tuple(rules), tuple(named))


def _named_in_errors[R](read: Callable[[_Table], R], table: _Table) -> R:
    """Read a row; what the dialect refuses is told with the id of the rule."""
    try:
        return read(table)
    except PolicyError as error:
        if error.code == "rule.dialect":
            raise PolicyError("rule.dialect", f"rule {table.id}: {error}") from None
        raise


def _enum[E: (Category, Severity)](table: _Table, key: str, kind: type[E]) -> E:
    try:
        return kind(table.text(key))
    except ValueError as error:
        raise table.error(f"{key} is not one of {[e.value for e in kind]}") from error


def _near(table: _Table) -> tuple[int, int] | None:
    value = table.data.get("near")
    if value is None:
        return None
    good = (
        isinstance(value, list)
        and len(value) == 2
        and all(type(v) is int and 0 <= v <= _MAX_WINDOW for v in value)
    )
    if not good:
        raise table.error(f"near must be [before, after], each up to {_MAX_WINDOW}")
    return int(value[0]), int(value[1])


def _read_rule(table: _Table) -> Rule:
    near = _near(table)
    triggers = tuple(parse_trigger(t) for t in table.texts("trigger"))
    wide = table.texts("wide")
    if not triggers and not wide:
        raise table.error("a trigger, or words beyond Latin-1, are needed")
    edge = table.text("edge", "none" if near or table.flag("shape") else "word")
    check = table.text("check", "")
    unchecked = table.text("unchecked", "keep")
    if edge not in {"word", "none"} or unchecked not in _UNCHECKED or (check and check not in CHECKS):
        raise table.error("edge, check or unchecked is not a known name")
    caseless = table.flag("caseless")
    pattern = compile_pattern(
        table.text("pattern"),
        flags=(re.IGNORECASE if caseless else 0) | (0 if wide else re.ASCII),
        suffix=_WORD_END if edge == "word" else "",
    )
    confidence = table.number("confidence", 900, 1000)
    positive = table.texts("positive")
    if not positive:
        raise table.error("a rule needs a positive example")
    return Rule(
        id=table.text("id", form=_ID),
        type=table.text("type", form=_TYPE),
        category=_enum(table, "category", Category),
        severity=_enum(table, "severity", Severity),
        triggers=triggers,
        pattern=pattern,
        caseless=caseless,
        shape=table.flag("shape"),
        at=table.number("at", 0, 200),
        near=near,
        edge=edge,
        check=check,
        unchecked=unchecked,
        context=tuple(w.lower() for w in table.texts("context")),
        wide=wide,
        samples=table.flag("samples"),
        digits=digits_held(table.text("pattern")),
        ways=ways_in(table.text("pattern")),
        unless=tuple(w.lower() for w in table.texts("unless")),
        confidence=confidence,
        checked=table.number("checked", max(confidence, 990), 1000),
        source=table.text("source"),
        positive=positive,
        negative=table.texts("negative"),
    )


def _read_named(table: _Table) -> Named:
    if not table.texts("positive"):
        raise table.error("a rule needs a positive example")
    return Named(
        id=table.text("id", form=_ID),
        type=table.text("type", form=_TYPE),
        severity=_enum(table, "severity", Severity),
        key=compile_pattern(table.text("key"), flags=re.IGNORECASE),
        value=compile_pattern(table.text("value")),
        confidence=table.number("confidence", 850, 1000),
        strict=table.flag("strict"),
        source=table.text("source"),
        positive=table.texts("positive"),
        negative=table.texts("negative"),
    )
