"""The closed set of conditions a rule can name, and their compiled forms.

Conditions come in three groups because they are known at three moments: of the request (once a request), of
the object (once an object), of a finding (only where there is one). Within a condition any value suffices;
all conditions of a table must hold. A finding condition holds where some findings satisfy every finding
condition of the rule at once, their counts added up. Only lower bounds exist for severity, confidence and
count, and `unless` knows no finding conditions: otherwise one more finding could switch a rule off and let
more bytes out.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from datetime import UTC, datetime, time

from gateway.context.decisions import FindingFacts, ObjectFacts, RequestFacts
from gateway.context.findings import Category, Severity
from gateway.context.objects import Channel, LeafRole, ObjectKind
from gateway.contract import PrincipalKindV1
from gateway.errors import PolicyError
from gateway.policy.globs import MAX_WILDCARDS, matcher, wildcards
from gateway.policy.reading import Table

MODES = ("developer", "governed", "sovereign")
CLASSIFICATIONS = ("public", "internal", "confidential", "restricted")
COVERAGES = ("complete", "partial", "unsupported", "failed", "not_required")
PROVENANCES = ("own", "foreign", "linked", "unknown")
LOCALITIES = ("local", "remote", "unknown")
TRUSTS = ("untrusted", "unknown", "internal", "trusted")
PRINCIPAL_KINDS = tuple(PrincipalKindV1)
ROUTES = ("mcp", "cli", "hook", "tool_session", "engine_interface", "sdk", "proxy", "host_egress")
DAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
MAX_BYTES = 1 << 40

_PLAIN_REQUEST = (
    "principal",
    "principal_kind",
    "project",
    "team",
    "provider",
    "model",
    "locality",
    "region",
    "route",
)

type RequestTest = Callable[[RequestFacts], bool]
type ObjectTest = Callable[[ObjectFacts], bool]
type FindingTest = Callable[[FindingFacts], bool]


@dataclass(frozen=True, slots=True)
class Window:
    """A time window in UTC; `start` after `end` runs over midnight; the day is that of the instant."""

    start: time | None = None
    end: time | None = None
    days: tuple[str, ...] = ()
    not_before: datetime | None = None
    not_after: datetime | None = None

    def holds(self, now: str) -> bool:
        """Whether an RFC 3339 instant lies in the window (start included, end not).

        Raises:
            PolicyError: `policy.no_time`, the request carries no usable time; the rule then denies.
        """
        try:
            at = datetime.fromisoformat(now).astimezone(UTC)
        except ValueError as error:
            raise PolicyError("policy.no_time", "a time window needs the time of the request") from error
        if self.days and DAYS[at.weekday()] not in self.days:
            return False
        if (self.not_before and at < self.not_before) or (self.not_after and at >= self.not_after):
            return False
        start, end, clock = self.start or time.min, self.end, at.time()
        if end is None:
            return clock >= start
        return start <= clock < end if start <= end else clock >= start or clock < end


@dataclass(frozen=True, slots=True)
class RequestConditions:
    """Conditions on the request; the empty tuple and None ask nothing. Names and models may be globs."""

    principal: tuple[str, ...] = ()
    principal_kind: tuple[str, ...] = ()
    role: tuple[str, ...] = ()
    project: tuple[str, ...] = ()
    team: tuple[str, ...] = ()
    provider: tuple[str, ...] = ()
    model: tuple[str, ...] = ()
    locality: tuple[str, ...] = ()
    region: tuple[str, ...] = ()
    organization_managed: bool | None = None
    route: tuple[str, ...] = ()
    time: Window | None = None

    def tests(self) -> tuple[RequestTest, ...]:
        """One predicate a condition that asks something."""
        found = [_on_request(n, matcher(p)) for n in _PLAIN_REQUEST if (p := getattr(self, n))]
        if self.role:
            wanted = frozenset(self.role)
            found.append(lambda r: not wanted.isdisjoint(r.roles))
        if self.organization_managed is not None:
            managed = self.organization_managed
            found.append(lambda r: r.organization_managed is managed)
        if self.time:
            window = self.time
            found.append(lambda r: window.holds(r.time))
        return tuple(found)


@dataclass(frozen=True, slots=True)
class ObjectConditions:
    """Conditions on the object."""

    kind: tuple[str, ...] = ()
    channel: tuple[str, ...] = ()
    classification: tuple[str, ...] = ()
    provenance: tuple[str, ...] = ()
    trust: tuple[str, ...] = ()
    coverage: tuple[str, ...] = ()
    coverage_reason: tuple[str, ...] = ()
    pointer: tuple[str, ...] = ()
    bytes_min: int | None = None
    bytes_max: int | None = None
    rewritable: bool | None = None

    def tests(self, mode: str) -> tuple[ObjectTest, ...]:
        """One predicate a condition that asks something, for a gateway in `mode`."""
        found = [
            _on_object(name, frozenset(allowed).__contains__)
            for name in ("kind", "channel", "coverage")
            if (allowed := getattr(self, name))
        ]
        if self.classification:
            classes, default = frozenset(self.classification), unclassified(mode)
            found.append(lambda o: (o.classification or default) in classes)
        if self.provenance:
            origins = frozenset(self.provenance)
            found.append(lambda o: (o.provenance or "unknown") in origins)
        if self.trust:
            levels = frozenset(self.trust)
            found.append(lambda o: trust_of(o) in levels)
        if self.coverage_reason:
            found.append(_on_object("coverage_reason", matcher(self.coverage_reason)))
        if self.pointer:
            found.append(_on_object("pointer", matcher(self.pointer, separator="/")))
        if self.bytes_min is not None or self.bytes_max is not None:
            low, high = self.bytes_min or 0, MAX_BYTES if self.bytes_max is None else self.bytes_max
            found.append(lambda o: low <= o.bytes <= high)
        if self.rewritable is not None:
            wanted = self.rewritable
            found.append(lambda o: o.rewritable is wanted)
        return tuple(found)


@dataclass(frozen=True, slots=True)
class FindingConditions:
    """Conditions on findings."""

    type: tuple[str, ...] = ()
    not_type: tuple[str, ...] = ()
    category: tuple[str, ...] = ()
    leaf_role: tuple[str, ...] = ()
    severity_min: str = ""
    confidence_min: int | None = None
    count_min: int | None = None

    @property
    def asks(self) -> bool:
        """Whether any finding is needed for the rule to hold."""
        return any(getattr(self, f.name) not in {(), "", None} for f in fields(self))

    def tests(self) -> tuple[FindingTest, ...]:
        """One predicate a condition on a single finding; `count_min` is judged on the sum by the caller."""
        found: list[FindingTest] = []
        if self.type:
            types = matcher(self.type)
            found.append(lambda f: types(f.type))
        if self.not_type:
            others = matcher(self.not_type)
            found.append(lambda f: not others(f.type))
        if self.category:
            categories = frozenset(self.category)
            found.append(lambda f: f.category in categories)
        if self.leaf_role:
            roles = frozenset(self.leaf_role)
            found.append(lambda f: f.role in roles)
        if self.severity_min:
            floor = Severity(self.severity_min).rank
            found.append(lambda f: Severity(f.severity).rank >= floor)
        if self.confidence_min is not None:
            least = self.confidence_min
            found.append(lambda f: f.confidence_milli >= least)
        return tuple(found)


def unclassified(mode: str) -> str:
    """The classification of content that carries none (contract.md §3.3)."""
    return "public" if mode == "developer" else "internal"


def trust_of(facts: ObjectFacts) -> str:
    """How far a text can be trusted not to steer an agent (contract.md §3.3, TrustLevelV1), by who it comes from.

    System prompts are trusted, what a person says is internal, and so is what a tool found in the project's own files;
    everything else that a tool brought, and all that belongs to another project, is untrusted.
    """
    if facts.provenance == "foreign":
        return "untrusted"
    if facts.channel == Channel.TOOL:
        return "internal" if facts.provenance in {"own", "linked"} else "untrusted"
    return _TRUST.get(facts.channel, "unknown")


_TRUST: Mapping[str, str] = {Channel.SYSTEM: "trusted", Channel.USER: "internal"}


def _on_request(name: str, test: Callable[[str], bool]) -> RequestTest:
    return lambda r: test(getattr(r, name))


def _on_object(name: str, test: Callable[[str], bool]) -> ObjectTest:
    return lambda o: test(getattr(o, name))


@dataclass(frozen=True, slots=True)
class Conditions:
    """All conditions of one `when` or `unless` table; the empty one always holds."""

    modes: tuple[str, ...] = ()
    request: RequestConditions = RequestConditions()
    object: ObjectConditions = ObjectConditions()
    finding: FindingConditions = FindingConditions()


def read_conditions(table: Table, *, findings: bool = True) -> Conditions:
    """Read a `when` or `unless` table; `findings` says whether conditions on findings are legal there."""
    modes = table.choices("mode", MODES)
    request, target = _read_request(table), _read_object(table)
    found = FindingConditions()
    if findings:
        found = _read_finding(table)
    else:
        for field in fields(FindingConditions):
            if field.name in table:
                table.wrong(field.name, "a finding may not switch a rule off; use `when` or an exception")
                table.take(field.name)
    table.end()
    return Conditions(modes, request, target, found)


def _read_request(table: Table) -> RequestConditions:
    return RequestConditions(
        principal=_globs(table, "principal"),
        principal_kind=table.choices("principal_kind", PRINCIPAL_KINDS),
        role=table.texts("role"),
        project=_globs(table, "project"),
        team=_globs(table, "team"),
        provider=_globs(table, "provider"),
        model=_globs(table, "model"),
        locality=table.choices("locality", LOCALITIES),
        region=_globs(table, "region"),
        organization_managed=table.flag("organization_managed"),
        route=table.choices("route", ROUTES),
        time=_read_window(table),
    )


def _read_object(table: Table) -> ObjectConditions:
    low, high = table.whole("bytes_min", 0, MAX_BYTES), table.whole("bytes_max", 0, MAX_BYTES)
    if low is not None and high is not None and low > high:
        table.wrong("bytes_min", "is more than bytes_max")
    return ObjectConditions(
        kind=table.choices("kind", tuple(ObjectKind)),
        channel=table.choices("channel", tuple(Channel)),
        classification=table.choices("classification", CLASSIFICATIONS),
        provenance=table.choices("provenance", PROVENANCES),
        trust=table.choices("trust", TRUSTS),
        coverage=table.choices("coverage", COVERAGES),
        coverage_reason=_globs(table, "coverage_reason"),
        pointer=_globs(table, "pointer"),
        bytes_min=low,
        bytes_max=high,
        rewritable=table.flag("rewritable"),
    )


def _read_finding(table: Table) -> FindingConditions:
    return FindingConditions(
        type=_globs(table, "type"),
        not_type=_globs(table, "not_type"),
        category=table.choices("category", tuple(Category)),
        leaf_role=table.choices("leaf_role", tuple(LeafRole)),
        severity_min=table.choice("severity_min", tuple(Severity)),
        confidence_min=table.whole("confidence_min", 0, 1000),
        count_min=table.whole("count_min", 1, 1_000_000),
    )


def _read_window(table: Table) -> Window | None:
    inner = table.table("time")
    if inner is None:
        return None
    window = Window(
        inner.clock("from"),
        inner.clock("to"),
        inner.choices("days", DAYS),
        inner.instant("not_before"),
        inner.instant("not_after"),
    )
    inner.end()
    if window == Window():
        table.wrong("time", "names no bound")
    return window


def _globs(table: Table, key: str) -> tuple[str, ...]:
    patterns = table.texts(key)
    for pattern in patterns:
        if wildcards(pattern) > MAX_WILDCARDS:
            table.wrong(key, f"more than {MAX_WILDCARDS} wildcards in one pattern")
    return patterns
