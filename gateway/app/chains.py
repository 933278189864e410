"""What responses carry for those that continue them, shared with the other processes of a gateway.

A response that is continued on another connection may have been given by another process. Which placeholders and hosts
it carries is noted with the evidence writer when it begins and when it ends, and asked for when a message continues a
response that is not known here. What is not found stays a placeholder.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from gateway.classify.conversing import Carried, Chains, continued
from gateway.errors import GatewayError
from gateway.ports import Admitted, ConversationStore, OutboundRequest, Refused, UseCase, ValueVault
from gateway.workers import spawn


@dataclass(frozen=True, slots=True)
class SharedChains:
    """Joins the chains of this process with those of the others; `fault` is told of what could not be noted."""

    chains: Chains
    store: ConversationStore
    vault: ValueVault
    fault: Callable[[Exception], None]

    def kept(self, project: str, response_id: str, carried: Carried) -> None:
        """This process gave a response."""
        _ = spawn(self._note(project, response_id, carried), name="response chain")

    async def _note(self, project: str, response_id: str, carried: Carried) -> None:
        hosts = None if carried.hosts is None else sorted(carried.hosts)
        try:
            await self.store.note(
                project, _anchor(response_id), {"tokens": list(carried.openers), "hosts": hosts}
            )
        except GatewayError as error:
            self.fault(error)

    async def fetch(self, request: OutboundRequest) -> None:
        """Learn what a message of a WebSocket builds on, before it is sent."""
        for response_id in continued(request.body):
            if not self.chains.knows(request.peer.project, response_id):
                try:
                    await self._fetch(request.peer.project, response_id)
                except GatewayError as error:
                    self.fault(error)

    async def _fetch(self, project: str, response_id: str) -> None:
        found = await self.store.load(project, _anchor(response_id))
        if found is not None:
            openers = await self.vault.openers(project, found["tokens"])
            hosts = None if found["hosts"] is None else frozenset(found["hosts"])
            self.chains.adopt(project, response_id, Carried(openers, hosts))


class ChainedUseCase:
    """ports.UseCase: another one, with what a message continues fetched before the message leaves."""

    def __init__(self, inner: UseCase, chains: SharedChains) -> None:
        self._inner = inner
        self._chains = chains

    async def handle(self, request: OutboundRequest) -> Admitted | Refused:
        """See ports.UseCase."""
        verdict = await self._inner.handle(request)
        if isinstance(verdict, Admitted) and request.transport == "websocket":
            await self._chains.fetch(request)
        return verdict

    def __getattr__(self, name: str) -> Any:
        """Everything else as it is."""
        return getattr(self._inner, name)


def _anchor(response_id: str) -> bytes:
    return hashlib.sha256(b"response\0" + response_id.encode("utf-8", "surrogatepass")).digest()
