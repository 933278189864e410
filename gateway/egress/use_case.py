"""The life of a request: evaluate, make the evidence durable, say what may leave; then record what became of it.

Closed first: every path that is not a finished evaluation with stored evidence ends in a refusal in the provider's own
shape. What cannot be stored does not leave.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from gateway.classify.answers import AnswerRestoration
from gateway.classify.conversing import Chains, Conversation
from gateway.classify.evaluate import Evaluation, Subject, evaluate
from gateway.classify.objects import ContextObject, ScanCache
from gateway.classify.placeholders import Placeholders
from gateway.classify.reading import Reader
from gateway.classify.remembering import put_nothing_aside
from gateway.classify.treatment import SIGNED, Transformers
from gateway.context.decisions import Decision, combine
from gateway.context.objects import Limits
from gateway.contract import ContextDispositionV1
from gateway.egress.accounts import AnyAccount
from gateway.egress.afterwards import Afterwards, way_back
from gateway.egress.aside import Aside, weight
from gateway.egress.conversations import Conversations
from gateway.egress.departure import Departure
from gateway.egress.detour import LocalModel, turns_off
from gateway.egress.dossier import Dossier, EvidenceSet, Surroundings
from gateway.egress.drive import Driver
from gateway.egress.exchange import Exchange
from gateway.egress.extracting import Extraction
from gateway.egress.holding import Holder, OpenGate
from gateway.egress.reading import ReadRequest
from gateway.egress.refusing import bare_refusal, effect_of, leading, read_by, reason, said, unread
from gateway.egress.resigning import NoResigning
from gateway.errors import BodyError, DetectorError, EvidenceError, GatewayError, PolicyError
from gateway.ports import (
    Accounts,
    Admitted,
    Clock,
    Ending,
    EvidenceStore,
    Gate,
    Hold,
    Holding,
    Kept,
    Meter,
    NativeAnswer,
    OutboundRequest,
    Ownership,
    Peer,
    Policy,
    ProviderAdapter,
    Refusal,
    Refused,
    Resigner,
    Scanner,
    ValueVault,
)
from gateway.providers.generic import Generic
from gateway.providers.websocket import spoken

_D = ContextDispositionV1
MAX_OPEN_EXCHANGES = 65_536


@dataclass(slots=True)
class Egress(Afterwards):
    """ports.UseCase. `find` gives the dialect of a host and path; `policy` the rules that hold now."""

    find: Callable[[str, str], ProviderAdapter]
    policy: Callable[[], Policy]
    scanner: Scanner
    store: EvidenceStore
    vault: ValueVault
    placeholders: Callable[[str], Placeholders]
    conversations: Conversations
    clock: Clock
    meter: Meter
    ownership: Ownership
    surroundings: Surroundings
    holding: Holding
    transformers: Transformers = field(default_factory=Transformers)
    gate: Gate = field(default_factory=OpenGate)
    accounts: Accounts = field(default_factory=AnyAccount)
    resigner: Resigner = field(default_factory=NoResigning)
    extraction: Extraction = field(default_factory=Extraction)
    trial: Callable[[], Policy | None] = lambda: None
    local_models: Mapping[str, LocalModel] = field(default_factory=dict)
    approval_wait_us: int = 0
    put_aside: Callable[[Peer, Sequence[ContextObject]], None] = put_nothing_aside
    limits: Limits = field(default_factory=Limits)
    deadline_us: int = 10_000_000
    cache: ScanCache = field(default_factory=ScanCache)
    chains: Chains = field(default_factory=Chains)
    aside: Aside = field(default_factory=Aside)
    _open: OrderedDict[str, Exchange] = field(default_factory=OrderedDict)

    # -- before anything leaves ------------------------------------------------------------------------------------

    async def handle(self, request: OutboundRequest) -> Admitted | Refused:
        """See ports.UseCase."""
        started = self.clock.monotonic_us()
        try:
            dossier = self._dossier(request, started)
        except Exception as error:  # noqa: BLE001 - without its facts a request can only be refused
            self.meter.fault(error)
            return bare_refusal(request)
        try:
            return await self._judge(request, dossier, started)
        except BodyError as error:
            return await self._refuse_whole(request, dossier, error.code, error.status)
        except EvidenceError as error:
            self.meter.failed_closed(error.code)
            return self._refused(request, dossier, ("evidence.unavailable",), 503)
        except DetectorError as error:
            late = self.clock.monotonic_us() - started >= self.deadline_us
            code, status = ("deadline.exceeded", 503) if late else (reason(error, "detector.failed"), 503)
            return await self._refuse_whole(request, dossier, code, status)
        except PolicyError:
            return await self._refuse_whole(request, dossier, "policy.rule_error", 400)
        except Exception as error:  # noqa: BLE001 - a fault of ours must end in a refusal, whatever it is
            self.meter.fault(error)
            return await self._refuse_whole(request, dossier, "gateway.error", 503)

    async def _judge(self, request: OutboundRequest, dossier: Dossier, started: int) -> Admitted | Refused:
        stopped = dossier.refusal or await self.gate.admits(request.peer, len(request.body))
        if stopped is not None:
            return await self._refuse_whole(request, dossier, stopped.reason_codes[0], stopped.status)
        until = self.clock.monotonic_us() + self.approval_wait_us
        while True:
            read, evaluation, holder = await self._evaluate(request, dossier, started)
            if turns_off(dossier, evaluation.objects, read, self.local_models):
                read, evaluation, holder = await self._evaluate(request, dossier, started)
            waiting = holder.holds(evaluation.objects, request.peer, dossier.time)
            if waiting:
                await self.holding.hold(waiting)
            names = [hold.id for hold in waiting if hold.kind == "approval"]
            left = until - self.clock.monotonic_us()
            if names and left > 0 and await self.holding.wait(names, left):
                started = self.clock.monotonic_us()  # the wait was the person's, not the evaluation's
            elif self.policy() is dossier.policy:
                break
            # What was decided under rules that hold no more is decided again: no request sees a mixture of two.
            dossier = self._dossier(request, started)
        self.put_aside(request.peer, evaluation.objects)
        stopped = self.gate.stopped(request.peer)
        if stopped is not None:
            return await self._refuse_whole(request, dossier, stopped.reason_codes[0], stopped.status)
        if not evaluation.delivered:
            return await self._refuse_evaluated(request, dossier, evaluation, waiting)
        return await self._admit(request, dossier, read, evaluation)

    async def _refuse_evaluated(
        self, request: OutboundRequest, dossier: Dossier, evaluation: Evaluation, holds: Sequence[Hold]
    ) -> Refused:
        """Refuse what was judged object by object, and remember it: the conversation may go on without it."""
        codes, told = evaluation.reason_codes, said(holds, evaluation.way_on)
        refused = await self._store_refusal(request, dossier, evaluation.objects, codes, 400, told=told)
        try:
            await self.conversations.refused(request.peer.project, evaluation.chain, evaluation.recalled)
        except EvidenceError as error:  # the refusal stands; the client may have to start a new conversation
            self.meter.failed_closed(error.code)
        return refused

    async def _evaluate(
        self, request: OutboundRequest, dossier: Dossier, started: int
    ) -> tuple[ReadRequest, Evaluation, Holder]:
        async with self.aside.turn(weight(request, self.limits.max_body_bytes)):
            return await self._evaluate_now(request, dossier, started)

    async def _evaluate_now(
        self, request: OutboundRequest, dossier: Dossier, started: int
    ) -> tuple[ReadRequest, Evaluation, Holder]:
        size = weight(request, self.limits.max_body_bytes)
        read = await self.aside.run(size, partial(read_by, dossier, self.limits, self.find))
        dossier.read(read, request)
        holder, reader = dossier.holder, self._reader(request, read, dossier.time)
        await self.extraction.texts(read.document, dossier.model, reader, started + self.deadline_us)
        subject = Subject(
            dossier.facts,
            dossier.policy,
            reader,
            rewritable=not read.signed or self.resigner.covers(request),
            hold_id=holder.name,
            transformers=self.transformers,
            trial=self.trial(),
        )
        driver = Driver(
            self.scanner, self.vault, self.ownership, self.conversations, self.holding, self.aside
        )
        work = evaluate(read.document, read.envelope, read.body, subject)
        evaluation = await driver.run(work, dossier, started + self.deadline_us)
        self.meter.evaluated(self.clock.monotonic_us() - started, len(request.body))
        return read, evaluation, holder

    def _reader(self, request: OutboundRequest, read: ReadRequest, time: str) -> Reader:
        return Reader(
            project=request.peer.project,
            dialect=f"{read.adapter.id}/{read.adapter.version}",
            rules=read.adapter.rules,
            limits=self.limits,
            revision=self.scanner.revision,
            cache=self.cache,
            placeholders=self.placeholders(request.peer.project),
            projects=self.ownership.revision,
            time=time,
            is_kept=self.vault.kept(request.peer.project),
        )

    async def _admit(
        self, request: OutboundRequest, dossier: Dossier, read: ReadRequest, evaluation: Evaluation
    ) -> Admitted:
        project = request.peer.project
        kept = [Kept(m.token, m.category, m.mac, m.value) for m in evaluation.maskings]
        if kept:
            await self.vault.keep(project, kept)
        openers = await self.vault.openers(project, evaluation.carried) if evaluation.carried else {}
        if evaluation.rewritten and not all(token in openers for token in evaluation.needed):
            raise EvidenceError("evidence.unavailable", "a masked value could not be kept")
        ways = self.resigner, self.limits, self.clock.now()
        put_together = partial(Departure.of, request, dossier, read, evaluation, openers, ways)
        departure = await self.aside.run(dossier.body_bytes, put_together)
        evidence = departure.evidence
        exchange = evidence.exchange()
        made = AnswerRestoration(read.adapter, departure.values, self.limits)
        exchange.back, made = way_back(request, dossier.policy, evidence.row.receipt, made)
        await self.ownership.learn(project, departure.texts)
        await self._durable(request, evaluation, evidence, exchange)  # nothing that can fail comes behind it
        self._open[request.request_id] = exchange
        while len(self._open) > MAX_OPEN_EXCHANGES:
            self._open.popitem(last=False)
        self.meter.decided(evidence.row.effect, dossier.provider, evaluation.objects)
        return Admitted(
            body=departure.body,
            headers=departure.headers,
            request_digest=departure.digest,
            receipt=evidence.row.receipt,
            admission=evidence.row.admission or "",
            effect=evidence.row.effect,
            restoration=made,
            detour=dossier.detour,
        )

    async def _durable(
        self, request: OutboundRequest, evaluation: Evaluation, evidence: EvidenceSet, exchange: Exchange
    ) -> None:
        """Wait until what must not be lost before the request leaves is on disk: two files, synced side by side."""
        treatments = evaluation.kept_treatments()
        signed = any(item.block.kind in SIGNED for item in evaluation.objects)
        recalled, edits = evaluation.recalled, evaluation.new_edits
        durable = self.conversations.are_durable(recalled, edits, treatments, signed=signed)
        keep = partial(
            self.conversations.keep,
            request.peer.project,
            evaluation.chain,
            recalled,
            edits,
            treatments,
            signed=signed,
        )
        if not durable:
            await keep()
            await self._append(evidence.records, evidence.row)
            return
        appending = self._append(evidence.records, evidence.row)
        kept, appended = await asyncio.gather(keep(), appending, return_exceptions=True)
        if isinstance(appended, BaseException):
            raise appended
        if isinstance(kept, BaseException):  # admitted, and not sent all the same: the log says so
            self._open[request.request_id] = exchange
            await self.conclude(request.request_id, Ending(response_complete=False))
            raise kept

    async def _append(self, records: Sequence[Any], row: Any) -> None:
        began = self.clock.monotonic_us()
        await self.store.append(records, row)
        self.meter.appended(self.clock.monotonic_us() - began)

    # -- refusals --------------------------------------------------------------------------------------------------

    async def reject(self, request: OutboundRequest, refusal: Refusal) -> Refused:
        """See ports.UseCase."""
        try:
            dossier = self._dossier(request, self.clock.monotonic_us())
        except Exception as error:  # noqa: BLE001 - as in handle
            self.meter.fault(error)
            return bare_refusal(request)
        code = refusal.reason_codes[0] if refusal.reason_codes else "gateway.error"
        return await self._refuse_whole(request, dossier, code, refusal.status, refusal.retry_after_s)

    async def _refuse_whole(
        self,
        request: OutboundRequest,
        dossier: Dossier,
        code: str,
        status: int,
        retry_after_s: int | None = None,
    ) -> Refused:
        """Refuse a request of which nothing was judged object by object."""
        objects = unread(request, code).objects
        for item in objects:
            item.decision = combine(item.decision, Decision(_D.DENY, (code,)))
        self.meter.failed_closed(code)
        return await self._store_refusal(request, dossier, objects, (code,), status, retry_after_s)

    async def _store_refusal(
        self,
        request: OutboundRequest,
        dossier: Dossier,
        objects: Sequence[ContextObject],
        codes: Sequence[str],
        status: int,
        retry_after_s: int | None = None,
        told: str = "",
    ) -> Refused:
        receipt = ""
        try:
            make = partial(dossier.evidence, objects, codes, effect_of(objects), None, 0)
            evidence = await self.aside.run(dossier.body_bytes if len(objects) > 1 else 0, make)
            lineage, state = evidence.exchange().lineage()
            row = replace(evidence.row, lineage=lineage.digest, receipt_state=state)
            await self._append([*evidence.records, lineage], row)
            receipt = row.receipt
            self.meter.decided(row.effect, dossier.provider, objects)
        except GatewayError as error:
            self.meter.failed_closed(error.code)
            codes, status = ("evidence.unavailable",), 503
        except Exception as error:  # noqa: BLE001 - the client gets its refusal also where no record of it can be made
            self.meter.fault(error)
        return self._refused(request, dossier, codes, status, receipt, retry_after_s, told)

    def _refused(
        self,
        request: OutboundRequest,
        dossier: Dossier,
        codes: Sequence[str],
        status: int,
        receipt: str = "",
        retry_after_s: int | None = None,
        told: str = "",
    ) -> Refused:
        path, message = request.target.partition("?")[0], dossier.policy.text(leading(codes)) + told
        refusal = Refusal(
            status, tuple(codes)[:8], message, receipt, request.request_id, retry_after_s, request.host, path
        )
        return Refused(dossier.adapter.refuse(refusal), receipt)

    def refuse(self, host: str, path: str, refusal: Refusal) -> NativeAnswer:
        """See ports.UseCase. The last word to a client: said also where policy and dialects cannot be had."""
        try:
            if not refusal.message:
                refusal = replace(refusal, message=self.policy().text(leading(refusal.reason_codes)))
            return self.find(host, path).refuse(replace(refusal, host=host, path=path))
        except (Exception, asyncio.CancelledError) as error:  # noqa: BLE001 - a plain call: no task is cancelled here
            self.meter.fault(error if isinstance(error, Exception) else RuntimeError(type(error).__name__))
            message = refusal.message or "The gateway could not evaluate the request."
            return Generic().refuse(replace(refusal, message=message, host=host, path=path))

    def converse(self, host: str, path: str, project: str) -> Conversation | None:
        """See ports.UseCase."""
        adapter = self.find(host, path)
        known = None if self.policy().answers.holds else spoken(adapter.id, path)  # else clients use HTTP
        return Conversation(adapter, known, project, self.chains) if known is not None else None

    def _dossier(self, request: OutboundRequest, started: int) -> Dossier:
        path = request.target.partition("?")[0]
        policy = self.policy()
        dossier = Dossier(
            request=request,
            adapter=self.find(request.host, path),
            policy=policy,
            surroundings=self.surroundings,
            time=self.clock.now(),
            started=started,
            monotonic_us=self.clock.monotonic_us,
        )
        dossier.stand(self.accounts)
        return dossier
