"""What is in evidence of one request through a whole gateway, held against what the provider saw."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from gateway.app import wiring
from tests.support.gateway import Bench
from tests.support.waiting import eventually

HOST = "api.anthropic.com"
TIMES = {"head_timeout_s": 0.5, "connect_timeout_s": 0.5, "handshake_timeout_s": 0.5}


def body(text: str = "hello", **more: Any) -> bytes:
    """A request that a clean conversation begins with."""
    document = {"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": text}], **more}
    return json.dumps(document).encode()


@dataclass(frozen=True)
class Claim:
    """What is in evidence of one request."""

    state: str
    counted: int  # observations that the lineage lists
    observed: tuple[tuple[str, str | int], ...]  # (result, status or failure) of those that are stored
    level: str
    complete: bool  # the answer


@dataclass
class Life:
    """A gateway, and what one request leaves in its evidence."""

    bench: Bench

    async def claim(self) -> Claim:
        """The newest request, once it is concluded; it must not claim more than the provider saw."""
        (row,) = await eventually(lambda: self.bench.rows(limit=1), lambda rows: rows and rows[0]["lineage"])
        lineage = json.loads(await self.bench.running.core.egress.store.record(row["lineage"]) or b"")
        counted = lineage.get("egress_observations", [])
        assert lineage["receipt_state"] == row["receipt_state"]
        stored = [
            (item["result"], item.get("http_status", item.get("failure", ""))) for item in row["observations"]
        ]
        whole = {f"sha256:{hashlib.sha256(a.body).hexdigest()}" for a in self.bench.arrived if a.complete}
        whole |= {
            f"sha256:{hashlib.sha256(str(m).encode()).hexdigest()}"
            for socket in self.bench.provider.sockets
            for m in socket.messages
        }
        if counted or row["receipt_state"] == "observed_model_egress":
            assert row["admission"]["request_digest"] in whole, "claimed, and the provider saw nothing"
        evaluation = row["evaluation"]
        answered = (
            (evaluation["response"] or {}).get("complete", False) if "response" in evaluation else False
        )
        return Claim(
            row["receipt_state"], len(counted), tuple(stored), evaluation["evidence_level"], answered
        )


def settled(**limits: Any) -> Callable[[Any], Any]:
    """`settings_of_proxy` with other times."""
    original = wiring.settings_of_proxy

    def settings(config: Any) -> Any:
        made = original(config)
        return replace(made, limits=replace(made.limits, **limits))

    return settings


ANSWERED = Claim("observed_model_egress", 1, (("response_observed", 200),), "answered", complete=True)
NOT_SENT = Claim("prepared", 0, (("no_response_observed", "connect"),), "not_sent", complete=False)
