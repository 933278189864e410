"""The evidence of one request while it is made: what is known of the request, and the records that say it."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache, partial
from typing import Any

from gateway.classify.accounting import needless_escapes, opaque_bytes
from gateway.classify.documents import JsonDocument
from gateway.classify.forms import FixedDocument
from gateway.classify.objects import ContextObject
from gateway.context.decisions import RequestFacts
from gateway.context.objects import ObjectKind
from gateway.contract import DestinationV1, EgressAdmissionReceiptV1
from gateway.contract.canonical import canonical_json
from gateway.contract.fragments import join_evaluation, join_receipt
from gateway.egress.exchange import Exchange
from gateway.egress.holding import Holder
from gateway.egress.reading import ReadRequest
from gateway.egress.records import (
    UNCOUNTED,
    FragmentCache,
    Fragments,
    receipt_head,
    receipt_outcome,
    record,
    source_candidates,
)
from gateway.evidence.disclosure import Commitments
from gateway.ports import (
    Accounts,
    ConnectionEvent,
    Detour,
    OutboundRequest,
    Peer,
    Policy,
    ProviderAdapter,
    Record,
    Refusal,
    RequestRow,
    Ruling,
    Standing,
)
from gateway.providers.oauth import OAuthTokens

MAX_MODEL = 128
EXCEPTIONS = ("exception:", "break-glass:")
"""How rules of a decision begin that lifted others (gateway.policy.compiled)."""


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What stands in every evaluation record of this process."""

    detectors: tuple[str, ...]
    engine: str
    fragments: FragmentCache
    new_id: Callable[[], str]  # 32 hexadecimal digits, never the same twice
    digest_key: Callable[[str], bytes]  # of a project: keys the digests of sensitive objects
    url: Callable[[OutboundRequest], str]  # of the upstream, without path
    # Of a project: hides decisions in the log. None: no commitment.
    salt_key: Callable[[str], bytes] | None = None
    commitments: Commitments = field(default_factory=Commitments)

    def connection(
        self, event: ConnectionEvent, adapter: ProviderAdapter, policy: Policy, time: str
    ) -> tuple[list[Record], RequestRow | None]:
        """The record of a connection without a readable request; a refused one gets an empty receipt as well."""
        body = {
            "event": "connection",
            "time": time,
            "project": event.peer.project,
            "host": event.host[:253],
            "port": event.port,
            "action": event.action,
            "reason_code": event.reason_code,
            "bytes_up": event.bytes_up,
            "bytes_down": event.bytes_down,
        }
        noted = record("event", (canonical_json(body),))
        if event.action != "refused":
            return [noted], None
        request = OutboundRequest(
            self.new_id(), event.peer, "CONNECT", "https", event.host, event.port, "/", (), b""
        )
        dossier = Dossier(
            request=request,
            adapter=adapter,
            policy=policy,
            surroundings=self,
            time=time,
            started=0,
            monotonic_us=lambda: 0,
        )
        evidence = dossier.evidence([], (event.reason_code,), "refused", None, 0)
        lineage, state = evidence.exchange().lineage()
        row = replace(evidence.row, lineage=lineage.digest, receipt_state=state)
        return [noted, *evidence.records, lineage], row


@dataclass(frozen=True, slots=True)
class EvidenceSet:
    """Records to store before anything leaves, the index row, and what the lineage will need."""

    records: tuple[Record, ...]
    row: RequestRow
    request: dict[str, Any]
    outcome: str
    outcomes: tuple[bytes, ...] = field(repr=False)
    held_back: bool
    admission: EgressAdmissionReceiptV1 | None = None
    candidates: Sequence[dict[str, Any]] = ()

    def exchange(self) -> Exchange:
        """The exchange that this evidence opens."""
        return Exchange(
            row=self.row,
            request=self.request,
            outcome=self.outcome,
            outcomes=self.outcomes,
            held_back=self.held_back,
            admission=self.admission,
            candidates=self.candidates,
        )


@dataclass(slots=True)
class Dossier:
    """One request's facts, in the words of the contract."""

    request: OutboundRequest
    adapter: ProviderAdapter
    policy: Policy
    surroundings: Surroundings
    time: str
    started: int
    monotonic_us: Callable[[], int]
    provider: str = ""
    model: str = ""
    body_bytes: int = 0
    escapes: Callable[[], int] = field(default=lambda: 0, repr=False)  # bytes that they take without need
    read_whole: bool = False
    rulings: list[Ruling] = field(default_factory=list)  # on what the request holds of other projects
    standing: Standing = field(default_factory=Standing)  # of its account at the provider
    detour: Detour | None = None
    shadow: tuple[str, ...] = ()  # what would have refused the whole request

    def __post_init__(self) -> None:
        self.body_bytes = len(self.request.body)
        path = self.request.target.partition("?")[0]
        self.provider, _ = self.adapter.destination(self.request.host, path, None)

    def read(self, read: ReadRequest, request: OutboundRequest) -> None:
        """Take over what the body says of itself: its size and the model it names."""
        self.body_bytes, self.read_whole = len(read.body), True
        self.escapes = partial(needless_escapes, read.body, form=isinstance(read.document, FixedDocument))
        if isinstance(read.document, JsonDocument) and read.document.objects:
            value = next(
                (o.block.value for o in read.document.objects if o.block.kind is ObjectKind.PARAMETERS), None
            )
            path = request.target.partition("?")[0]
            self.provider, self.model = read.adapter.destination(request.host, path, value)
        if self.detour is not None:
            self.provider, self.model = self.detour.name, self.detour.model

    def turn_off(self, place: Detour) -> None:
        """The request goes to a local model: its account at the provider is not used, and proves nothing there."""
        self.detour, self.standing = place, Standing()

    def stand(self, accounts: Accounts) -> None:
        """Look whose account at the provider the request uses; in shadow enforcement any may be used, which is said."""
        login = self.adapter.id == OAuthTokens.id
        self.standing = accounts.standing(self.request, self.provider, login=login)
        refusal = self.standing.refusal
        if refusal is not None and self.policy.enforcement == "shadow":
            self.shadow = ("shadow.would_deny", *refusal.reason_codes)

    @property
    def refusal(self) -> Refusal | None:
        """Why the request is refused for its account."""
        return None if self.policy.enforcement == "shadow" else self.standing.refusal

    @property
    def facts(self) -> RequestFacts:
        """What rules may know of the request."""
        peer = self.request.peer
        return RequestFacts(
            project=peer.project,
            principal=peer.principal,
            principal_kind=peer.principal_kind,
            roles=peer.roles,
            team=peer.team,
            classification=peer.classification,
            provider=self.provider,
            model=self.model if _is_plain(self.model) else "",
            locality=str(self._destination(()).locality),
            region=self.standing.region,
            organization_managed=self.standing.organization_managed,
            mode=self.policy.mode,
            time=self.time,
        )

    @property
    def holder(self) -> Holder:
        """What names the objects of this request that wait for a person."""
        key = self.surroundings.digest_key(self.request.peer.project)
        host = self.request.host if self.detour is None else self.detour.host
        names = (self.provider, host, self.standing.account_ref)
        return Holder(key, "/".join(name for name in names if name), self.policy.digest)

    def _destination(self, objects: Sequence[ContextObject]) -> DestinationV1:
        clear = all(
            not item.scanned.findings and item.scanned.coverage != "failed"
            for item in objects
            if item.block.kind in (ObjectKind.PARAMETERS, ObjectKind.OPAQUE, ObjectKind.TARGET)
        )
        named = clear and _is_plain(self.model)
        url = self.surroundings.url(self.request) if self.detour is None else self.detour.url
        return _destination_of(url, self.provider, self.model if named else None, self.standing)

    def evidence(
        self,
        objects: Sequence[ContextObject],
        codes: Sequence[str],
        effect: str,
        request_digest: str | None,
        request_bytes: int,
    ) -> EvidenceSet:
        """Receipt, evaluation record and, where something may leave (`request_digest`), the admission."""
        key = self.surroundings.digest_key(self.request.peer.project)
        fragments = [self.surroundings.fragments.of(item, key) for item in objects]
        outcome = receipt_outcome(objects, delivered=request_digest is not None)
        destination = self._destination(objects).model_dump()
        receipt = self._receipt(objects, fragments, outcome, destination, request_digest, request_bytes)
        evaluation = self._evaluation(objects, fragments, receipt, effect, codes, destination)
        attempts = [record("boundary_event", (r.audit,)) for r in self.rulings if r.audit]
        records = [receipt, evaluation, *self._committed(fragments), *attempts]
        candidates = source_candidates(self.rulings)
        admission, admitted = None, None
        if request_digest is not None:
            admitted = EgressAdmissionReceiptV1.from_value(
                {
                    "schema_version": 1,
                    "decision_receipt": receipt.digest,
                    "request_digest": request_digest,
                    "request_bytes": request_bytes,
                    "destination": destination,
                    "state": "prepared",
                }
            )
            admission = record("admission", (admitted.to_json(),))
            records.append(admission)
        row = RequestRow(
            request_id=self.request.request_id,
            receipt=receipt.digest,
            time=self.time,
            project=self.request.peer.project,
            effect=effect,
            receipt_state="prepared" if outcome == "delivered" else "rejected",
            evaluation=evaluation.digest,
            admission=admission.digest if admission is not None else None,
            provider=self.provider,
        )
        held_back = (
            any(not each.delivers_content for each in {item.decision.disposition for item in objects})
            or any(item.scanned.coverage not in UNCOUNTED for item in objects)
            or any(c["validity"] != "valid" for c in candidates)
        )
        request = {
            "request_id": self.request.request_id,
            "principal": _principal(self.request.peer),
            "route": "proxy",
            "destination": destination,
        }
        outcomes = tuple(f.outcome for f in fragments)
        return EvidenceSet(tuple(records), row, request, outcome, outcomes, held_back, admitted, candidates)

    def _committed(self, fragments: Sequence[Fragments]) -> list[Record]:
        """The record by which one decision can be shown later without the others."""
        around = self.surroundings
        if around.salt_key is None or not fragments:
            return []
        pairs = [(f.decision, f.evaluation) for f in fragments]
        return [around.commitments.record(around.salt_key(self.request.peer.project), pairs)]

    def _receipt(
        self,
        objects: Sequence[ContextObject],
        fragments: Sequence[Fragments],
        outcome: str,
        destination: dict[str, Any],
        request_digest: str | None,
        request_bytes: int,
    ) -> Record:
        head = receipt_head(
            objects,
            outcome,
            request_digest,
            {
                "receipt_id": f"rcpt-{self.request.request_id}",
                "mode": self.policy.mode,
                "principal": _principal(self.request.peer),
                "destination": destination,
                "policy": _policy_ref(self.policy),
                "tokens": {"original": self.body_bytes // 4, "delivered": request_bytes // 4},
                "duration_us": max(self.monotonic_us() - self.started, 0),
            },
        )
        return record("receipt", join_receipt(head, [f.decision for f in fragments]))

    def _evaluation(
        self,
        objects: Sequence[ContextObject],
        fragments: Sequence[Fragments],
        receipt: Record,
        effect: str,
        codes: Sequence[str],
        destination: dict[str, Any],
    ) -> Record:
        peer, around = self.request.peer, self.surroundings
        opaque = opaque_bytes(objects, self.body_bytes, self.escapes) if self.read_whole else 0
        refused = 0 if self.read_whole else self.body_bytes
        head: dict[str, Any] = {
            "schema_version": 1,
            "request_id": self.request.request_id,
            "time": self.time,
            "receipt": receipt.digest,
            "project": peer.project,
            "principal": _principal(peer),
            "roles": list(peer.roles),
            "effect": effect,
            "route": "proxy",
            "transport": self.request.transport,
            "provider": destination["provider"],
            "locality": destination["locality"],
            "mode": self.policy.mode,
            "bundles": [_policy_ref(self.policy)],
            "enforcement": self.policy.enforcement,
            "shadow_reason_codes": sorted(
                {*self.shadow, *(c for item in objects for c in item.decision.shadow)}
            )[:32],
            "detectors": list(around.detectors),
            "exceptions_used": _exceptions(objects),
            "engine": around.engine,
            "evidence_level": "not_attempted",
            "coverage": {
                "bytes_total": self.body_bytes,
                "bytes_inspected": self.body_bytes - opaque - refused,
                "bytes_opaque": opaque,
                "bytes_refused": refused,
            },
            "reason_codes": sorted(set(codes))[:32],
        }
        head["digest_key"] = f"k-{hashlib.sha256(around.digest_key(peer.project)).hexdigest()[:16]}"
        head["dialect"] = {"id": self.adapter.id, "version": self.adapter.version}
        head["organization_managed"] = destination["organization_managed"]
        optional = {
            "model": destination.get("model"),
            "team": peer.team,
            "region": destination.get("region"),
        }
        head.update({name: value for name, value in optional.items() if value})
        return record("evaluation", join_evaluation(head, [f.evaluation for f in fragments]))


def _exceptions(objects: Sequence[ContextObject]) -> list[str]:
    """The exceptions that any decision of a request rests on, break-glass among them."""
    used = {rule for item in objects for rule in item.decision.rules if rule.startswith(EXCEPTIONS)}
    return sorted(used)[:256]


def _is_plain(model: str) -> bool:
    """Whether the name of a model can be written down: rules see what the record says, no more and no less."""
    return 0 < len(model) <= MAX_MODEL and all(c.isalnum() or c in "-._:/@" for c in model)


@lru_cache(maxsize=4096)
def _destination_of(url: str, provider: str, model: str | None, standing: Standing) -> DestinationV1:
    """The same few destinations serve every request, and a model of the contract takes time to make."""
    return DestinationV1.for_url(
        url,
        provider,
        model=model,
        organization_managed=standing.organization_managed,
        account_ref=standing.account_ref or None,
        region=standing.region or None,
    )


def _principal(peer: Peer) -> dict[str, Any]:
    if peer.principal_kind == "unknown" or peer.principal == "unknown":
        return {"kind": "unknown"}
    return {"kind": peer.principal_kind, "id": peer.principal}


def _policy_ref(policy: Policy) -> dict[str, Any]:
    return {"id": policy.id, "version": policy.version, "digest": policy.digest}
