"""The gateway in the foreground: start in order, run until told to stop, stop in order.

Keys, store, detector and policy come first and stop the start where they are not right; the proxy listens last, the
control port answers 200 to `/healthz` only when both can do their work.
"""

from __future__ import annotations

import asyncio
import gc
import os
import signal
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from typing import Any

from gateway import __version__
from gateway.app import upkeep, wiring
from gateway.app.anchoring import keep_anchoring, told_by
from gateway.app.clock import SystemClock
from gateway.app.core import Core, build_core
from gateway.app.fetching import fetcher_of
from gateway.app.folder import make_state
from gateway.app.notifying import notifier_of
from gateway.app.operation import Operation, reviewers_of
from gateway.app.policies import transformers_of
from gateway.app.reconfigure import LiveSettings
from gateway.app.scanning import scanner_of
from gateway.app.signing import keyring
from gateway.app.stores import Opening, own_stores
from gateway.config import Config
from gateway.control import ControlServer, ControlState, control_token, create_app
from gateway.egress.aside import SWITCH_S
from gateway.proxy.certs import combined_bundle
from gateway.proxy.master import EgressProxy
from gateway.telemetry.log import Log
from gateway.workers import spawn

DRAIN_S = 10.0
CA_REVOKED = "the interception CA was revoked: egress ca rotate, then start again"


@dataclass(slots=True)
class Running:
    """A gateway that serves: its ports are bound."""

    core: Core
    proxy: EgressProxy
    control: ControlServer
    settings: LiveSettings


def run(settings: Config) -> int:
    """Run until SIGTERM or SIGINT; the exit status. Raises SetupError or ConfigError where it cannot start."""
    if worker_count(settings) != 1:
        from gateway.app import supervisor  # noqa: PLC0415 - a gateway of one process needs none

        return supervisor.run(settings)
    os.umask(0o077)
    return asyncio.run(_until_stopped(settings))


def worker_count(settings: Config) -> int:
    """How many processes carry traffic: as many as are asked for, or one a core that this process may use."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return settings.listen.workers or cores


async def _until_stopped(settings: Config) -> int:
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    async with serving(settings) as running:
        core = running.core
        loop.add_signal_handler(signal.SIGHUP, lambda: spawn(_reload_all(running), name="reload"))
        loop.add_signal_handler(signal.SIGUSR1, lambda: core.kill.turn(on=True))
        running.core.log.event(
            "ready",
            listen=str(settings.listen.proxy),
            control=str(settings.listen.control),
            version=__version__,
            mode=str(settings.policy.mode),
            enforcement=str(settings.policy.enforcement),
        )
        gc.collect()
        sys.setswitchinterval(SWITCH_S)
        gc.freeze()  # what start-up made lives as long as the process: no collection need look at it again
        await stop.wait()
        running.core.log.event("stopping")
    return 0


async def _reload_all(running: Running) -> None:
    await _reload(running.core)
    await running.settings.reload()


async def _reload(core: Core) -> None:
    for each in filter(None, (core.policy, core.trial)):
        await each.reload()


@asynccontextmanager
async def use_case(
    settings: Config, log: Log | None = None, opening: Opening = own_stores, *, scans: bool = True
) -> AsyncIterator[Core]:
    """The use case over the real store, detectors and policy, without an edge; without `scans` it gets no traffic."""
    log = log or Log()
    make_state(settings)
    async with AsyncExitStack() as stack:
        keys = keyring(settings, create=not settings.state.database.exists())
        stores = await stack.enter_async_context(opening(settings, keys))
        fetcher = fetcher_of(settings, transformers_of(settings), None, log)
        if fetcher.urls and (stores.own is not None or not fetcher.is_there()):
            await fetcher.prepare()
        detector = wiring.build_detector(settings)
        scanner = scanner_of(settings, detector)
        if scans:
            await scanner.start()
        stack.push_async_callback(scanner.close)
        core = build_core(settings, detector=detector, scanner=scanner, stores=stores, keys=keys, log=log)
        stack.callback(core.budgets.close)
        core.fingerprints.load()
        keeper = spawn(core.fingerprints.keep(core.egress.meter.fault), name="fingerprints")
        stack.callback(core.fingerprints.close)
        stack.callback(keeper.cancel)
        if settings.policy.poll_s:
            for watched in filter(None, (core.policy, core.trial)):
                stack.callback(spawn(watched.watch(), name="policy").cancel)
        if stores.own is not None and fetcher.urls and settings.policy.fetch_s:
            fetcher = fetcher_of(settings, transformers_of(settings), core.metrics, log)
            stack.callback(spawn(fetcher.watch(lambda: _reload(core)), name="fetch").cancel)
        if (own := stores.own) is not None:
            retaining = upkeep.retain(settings, own.evidence, own.vault, core.egress.meter.fault)
            stack.callback(spawn(retaining, name="retention").cancel)
            stack.callback(spawn(keep_anchoring(settings, told_by(log)), name="anchors").cancel)
        core.notifier = notifier_of(settings, core.metrics, log)
        core.notifier.start()
        stack.push_async_callback(core.notifier.close)
        core.desk.notify = core.notifier.tell
        core.metrics.queue("scan", lambda: scanner.queued)
        stack.push_async_callback(core.egress.close)
        yield core


@asynccontextmanager
async def serving(settings: Config, log: Log | None = None) -> AsyncIterator[Running]:
    """A running gateway; on leaving, what is in flight is finished and the log closed cleanly."""
    log = log or Log()
    log.capture()
    asyncio.get_running_loop().set_exception_handler(log.loop_handler)
    async with AsyncExitStack() as stack:
        core = await stack.enter_async_context(use_case(settings, log))
        authority = wiring.authority_of(settings, core.keys)
        combined_bundle(settings.state.dir / "ca-bundle.pem", authority.pem)
        proxy = EgressProxy(wiring.settings_of_proxy(settings), core.use_case, authority, _sink(core))
        core.metrics.processes(1, 0)

        async def health() -> str:
            if not proxy.ready.is_set():
                return "the proxy does not accept connections yet"
            if authority.revoked:
                return CA_REVOKED
            return await core.egress.store.health()

        async def metrics() -> bytes:
            return core.metrics.render()

        live = LiveSettings(settings, proxy.use_hosts, log)
        control = await control_port(settings, core, stack, health, metrics, live=live)
        await proxy.start()
        stack.push_async_callback(proxy.stop, DRAIN_S)
        yield Running(core, proxy, control, live)


def _sink(core: Core) -> Any:
    def event(name: str, fields: Any) -> None:
        core.log.event(name, **fields)

    return event


async def control_port(
    settings: Config,
    core: Core,
    stack: AsyncExitStack,
    health: Callable[[], Awaitable[str]],
    metrics: Callable[[], Awaitable[bytes]],
    spread: Callable[[], Awaitable[Sequence[str]]] | None = None,
    *,
    live: LiveSettings,
) -> ControlServer:
    """Serve the control port until `stack` is left; `spread` has other processes load the policy anew."""
    listen = settings.listen.control
    operation = Operation(
        core.policy, core.trial, core.kill, core.egress.store, SystemClock(), settings, spread, live
    )
    core.glass.spread = spread
    state = ControlState(
        store=core.egress.store,
        token=control_token(settings.state.dir),
        health=health,
        metrics=metrics,
        version=__version__,
        projects=wiring.project_rows(settings),
        desk=core.desk,
        degraded=lambda: core.notifier.failing if core.notifier is not None else (),
        memory_guard=core.memory,
        operation=operation,
        glass=core.glass,
        reviewers=reviewers_of(settings),
        engine=core.egress.surroundings.engine,
        host=listen.host,
        loopback=listen.is_loopback,
    )
    server = ControlServer(create_app(state), listen.host, listen.port)
    await server.start(spawn)
    stack.push_async_callback(server.close)
    return server
