"""Any port of the use case raises, hangs, lies or is cancelled at any step: nothing unadmitted leaves, all are answered.

A Hypothesis state machine over the real proxy and the real store; only the ports themselves are sabotaged.
"""

from __future__ import annotations

import asyncio
import hashlib
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from gateway.errors import DetectorError, EvidenceError
from tests.support.client import Reply
from tests.support.gateway import Bench, gateway

SECRET = "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"
PORTS = ("scanner", "store", "vault", "conversations", "policy", "find", "placeholders", "clock")
FAULTS = ("gateway error", "any error", "cancelled", "hang", "nonsense")
DEADLINE_MS = 400


class Saboteur:
    """Stands before a port; `fault` happens at the `at`-th call from now, and at every later one."""

    def __init__(self, port: Any) -> None:
        self._port, self.fault, self._left = port, "", 0

    def arm(self, fault: str, at: int) -> None:
        self.fault, self._left = fault, at

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._port, name)
        return self._guard(found) if callable(found) and name != "health" else found

    def __call__(self, *args: Any) -> Any:
        return self._guard(self._port)(*args)

    def _guard(self, call: Callable[..., Any]) -> Callable[..., Any]:
        if asyncio.iscoroutinefunction(call):

            async def guarded(*args: Any, **kwargs: Any) -> Any:
                if self._due():
                    if self.fault == "hang":
                        await asyncio.sleep(3600)
                    return self._strike()
                return await call(*args, **kwargs)

            return guarded

        def direct(*args: Any, **kwargs: Any) -> Any:
            return self._strike() if self._due() else call(*args, **kwargs)

        return direct

    def _due(self) -> bool:
        if not self.fault:
            return False
        self._left -= 1
        return self._left < 0

    def _strike(self) -> Any:
        match self.fault:
            case "gateway error":
                raise (
                    EvidenceError("evidence.unavailable")
                    if self._left % 2
                    else DetectorError("detector.failed")
                )
            case "any error":
                raise RuntimeError(SECRET)
            case "cancelled":
                raise asyncio.CancelledError
            case _:
                return None


class Sabotage(RuleBasedStateMachine):
    """Requests and faults in any order."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(tempfile.mkdtemp(prefix="sabotage-"))
        self.loop = asyncio.new_event_loop()
        document = {"limits": {"deadline_ms": DEADLINE_MS}}
        self.context = gateway(self.folder, document)
        self.bench: Bench = self.loop.run_until_complete(self.context.__aenter__())
        egress = self.bench.running.core.egress
        self.saboteurs = {name: Saboteur(getattr(egress, name)) for name in PORTS}
        for name, saboteur in self.saboteurs.items():
            setattr(egress, name, saboteur)
        self.replies: list[tuple[Reply, bool]] = []
        self.sent = 0

    @rule(port=st.sampled_from(PORTS), fault=st.sampled_from(FAULTS), at=st.integers(0, 4))
    def break_a_port(self, port: str, fault: str, at: int) -> None:
        # A store that says "durable" and has not written cannot be told from one that has: not a fault to survive.
        self.saboteurs[port].arm("any error" if (port, fault) == ("store", "nonsense") else fault, at)

    @precondition(lambda self: any(s.fault for s in self.saboteurs.values()))
    @rule()
    def mend_everything(self) -> None:
        for saboteur in self.saboteurs.values():
            saboteur.arm("", 0)

    @rule(dirty=st.booleans())
    def send(self, dirty: bool) -> None:
        self.sent += 1
        broken = any(s.fault for s in self.saboteurs.values())
        text = f"request {self.sent} {SECRET if dirty else ''}"
        body = {"model": "m", "max_tokens": 1, "messages": [{"role": "user", "content": text}]}
        self.replies.append((self.loop.run_until_complete(self.bench.send(body)), broken))

    @invariant()
    def every_client_got_an_answer(self) -> None:
        for reply, broken in self.replies:
            assert reply.status == 200 or (broken and 400 <= reply.status < 600), reply.status
            assert SECRET.encode() not in reply.raw + reply.body or reply.status == 200

    @invariant()
    def nothing_arrived_without_a_stored_admission(self) -> None:
        arrived = [bytes(request.body) for request in self.bench.arrived]
        if not arrived:
            return
        store = self.saboteurs["store"]._port
        rows, _ = self.loop.run_until_complete(store.rows({"limit": 1000}))
        admitted = {row["admission"]["request_digest"] for row in rows if row["admission"]}
        for body in arrived:
            assert f"sha256:{hashlib.sha256(body).hexdigest()}" in admitted
            assert SECRET.encode() not in body

    def teardown(self) -> None:
        self.mend_everything()
        self.loop.run_until_complete(self.context.__aexit__(None, None, None))
        self.loop.close()
        shutil.rmtree(self.folder, ignore_errors=True)


Sabotage.TestCase.settings = settings(max_examples=12, stateful_step_count=8, deadline=None)
TestSabotage = Sabotage.TestCase
