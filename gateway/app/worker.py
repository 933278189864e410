"""A process that carries traffic beside others: the proxy on their common socket, over stores that the writer owns."""

from __future__ import annotations

import asyncio
import gc
import socket
import sys
from contextlib import ExitStack

from gateway.app import wiring
from gateway.app.core import Core
from gateway.app.processes import Orders, Parent
from gateway.app.reconfigure import LiveSettings
from gateway.app.serve import CA_REVOKED, DRAIN_S, use_case
from gateway.app.stores import shared_stores
from gateway.egress.aside import SWITCH_S
from gateway.ipc import Handler, Message
from gateway.proxy.certs import CertificateAuthority
from gateway.proxy.master import EgressProxy
from gateway.store.service import Answer
from gateway.telemetry.log import Log


async def work(orders: Orders, parent: Parent) -> None:
    """Carry traffic until told to stop; then finish what is in flight."""
    settings, log = orders.settings, Log()
    log.capture()
    asyncio.get_running_loop().set_exception_handler(log.loop_handler)
    with ExitStack() as stack:
        listeners = [stack.enter_context(socket.socket(fileno=each)) for each in orders.listeners]
        async with use_case(settings, log, shared_stores(orders.life)) as core:
            authority = wiring.authority_of(settings, core.keys)

            def event(name: str, fields: object) -> None:
                log.event(name, **dict(fields))  # type: ignore[call-overload]  # a mapping of words

            proxy = EgressProxy(
                wiring.settings_of_proxy(settings), core.use_case, authority, event, listeners
            )
            await proxy.start()
            live = LiveSettings(settings, proxy.use_hosts)
            parent.serve(_words(core, proxy, authority, live))
            parent.ready()
            gc.collect()
            sys.setswitchinterval(SWITCH_S)
            gc.freeze()
            await parent.stopped.wait()
            await proxy.stop(DRAIN_S)


def _words(
    core: Core, proxy: EgressProxy, authority: CertificateAuthority, live: LiveSettings
) -> dict[str, Handler]:
    async def health(_message: Message) -> Answer:
        if not proxy.ready.is_set():
            return ("a worker does not accept connections",), ()
        if authority.revoked:
            return (CA_REVOKED,), ()
        return (await core.egress.store.health(),), ()

    async def metrics(_message: Message) -> Answer:
        return (), (core.metrics.render(),)

    async def reload(_message: Message) -> Answer:
        results = [await each.reload() for each in filter(None, (core.policy, core.trial))]
        problems = [p for result in results for p in result.problems] + list((await live.reload()).problems)
        return (results[0].ok, results[0].digest, problems), ()

    return {"health": health, "metrics": metrics, "reload": reload}
