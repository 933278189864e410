"""The same evaluation as the proxy's, without network and without a store: `egress inspect` and `egress scan`.

Look-ups that a store would answer are answered empty; placeholders are made under a key of this run alone. Accounts
that are listed by their hashes are known, for which the installation's keys are read.
"""

from __future__ import annotations

import asyncio
import base64
import secrets
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import orjson

from gateway.app import wiring
from gateway.app.accounts import accounts_of
from gateway.app.described import outbound
from gateway.app.policies import policy_of, transformers_of
from gateway.app.resigning import resigner_of, signer_of
from gateway.app.signing import keyring
from gateway.classify.objects import ContextObject, ScanCache
from gateway.classify.placeholders import Placeholders
from gateway.config import Config
from gateway.context.findings import ScanItem, ScanResult
from gateway.context.objects import LeafRole
from gateway.context.pointer import to_pointer
from gateway.egress.conversations import Conversations
from gateway.egress.holding import NothingHeld
from gateway.egress.use_case import Egress
from gateway.ports import (
    Admitted,
    Claimed,
    Detector,
    Kept,
    OwnedText,
    Peer,
    Reach,
    Record,
    RequestRow,
    Ruling,
)
from gateway.store.memory import MemoryConversations


@dataclass(slots=True)
class InlineScanner:
    """ports.Scanner without processes."""

    detector: Detector

    @property
    def revision(self) -> str:
        """The detector's."""
        return self.detector.revision

    async def scan(self, items: Sequence[ScanItem], *, deadline_us: int) -> list[ScanResult]:
        """See ports.Scanner."""
        return self.detector.scan(items)


@dataclass(slots=True)
class _Evidence:
    records: dict[str, Record] = field(default_factory=dict)
    row: RequestRow | None = None

    async def append(self, records: Sequence[Record], row: RequestRow | None = None) -> None:
        self.records.update({record.kind: record for record in records})
        self.row = row or self.row

    async def rows(self, query: Mapping[str, Any]) -> tuple[list[dict[str, Any]], str | None]:
        return [], None

    async def record(self, digest: str) -> bytes | None:
        return next((b"".join(r.parts) for r in self.records.values() if r.digest == digest), None)

    async def health(self) -> str:
        return ""

    def document(self, kind: str) -> Any:
        record = self.records.get(kind)
        return orjson.loads(b"".join(record.parts)) if record is not None else None


@dataclass(slots=True)
class _NoVault:
    kept_values: dict[str, str] = field(default_factory=dict, repr=False)

    async def keep(self, project: str, values: Sequence[Kept]) -> None:
        self.kept_values.update({v.token: v.value for v in values})

    async def issued(self, project: str, macs: Sequence[bytes]) -> Mapping[bytes, str]:
        return {}

    async def masked(self, project: str) -> tuple[int, Sequence[tuple[str, str, str]]]:
        return 0, ()

    def kept(self, project: str) -> Callable[[str], bool]:
        return lambda token: token in self.kept_values

    async def openers(self, project: str, tokens: Sequence[str]) -> Mapping[str, Callable[[], str | None]]:
        return {t: (lambda t=t: self.kept_values.get(t)) for t in tokens if t in self.kept_values}  # type: ignore[misc]


class _NoOwnership:
    revision = 0

    async def claims(self, texts: Sequence[str]) -> list[tuple[Claimed, ...]]:
        return [()] * len(texts)

    def rule(self, peer: Peer, reaches: Sequence[Reach], time: str) -> list[Ruling]:
        return [Ruling(reach, "", allowed=False) for reach in reaches]

    async def learn(self, project: str, texts: Sequence[OwnedText]) -> None:
        """Nothing is kept."""


class _NoMeter:
    def __init__(self) -> None:
        self.objects: Sequence[ContextObject] = ()

    def decided(self, effect: str, provider: str, objects: Sequence[ContextObject]) -> None:
        self.objects = objects

    def __getattr__(self, name: str) -> Callable[..., None]:
        return lambda *args, **kwargs: None


class _RunKeys:
    """Keys of one run: placeholders of `inspect` are of the true form and stand for nothing."""

    def __init__(self) -> None:
        self._key = secrets.token_bytes(32)

    def digest_key(self, project: str) -> bytes:
        return self._key

    def salt_key(self, project: str) -> bytes:
        return self._key

    def placeholders(self, project: str) -> Placeholders:
        return Placeholders(self._key, self._key)


class Inspector:
    """Evaluates documents one after another; what one turn masks the next one knows."""

    def __init__(self, config: Config) -> None:
        self._detector = wiring.build_detector(config)
        self._evidence, self._meter, keys = _Evidence(), _NoMeter(), _RunKeys()
        self._vault = _NoVault()
        transformers = transformers_of(config)
        policy, resigner = policy_of(config, transformers), resigner_of(config)
        self._peers = wiring.peers_of(config)
        self._egress: Egress = wiring.build_egress(
            config,
            detector=self._detector,
            keys=keys,  # type: ignore[arg-type]
            policy=lambda: policy,
            accounts=accounts_of(config, _account_key(config), signer_of(resigner)),
            resigner=resigner,
            scanner=InlineScanner(self._detector),
            store=self._evidence,
            vault=self._vault,
            placeholders=keys.placeholders,
            conversations=Conversations(MemoryConversations()),
            ownership=_NoOwnership(),
            holding=NothingHeld(),
            transformers=transformers,
            meter=self._meter,
        )

    def __call__(self, document: Mapping[str, Any]) -> dict[str, Any]:
        """One evaluation, in the shape of `egress inspect`; ConfigError names what is wrong with the document."""
        request = outbound(document, self._peers)
        self._evidence.records.clear()
        self._meter.objects = ()
        self._egress.cache = ScanCache()  # so that every object is read, and its findings have places
        verdict = asyncio.run(self._egress.handle(request))
        receipt = self._evidence.document("receipt")
        admitted = isinstance(verdict, Admitted)
        return {
            "outcome": receipt["outcome"] if receipt else "failed",
            "status": None if admitted else verdict.answer.status,  # type: ignore[union-attr]
            "body_b64": base64.b64encode(verdict.body).decode() if isinstance(verdict, Admitted) else None,
            "receipt": receipt,
            "evaluation": self._evidence.document("evaluation"),
            "lineage": self._lineage(request.request_id),
            "effect": self._evidence.row.effect if self._evidence.row else "refused",
            "objects": [row for item in self._objects() for row in self._rows(item)],
            "lookups": "empty: no vault, no earlier turns but those of this run",
        }

    def _objects(self) -> Sequence[ContextObject]:
        return self._meter.objects

    def _lineage(self, request_id: str) -> Any:
        exchange = self._egress.exchange(request_id)
        if exchange is None:
            return self._evidence.document("lineage")
        record, _ = exchange.lineage()
        return orjson.loads(b"".join(record.parts))

    @staticmethod
    def _rows(item: ContextObject) -> Iterable[dict[str, Any]]:
        """The object, and each of its leaves with findings: offsets are in characters of that leaf."""
        leaves = item.leaves or []
        base = {
            "kind": str(item.block.kind),
            "digest": f"sha256:{item.digest.hex()}",
            "bytes": item.size,
            "disposition": str(item.decision.disposition),
            "reason_codes": list(item.decision.reason_codes),
        }
        by_leaf: dict[int, list[dict[str, Any]]] = {}
        for finding in item.scanned.findings:
            by_leaf.setdefault(finding.leaf, []).append(
                {
                    "type": finding.type,
                    "start": finding.start,
                    "end": finding.end,
                    "detector": finding.detector,
                }
            )
        if not by_leaf:
            yield {"pointer": item.pointer, **base, "findings": []}
        for index, findings in sorted(by_leaf.items()):
            leaf = leaves[index]
            path = leaf.path
            outer = leaf.outer
            while outer is not None:  # JSON inside a string: the pointer names the string that holds it
                path, outer = outer.path, outer.outer
            name = path[:-1] if leaf.role in (LeafRole.NAME, LeafRole.STRUCTURAL_NAME) else path
            yield {"pointer": to_pointer((*item.place, *name)), **base, "findings": findings}


def _account_key(config: Config) -> bytes:
    """The key under which accounts are known: needed, and so asked for, only where some are listed by their hashes."""
    return keyring(config, create=False).account_key() if config.accounts else bytes(32)


def inspect(config: Config, document: Mapping[str, Any]) -> dict[str, Any]:
    """One document; use Inspector for many."""
    return Inspector(config)(document)


def scan(config: Config, texts: Sequence[str]) -> list[list[dict[str, Any]]]:
    """Findings of each text, in the shape of `egress scan --jsonl`."""
    results = wiring.build_detector(config).scan([ScanItem(text, "", "user") for text in texts])
    return [
        [
            {
                "type": f.type,
                "category": str(f.category),
                "start": f.start,
                "end": f.end,
                "confidence_milli": f.confidence_milli,
                "detector": f.detector,
            }
            for f in result.findings
        ]
        for result in results
    ]


def scan_types(config: Config) -> Any:
    """Every type that the detectors know, with an example (`egress scan --types`)."""
    return wiring.build_detector(config).types()  # type: ignore[attr-defined]


__all__ = ["InlineScanner", "Inspector", "inspect", "outbound", "scan", "scan_types"]
