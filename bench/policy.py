"""What rules cost: decisions a second by the number of rules, loading a policy anew, and replay over stored facts."""

from __future__ import annotations

import asyncio
import tempfile
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from bench.table import Suite, timed_ms
from gateway.app.policies import LivePolicy, transformers_of
from gateway.classify.replay import replay
from gateway.config import parse
from gateway.config.bundles import packaged_bundles, read_bundle
from gateway.context.decisions import FindingFacts, ObjectFacts, RequestFacts
from gateway.policy import CompiledPolicy, load_policy

RULES = (10, 100, 1000)
_DECISIONS = 2000
_TIME = "2027-01-15T12:00:00.000000Z"


def layers(count: int) -> list[Mapping[str, bytes]]:
    """The default bundle, and one with this many rules that half of the time look at findings."""
    rules = "".join(
        f'[[rule]]\nid = "b.r{n}"\nwhy = "w"\nwhen = {{ {_when(n)} }}\n'
        'then = { disposition = "deny", reason_codes = ["x.yz"] }\n'
        for n in range(count)
    )
    manifest = b'name = "bench"\nversion = "1.0.0"\ndescription = "d"\n'
    return [
        read_bundle(packaged_bundles() / "default"),
        {"bundle.toml": manifest, "rules/r.toml": rules.encode()},
    ]


def _when(number: int) -> str:
    if number % 2:
        return f'type = "kind_{number}", confidence_min = 500'
    return f'category = "custom", project = "project-{number}"'


def load(count: int) -> CompiledPolicy:
    """The policy with this many rules of ours."""
    return load_policy(layers(count), mode="governed", enforcement="enforce")


def objects(count: int) -> list[ObjectFacts]:
    """Objects of which no two are alike to rules: every third one holds findings."""
    found = (FindingFacts("email", "pii", "medium", 900, 1), FindingFacts("jwt", "secret", "high", 950, 2))
    return [
        ObjectFacts(
            f"/messages/{n}", "text", "user", n, found if n % 3 == 0 else (), provenance=("", "own")[n % 2]
        )
        for n in range(count)
    ]


def decided(policy: CompiledPolicy, asked: list[ObjectFacts]) -> None:
    """Decide about every object in a request of its own, so that nothing is remembered."""
    for n, facts in enumerate(asked):
        policy.decide(RequestFacts("acme", model=f"m{n}", time=_TIME), facts)


def record(number: int) -> dict[str, Any]:
    """A stored evaluation of four objects."""
    finding = {"type": "email", "category": "pii", "severity": "medium", "confidence_milli": 900, "count": 1}
    item = {"pointer": "/messages/0", "kind": "text", "channel": "user", "bytes": 100, "coverage": "complete"}
    plain = {**item, "findings": [], "disposition": "allow", "reason_codes": [], "rules": []}
    masked = {
        **item,
        "findings": [finding],
        "disposition": "allow_redacted",
        "reason_codes": ["pii.redacted"],
        "rules": ["pii.redact"],
    }
    return {
        "receipt": f"sha256:{number:064x}",
        "time": _TIME,
        "project": f"p{number % 7}",
        "principal": {"kind": "unknown"},
        "provider": "openai",
        "locality": "remote",
        "route": "proxy",
        "effect": "rewritten",
        "objects": [plain, plain, plain, masked],
    }


def reloads(count: int, rounds: int) -> list[float]:
    """Milliseconds until bundles that changed on disk are in force, as `egress reload` and SIGHUP have it."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for file, data in layers(count)[1].items():
            (folder / file).parent.mkdir(exist_ok=True)
            (folder / file).write_bytes(data)
        config = parse({"policy": {"bundles": ["policies/default", name]}}, folder, {"HOME": name})
        policy = LivePolicy(
            config, transformers_of(config), config.policy.folders, lambda _: None, lambda _: None
        )
        return [_reload(policy, folder, number) for number in range(rounds)]


def _reload(policy: LivePolicy, folder: Path, number: int) -> float:
    manifest = f'name = "bench"\nversion = "1.0.{number + 1}"\ndescription = "d"\n'
    (folder / "bundle.toml").write_text(manifest)

    def again() -> None:
        if not asyncio.run(policy.reload()).changed:
            raise RuntimeError("the policy did not change")

    began = time.perf_counter()
    again()
    return (time.perf_counter() - began) * 1000


def run(rounds: int) -> Iterator[Suite]:
    """The suite."""
    suite = Suite(
        "policy",
        (
            "rules beside the default bundle",
            "load, ms",
            "reload of a running gateway, ms",
            "decisions a second",
            "10,000 replayed, ms",
        ),
    )
    for count in RULES:
        loads = [timed_ms(lambda count=count: load(count)) for _ in range(max(3, rounds // 3))]
        policy, asked = load(count), objects(_DECISIONS)
        times = [
            timed_ms(lambda policy=policy, asked=asked: decided(policy, asked))
            for _ in range(max(3, rounds // 3))
        ]
        records = [record(n) for n in range(2500)]
        again = timed_ms(lambda policy=policy, records=records: replay(policy, records))
        suite.add(
            count, min(loads), min(reloads(count, max(3, rounds // 3))), _DECISIONS / min(times) * 1000, again
        )
    yield suite
