"""Hypothesis strategies of valid wire records, for every room that reads or writes them.

`RECORDS` maps each public record to a strategy of its instances; the others are its parts.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Any

from hypothesis import strategies as st

from gateway import contract as c
from gateway.contract.record import Record

digests = st.integers(0, 2**256 - 1).map(lambda n: f"sha256:{n:064x}")
reason_codes = st.from_regex(r"[a-z][a-z0-9_.]{2,20}", fullmatch=True)
names = st.from_regex(r"[a-z0-9][a-z0-9_.:-]{0,10}", fullmatch=True)
projects = st.from_regex(r"[a-z0-9][a-z0-9._-]{0,10}", fullmatch=True)
references = st.text(st.characters(exclude_categories=("Cc", "Cs")), min_size=1, max_size=24).filter(
    lambda text: bool(text.strip())
)
versions = st.from_regex(r"(0|[1-9][0-9]?)\.(0|[1-9][0-9]?)\.0(-rc\.[1-9])?(\+b)?", fullmatch=True)
instants = st.datetimes().map(lambda moment: moment.isoformat() + "Z")
u32 = st.integers(0, 2**32 - 1)
u64 = st.integers(0, 2**64 - 1)
milli = st.integers(0, 1000)


def member[E: StrEnum](kind: type[E]) -> st.SearchStrategy[E]:
    return st.sampled_from(list(kind))


def maybe(strategy: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.none() | strategy


def some(strategy: st.SearchStrategy[Any], size: int = 3) -> st.SearchStrategy[tuple[Any, ...]]:
    return st.lists(strategy, max_size=size).map(tuple)


def _reasons(optional: bool) -> st.SearchStrategy[tuple[str, ...]]:
    return st.lists(reason_codes, min_size=0 if optional else 1, max_size=3).map(tuple)


principals = st.just(c.PrincipalV1.unknown()) | st.builds(
    c.PrincipalV1,
    kind=st.sampled_from([k for k in c.PrincipalKindV1 if k is not c.PrincipalKindV1.UNKNOWN]),
    id=references,
)
destinations = st.builds(
    c.DestinationV1,
    provider=references,
    model=maybe(references),
    locality=member(c.DestinationLocalityV1),
    organization_managed=st.booleans(),
    account_ref=maybe(references),
    region=maybe(references),
)
policies = st.builds(c.PolicyRefV1, id=references, version=maybe(versions), digest=digests)
sources = st.builds(c.SourceRefV1, kind=member(c.SourceKindV1), id=references)
detectors = st.builds(c.DetectorRefV1, id=references, version=versions)


@st.composite
def coverages(draw: st.DrawFn) -> c.DetectorCoverageV1:
    total = draw(u64)
    kind = draw(member(c.CoverageKindV1))
    if kind is c.CoverageKindV1.PARTIAL and total == 0:
        kind = c.CoverageKindV1.FAILED
    bounds = {c.CoverageKindV1.COMPLETE: (total, total), c.CoverageKindV1.PARTIAL: (0, max(total - 1, 0))}
    chunks = draw(u32)
    return c.DetectorCoverageV1(
        kind=kind,
        bytes_total=total,
        bytes_inspected=draw(st.integers(*bounds.get(kind, (0, total)))),
        chunks_total=chunks,
        chunks_inspected=draw(st.integers(0, chunks)),
        reason=draw(maybe(reason_codes)),
    )


@st.composite
def signals(draw: st.DrawFn) -> c.DetectorSignalV1:
    coverage = draw(coverages())
    finished = [c.DetectorStatusV1.COMPLETED, c.DetectorStatusV1.SKIPPED]
    complete = coverage.kind is c.CoverageKindV1.COMPLETE
    return c.DetectorSignalV1(
        detector=draw(detectors),
        category=draw(member(c.DetectorCategoryV1)),
        severity=draw(member(c.DetectorSeverityV1)),
        confidence_milli=draw(maybe(milli)),
        calibrated=draw(st.booleans()),
        evidence_count=draw(u32),
        coverage=coverage,
        status=draw(st.sampled_from(finished) if complete else member(c.DetectorStatusV1)),
        latency_us=draw(u64),
    )


@st.composite
def decisions(draw: st.DrawFn) -> c.ContextDecisionV1:
    disposition = draw(member(c.ContextDispositionV1))
    return c.ContextDecisionV1(
        object=draw(digests),
        disposition=disposition,
        reason_codes=draw(_reasons(disposition is c.ContextDispositionV1.ALLOW)),
        signals=draw(some(signals(), 1)),
        required_transformations=draw(some(member(c.TransformationKindV1), 2)),
    )


retention_counts = st.builds(
    c.RetentionCountsV1, retained=st.integers(0, 9), recoverable=st.integers(0, 9), lost=st.integers(0, 1)
)
retentions = st.builds(
    c.ContextRetentionV1,
    critical=retention_counts,
    important=retention_counts,
    lost_critical_kinds=st.sets(member(c.CriticalKindV1), max_size=2).map(
        lambda kinds: tuple(sorted(kinds, key=list(c.CriticalKindV1).index))
    ),
    critical_unchecked=st.booleans(),
    truncated=st.booleans(),
    secret_lines_withheld=u64,
)


@st.composite
def recoveries(draw: st.DrawFn) -> c.ContextRecoveryV1:
    verified, failures = draw(st.integers(0, 9)), draw(st.integers(0, 2))
    return c.ContextRecoveryV1(
        handles_emitted=verified + failures + draw(st.integers(0, 9)),
        handles_verified=verified,
        failures=failures,
        critical_failures=draw(st.integers(0, failures)),
    )


@st.composite
def qualities(draw: st.DrawFn) -> c.ContextQualitySectionV1:
    retention, recovery = draw(retentions), draw(maybe(recoveries()))
    critical, important = retention.critical, retention.important
    lost = retention.critical_unchecked or critical.lost > 0 or bool(retention.lost_critical_kinds)
    if lost or (recovery is not None and recovery.failures > 0):
        overall = c.QualityStateV1.FAIL
    elif critical.counted + important.counted > 0 or recovery is not None:
        overall = c.QualityStateV1.PASS
    else:
        overall = c.QualityStateV1.UNMEASURED
    return c.ContextQualitySectionV1(
        evidence_tier=draw(member(c.EvidenceTierV1)),
        retention=retention,
        recovery=recovery,
        task_quality="unmeasured",
        overall=overall,
    )


@st.composite
def source_counts(draw: st.DrawFn) -> c.SourceCountsV1:
    inspected = draw(u32)
    permitted = draw(st.integers(0, inspected))
    return c.SourceCountsV1(
        inspected=inspected,
        permitted=permitted,
        selected=draw(st.integers(0, permitted)),
        blocked=draw(st.integers(0, inspected - permitted)),
    )


security_counts = st.builds(
    c.SecurityCountsV1,
    redactions=u32,
    blocked_objects=u32,
    quarantined_objects=u32,
    injection_signals=u32,
    incomplete_coverage=u32,
)
token_accounts = st.builds(c.TokenAccountV1, original=u64, delivered=u64)


@st.composite
def receipts(draw: st.DrawFn) -> c.ContextDecisionReceiptV1:
    itemized = draw(some(decisions()))
    outcome = draw(member(c.DeliveryOutcomeV1))
    kinds = [decision.disposition for decision in itemized]
    return c.ContextDecisionReceiptV1(
        schema_version=1,
        receipt_id=draw(references),
        mode=draw(member(c.GatewayModeV1)),
        principal=draw(principals),
        task=draw(maybe(references)),
        destination=draw(destinations),
        policy=draw(maybe(policies)),
        sources=draw(source_counts()),
        decisions=itemized,
        security=draw(security_counts).replace(
            blocked_objects=kinds.count(c.ContextDispositionV1.DENY),
            quarantined_objects=kinds.count(c.ContextDispositionV1.QUARANTINE),
            incomplete_coverage=draw(st.integers(0, 1)),
        ),
        tokens=draw(token_accounts),
        final_context=draw(digests) if outcome is c.DeliveryOutcomeV1.DELIVERED else None,
        outcome=outcome,
        duration_us=draw(u64),
        quality=draw(maybe(qualities())),
    )


@st.composite
def candidates(draw: st.DrawFn) -> c.SourceCandidateV1:
    validity = draw(member(c.SourceValidityV1))
    valid = validity is c.SourceValidityV1.VALID
    return c.SourceCandidateV1(
        source=draw(sources),
        revision=draw(maybe(references)),
        acl_check=c.AclCheckV1.RECHECKED if valid else draw(member(c.AclCheckV1)),
        validity=validity,
    )


requests = st.builds(
    c.ContextRequestV1,
    request_id=references,
    principal=principals,
    purpose=maybe(references),
    source_scope=some(sources, 2),
    route=member(c.IntegrationRouteV1),
    destination=destinations,
)


@st.composite
def lineages_with_receipts(
    draw: st.DrawFn,
) -> tuple[c.ContextDecisionLineageV1, c.ContextDecisionReceiptV1]:
    receipt = draw(receipts())
    request = draw(requests).replace(principal=receipt.principal, destination=receipt.destination)
    admission = draw(maybe(digests))
    may_observe = admission is not None and request.route.observes_model_egress
    lineage = c.ContextDecisionLineageV1.for_receipt(
        request,
        draw(some(candidates(), 2)),
        receipt,
        draw(st.booleans()),
        admission,
        draw(st.lists(digests, max_size=3, unique=True)) if may_observe else (),
    )
    return lineage.replace(execution_receipt=draw(maybe(references))), receipt


lineages = lineages_with_receipts().map(lambda pair: pair[0])


@st.composite
def outcomes(draw: st.DrawFn) -> c.ObjectOutcomeV1:
    return c.ObjectOutcomeV1.from_decision(draw(decisions()))


@st.composite
def admissions(draw: st.DrawFn) -> c.EgressAdmissionReceiptV1:
    return c.EgressAdmissionReceiptV1(
        schema_version=1,
        decision_receipt=draw(digests),
        request_digest=draw(digests),
        request_bytes=draw(u64),
        destination=draw(destinations),
        state=draw(member(c.EgressAdmissionStateV1)),
    )


@st.composite
def host_reports(draw: st.DrawFn) -> c.EngineEgressHostReportRequestV1:
    transport = draw(member(c.EgressTransportV1))
    answered = draw(st.booleans())
    status = st.integers(100, 599)
    needed = transport is c.EgressTransportV1.HTTP
    return c.EngineEgressHostReportRequestV1(
        schema_version=1,
        admission_receipt_digest=draw(digests),
        attempt=draw(st.integers(1, 32)),
        transport=transport,
        result=c.EgressResultV1.RESPONSE_OBSERVED if answered else c.EgressResultV1.NO_RESPONSE_OBSERVED,
        http_status=draw(status if needed else maybe(status)) if answered else None,
        failure=None if answered else draw(member(c.EgressFailureV1)),
    )


observations = st.tuples(host_reports(), member(c.EgressObserverV1)).map(
    lambda pair: pair[0].observation().replace(observer=pair[1])
)
_words = st.text(st.characters(codec="utf-8"), max_size=5)
foreign_json = st.dictionaries(
    _words,
    st.recursive(
        st.none()
        | st.booleans()
        | _words
        | st.integers(0, 99)
        | st.floats(allow_nan=False, allow_infinity=False),
        lambda inner: st.lists(inner, max_size=2) | st.dictionaries(_words, inner, max_size=2),
        max_leaves=4,
    ),
    max_size=3,
)

engine_requests = st.builds(
    c.EngineEgressRequestV1,
    schema_version=st.just(1),
    provider=names,
    upstream_base=names,
    body=foreign_json,
)


@st.composite
def engine_responses(draw: st.DrawFn) -> c.EngineEgressResponseV1:
    disposition = draw(member(c.EngineEgressDispositionV1))
    refused = disposition is c.EngineEgressDispositionV1.REFUSED
    return c.EngineEgressResponseV1(
        schema_version=1,
        disposition=disposition,
        body=None if refused else draw(foreign_json),
        refusal=draw(reason_codes) if refused else None,
        classification=draw(maybe(member(c.ClassificationV1))),
        receipt=draw(maybe(receipts())),
    )


steps = st.builds(
    c.TransformationRecordV1,
    kind=member(c.TransformationKindV1),
    input=digests,
    output=digests,
    tokens_before=u64,
    tokens_after=u64,
    reason_codes=_reasons(optional=True),
)


@st.composite
def passports(draw: st.DrawFn) -> c.ContextObjectPassportV1:
    held = {(p.id, p.version is not None, p.version or "", p.digest): p for p in draw(some(policies))}
    constraints = draw(st.sets(member(c.DestinationConstraintV1)))
    return c.ContextObjectPassportV1(
        schema_version=1,
        object=draw(digests),
        source=draw(sources),
        principal=draw(principals),
        task=draw(maybe(references)),
        classification=draw(member(c.ClassificationV1)),
        trust=draw(member(c.TrustLevelV1)),
        policy_refs=tuple(held[key] for key in sorted(held)),
        risk_signals=draw(some(signals(), 1)),
        destination_constraints=tuple(k for k in c.DestinationConstraintV1 if k in constraints),
        tokens=draw(u64),
        bytes=draw(u64),
        lineage=draw(some(steps, 2)),
    )


boundary_policies = st.builds(
    c.BoundaryPolicy,
    cross_project_search=st.booleans(),
    cross_project_import=st.booleans(),
    audit_cross_access=st.booleans(),
    universal_gotchas_enabled=st.booleans(),
)
events = st.builds(
    c.CrossProjectEventV1,
    timestamp=instants,
    event_type=member(c.CrossProjectEventTypeV1),
    source_project_hash=references,
    target_project_hash=references,
    tool=references,
    action=references,
    facts_accessed=u64,
    allowed=st.booleans(),
    policy_reason=references,
)
dialects = st.builds(c.DialectRefV1, id=references, version=references)
findings = st.builds(
    c.EvaluationFindingV1,
    type=names,
    category=member(c.DetectorCategoryV1),
    severity=member(c.DetectorSeverityV1),
    confidence_milli=milli,
    count=u32,
    role=st.sampled_from(["text", "structural", "thinking"]),
)


@st.composite
def evaluation_objects(draw: st.DrawFn) -> c.EvaluationObjectV1:
    disposition = draw(member(c.ContextDispositionV1))
    return c.EvaluationObjectV1(
        pointer=draw(st.just("") | references.map(lambda text: f"/{text}")),
        kind=draw(names),
        channel=draw(names),
        digest=draw(digests),
        keyed=draw(st.booleans()),
        bytes=draw(u64),
        disposition=disposition,
        reason_codes=draw(_reasons(disposition is c.ContextDispositionV1.ALLOW)),
        findings=draw(some(findings, 2)),
        coverage=draw(member(c.CoverageKindV1)),
        rules=draw(some(references, 2)),
        coverage_reason=draw(maybe(reason_codes)),
        classification=draw(maybe(names)),
        provenance=draw(maybe(names)),
        rewritable=draw(st.booleans()),
    )


evaluation_coverages = st.tuples(*[st.integers(0, 2**40)] * 3).map(
    lambda parts: c.EvaluationCoverageV1(
        bytes_total=sum(parts), bytes_inspected=parts[0], bytes_opaque=parts[1], bytes_refused=parts[2]
    )
)
evaluation_responses = st.builds(
    c.EvaluationResponseV1,
    complete=st.booleans(),
    placeholders_restored=u32,
    restore_withheld=u32,
    usage=maybe(st.dictionaries(names, u64, max_size=2)),
    reason_codes=_reasons(optional=True),
)


@st.composite
def evaluations(draw: st.DrawFn) -> c.EvaluationRecordV1:
    objects = draw(some(evaluation_objects()))
    keyed = any(item.keyed for item in objects)
    return c.EvaluationRecordV1(
        schema_version=1,
        request_id=draw(references),
        time=draw(instants),
        receipt=draw(digests),
        project=draw(projects),
        team=draw(maybe(references)),
        principal=draw(principals),
        roles=draw(some(references, 2)),
        effect=draw(member(c.EffectV1)),
        route=draw(member(c.IntegrationRouteV1)),
        transport=draw(member(c.EgressTransportV1)),
        provider=draw(references),
        model=draw(maybe(references)),
        locality=draw(member(c.DestinationLocalityV1)),
        region=draw(maybe(references)),
        organization_managed=draw(st.booleans()),
        dialect=draw(maybe(dialects)),
        mode=draw(member(c.GatewayModeV1)),
        bundles=draw(some(policies, 2)),
        enforcement=draw(member(c.EnforcementV1)),
        shadow_reason_codes=draw(_reasons(optional=True)),
        detectors=draw(some(references, 2)),
        engine=draw(maybe(references)),
        plugins=draw(some(references, 2)),
        exceptions_used=draw(some(references, 2)),
        evidence_level=draw(member(c.EvidenceLevelV1)),
        conversation=draw(maybe(references)),
        digest_key=draw(references if keyed else maybe(references)),
        coverage=draw(evaluation_coverages),
        reason_codes=draw(_reasons(optional=True)),
        response=draw(maybe(evaluation_responses)),
        objects=objects,
    )


RECORDS: dict[type[Record], st.SearchStrategy[Any]] = {
    c.BoundaryPolicy: boundary_policies,
    c.ContextDecisionLineageV1: lineages,
    c.ContextDecisionReceiptV1: receipts(),
    c.ContextDecisionV1: decisions(),
    c.ContextObjectPassportV1: passports(),
    c.ContextQualitySectionV1: qualities(),
    c.ContextRecoveryV1: recoveries(),
    c.ContextRequestV1: requests,
    c.ContextRetentionV1: retentions,
    c.CrossProjectEventV1: events,
    c.DestinationV1: destinations,
    c.DetectorCoverageV1: coverages(),
    c.DetectorRefV1: detectors,
    c.DetectorSignalV1: signals(),
    c.DialectRefV1: dialects,
    c.EgressAdmissionReceiptV1: admissions(),
    c.EgressTransportObservationV1: observations,
    c.EngineEgressHostReportRequestV1: host_reports(),
    c.EngineEgressRequestV1: engine_requests,
    c.EngineEgressResponseV1: engine_responses(),
    c.EvaluationCoverageV1: evaluation_coverages,
    c.EvaluationFindingV1: findings,
    c.EvaluationObjectV1: evaluation_objects(),
    c.EvaluationRecordV1: evaluations(),
    c.EvaluationResponseV1: evaluation_responses,
    c.ObjectOutcomeV1: outcomes(),
    c.PolicyRefV1: policies,
    c.PrincipalV1: principals,
    c.RetentionCountsV1: retention_counts,
    c.SecurityCountsV1: security_counts,
    c.SourceCandidateV1: candidates(),
    c.SourceCountsV1: source_counts(),
    c.SourceRefV1: sources,
    c.TokenAccountV1: token_accounts,
    c.TransformationRecordV1: steps,
}
