"""Tests that a bundle carries: facts of one object, and the decision they must lead to.

```toml
[[test]]
name = "a key in a prompt is redacted"
object = { kind = "text", channel = "user", findings = [{ type = "aws_access_key_id", category = "secret" }]
} expect = { disposition = "allow_redacted", reason_codes = ["secret.redacted"], mask =
["aws_access_key_id"] } ```
"""

from __future__ import annotations

from dataclasses import dataclass

from gateway.context.decisions import FindingFacts, ObjectFacts, RequestFacts
from gateway.context.findings import Category, Severity
from gateway.context.objects import Channel, LeafRole, ObjectKind
from gateway.contract import ContextDispositionV1
from gateway.policy.conditions import (
    CLASSIFICATIONS,
    COVERAGES,
    LOCALITIES,
    MAX_BYTES,
    MODES,
    PRINCIPAL_KINDS,
    PROVENANCES,
    ROUTES,
)
from gateway.policy.reading import Table

DEFAULT_TIME = "2027-01-15T12:00:00Z"
"""A Friday noon: what tests that do not name a time are run at."""


@dataclass(frozen=True, slots=True)
class Trial:
    """One test of a bundle; what `expect` does not name is not looked at. `modes` are those it is run in."""

    name: str
    place: str
    modes: tuple[str, ...]
    request: RequestFacts
    object: ObjectFacts
    disposition: ContextDispositionV1
    reason_codes: tuple[str, ...] | None
    mask: frozenset[str] | None
    rules: tuple[str, ...] | None


def read_trial(table: Table) -> Trial:
    """Read one `[[test]]`; problems are noted in the table's collection."""
    name = table.text("name", required=True)
    modes = table.choices("mode", MODES) or ("governed",)
    request = _read_request(table.table("request"))
    target = table.table("object")
    if target is None:
        table.wrong("object", "required")
    expect = table.table("expect")
    if expect is None:
        table.wrong("expect", "required")
        expect = Table({"disposition": "deny"}, table.place, table.problems)
    wanted = expect.choice("disposition", tuple(ContextDispositionV1), required=True)
    codes, mask, rules = (_exactly(expect, key) for key in ("reason_codes", "mask", "rules"))
    expect.end()
    table.end()
    return Trial(
        name,
        table.place,
        modes,
        request,
        _read_object(target) if target else ObjectFacts("", "text", "user", 0),
        ContextDispositionV1(wanted or "deny"),
        None if codes is None else tuple(sorted(codes)),
        None if mask is None else frozenset(mask),
        None if rules is None else tuple(sorted(rules)),
    )


def _exactly(table: Table, key: str) -> tuple[str, ...] | None:
    """Like `texts`, but an empty list is legal here and means: none; None when absent."""
    if key not in table:
        return None
    value = table.take(key)
    if not isinstance(value, list) or not all(isinstance(v, str) for v in value):
        table.wrong(key, "must be a list of strings")
        return None
    return tuple(value)


def _read_request(table: Table | None) -> RequestFacts:
    if table is None:
        return RequestFacts("test", time=DEFAULT_TIME)
    facts = RequestFacts(
        project=table.text("project") or "test",
        principal=table.text("principal") or "unknown",
        principal_kind=table.choice("principal_kind", PRINCIPAL_KINDS) or "unknown",
        roles=table.texts("roles"),
        team=table.text("team"),
        provider=table.text("provider"),
        model=table.text("model"),
        locality=table.choice("locality", LOCALITIES) or "remote",
        region=table.text("region"),
        organization_managed=bool(table.flag("organization_managed")),
        route=table.choice("route", ROUTES) or "proxy",
        time=time.isoformat() if (time := table.instant("time")) else DEFAULT_TIME,
    )
    table.end()
    return facts


def _read_object(table: Table) -> ObjectFacts:
    rewritable = table.flag("rewritable")
    provenance = table.choice("provenance", PROVENANCES)
    size = table.whole("bytes", 0, MAX_BYTES)
    facts = ObjectFacts(
        pointer=table.text("pointer"),
        kind=table.choice("kind", tuple(ObjectKind), required=True),
        channel=table.choice("channel", tuple(Channel)) or "user",
        bytes=100 if size is None else size,
        findings=tuple(_read_finding(t) for t in table.tables("findings")),
        coverage=table.choice("coverage", COVERAGES) or "complete",
        coverage_reason=table.text("coverage_reason"),
        classification=table.choice("classification", CLASSIFICATIONS),
        provenance="" if provenance == "unknown" else provenance,
        rewritable=True if rewritable is None else rewritable,
    )
    table.end()
    return facts


def _read_finding(table: Table) -> FindingFacts:
    confidence, count = table.whole("confidence_milli", 0, 1000), table.whole("count", 1, 1_000_000)
    facts = FindingFacts(
        type=table.text("type", required=True),
        category=table.choice("category", tuple(Category), required=True),
        severity=table.choice("severity", tuple(Severity)) or "high",
        confidence_milli=900 if confidence is None else confidence,
        count=count or 1,
        role=table.choice("role", tuple(LeafRole)) or "text",
    )
    table.end()
    return facts
