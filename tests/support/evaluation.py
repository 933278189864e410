"""Drives `classify.evaluate` as the use case does, with everything in memory: one project, many turns."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

from gateway.classify.envelope import envelope
from gateway.classify.evaluate import Evaluation, Subject, evaluate
from gateway.classify.forms import Bodies
from gateway.classify.lookups import Claims, Issued, Masked, Recall, Recalled, Reviews, Scan, Visible
from gateway.classify.masked import MaskedValue, memorable
from gateway.classify.minimise import Deduplicate, DropFields, HeadTail, MatchLines
from gateway.classify.objects import ScanCache
from gateway.classify.placeholders import Placeholders
from gateway.classify.reading import Reader
from gateway.classify.summarise import SUMMARISERS, Extract
from gateway.classify.treatment import Transformers
from gateway.context.decisions import RequestFacts
from gateway.context.findings import Category
from gateway.context.objects import Limits
from gateway.policy import CompiledPolicy, load_policy
from gateway.ports import Detector, ProviderAdapter
from gateway.providers import registry
from tests.support.detector import TinyDetector

ROOT = Path(__file__).resolve().parents[2]
ADAPTERS = registry.builtin()


def bundle(name: str = "default") -> dict[str, bytes]:
    """The files of a shipped bundle."""
    folder = ROOT / "policies" / name
    return {str(p.relative_to(folder)): p.read_bytes() for p in sorted(folder.rglob("*.toml"))}


def policy(name: str = "default", *, mode: str = "governed", enforcement: str = "enforce") -> CompiledPolicy:
    """A compiled shipped bundle."""
    return load_policy([bundle(name)], mode=mode, enforcement=enforcement)


DEFAULT = policy()
TRANSFORMERS = Transformers(
    {m.id: m for m in (HeadTail(), MatchLines(), DropFields(), Deduplicate())},
    {name: Extract(name, *extracts) for name, extracts in SUMMARISERS.items()},
)


def rules_of(*rules: str, mode: str = "governed") -> CompiledPolicy:
    """The default bundle with a layer of these rules, each as TOML without its header."""
    return load_policy([bundle(), bundle_of(rules, "layer")], mode=mode, enforcement="enforce")


def bundle_of(rules: Sequence[str], name: str, manifest: str = "") -> dict[str, bytes]:
    """The files of a bundle of these rules, each as TOML without its header."""
    head = f'name = "{name}"\nversion = "1.0.0"\ndescription = "d"\n{manifest}\n'
    text = "".join(f'[[rule]]\nid = "{name}.r{n}"\nwhy = "w"\n{rule}\n' for n, rule in enumerate(rules))
    return {"bundle.toml": head.encode(), "rules/r.toml": text.encode()}


@dataclass
class Session:
    """One project's memory over several requests."""

    detector: Detector = field(default_factory=TinyDetector)
    rules: CompiledPolicy = DEFAULT
    project: str = "acme"
    cache: ScanCache = field(default_factory=ScanCache)
    vault: dict[str, tuple[str, str, bytes]] = field(default_factory=dict)
    chains: dict[bytes, Recalled] = field(default_factory=dict)
    reviews: dict[str, str] = field(default_factory=dict)
    scanned_texts: int = 0

    def __post_init__(self) -> None:
        self.placeholders = Placeholders(b"p" * 31 + self.project[:1].encode(), b"m" * 32)

    def send(
        self,
        body: Any,
        *,
        host: str = "api.anthropic.com",
        target: str = "/v1/messages",
        headers: Sequence[tuple[bytes, bytes]] = (),
        rewritable: bool = True,
        content_type: str = "application/json",
    ) -> Evaluation:
        """Evaluate one request; what it masks and sends is known to the next one."""
        data = body if isinstance(body, bytes) else json.dumps(body, ensure_ascii=False).encode()
        adapter = registry.find(ADAPTERS, host, target.partition("?")[0])
        document = Bodies(adapter, partial(registry.find, ADAPTERS, host), Limits()).read(data, content_type)
        subject = Subject(
            RequestFacts(self.project),
            self.rules,
            self._reader(adapter),
            rewritable=rewritable,
            transformers=TRANSFORMERS,
        )
        result = self._drive(evaluate(document, envelope(target, headers), data, subject))
        if result.delivered:
            for masking in result.maskings:
                self.vault.setdefault(masking.token, (masking.value, masking.category, masking.mac))
            if result.chain:
                edits = {**(result.recalled.edits if result.recalled else {}), **result.new_edits}
                self.chains[result.chain[-1]] = Recalled(
                    "c", len(result.chain), edits, result.kept_treatments(), len(result.chain)
                )
        elif result.chain and result.chain[-1] not in self.chains:
            before = result.recalled or Recalled("c", 0)
            self.chains[result.chain[-1]] = replace(before, seen=len(result.chain))
        return result

    def _reader(self, adapter: ProviderAdapter) -> Reader:
        return Reader(
            project=self.project,
            dialect=adapter.id,
            rules=adapter.rules,
            limits=Limits(),
            revision=self.detector.revision,
            cache=self.cache,
            placeholders=self.placeholders,
            is_kept=self.vault.__contains__,
        )

    def _drive(self, run: Any) -> Evaluation:
        answer: Any = None
        while True:
            try:
                lookup = run.send(answer)
            except StopIteration as stop:
                result: Evaluation = stop.value
                return result
            answer = self._answer(lookup)

    def _answer(self, lookup: Any) -> Any:
        match lookup:
            case Scan(items):
                self.scanned_texts += len(items)
                return self.detector.scan(items)
            case Issued(macs):
                return {mac: token for token, (_, _, mac) in self.vault.items() if mac in macs}
            case Masked():
                known = [(t, v, c) for t, (v, c, _) in self.vault.items() if memorable(v)]
                return len(known), [MaskedValue(t, v, Category(c)) for t, v, c in known]
            case Claims(texts):
                return [()] * len(texts)
            case Visible(reaches):
                return [False] * len(reaches)
            case Reviews(holds):
                return {hold: self.reviews[hold] for hold in holds if hold in self.reviews}
            case Recall(hashes):
                return next((self.chains[h] for h in reversed(hashes) if h in self.chains), None)


def texts_of(data: bytes) -> list[str]:
    """Every decoded string of a JSON body, member names included, and of JSON inside its strings."""
    found: list[str] = []
    todo: list[Any] = [json.loads(data)]
    while todo:
        value = todo.pop()
        if isinstance(value, str):
            found.append(value)
            if value[:1] in ("{", "["):
                try:
                    todo.append(json.loads(value))
                except ValueError:
                    continue
        elif isinstance(value, dict):
            todo += [*value.keys(), *value.values()]
        elif isinstance(value, list):
            todo += value
    return found
