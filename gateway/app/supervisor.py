"""`egress up` with several workers: one process that opens the ports and looks after the others.

```
supervisor   opens the proxy's socket and the control port, serves the latter, starts and restarts the others
writer       writes the evidence of all of them (gateway.app.writer)
workers      carry the traffic, each with an event loop of its own (gateway.app.worker)
```

A process that ends without being told to is started again, at once the first time and later after a pause that grows.
While the writer is away every request is refused; what a worker had open when it died is closed as what was provable.
"""

from __future__ import annotations

import asyncio
import gc
import os
import signal
import socket
import uuid
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import AsyncExitStack, aclosing, asynccontextmanager, suppress
from dataclasses import dataclass, field, replace
from typing import Any, Final

from gateway import __version__
from gateway.app import serve, wiring
from gateway.app.core import Core
from gateway.app.folder import make_state
from gateway.app.processes import Child, Orders, launch
from gateway.app.reconfigure import LiveSettings
from gateway.app.signing import keyring
from gateway.app.stores import shared_stores
from gateway.config import Config
from gateway.config.values import Address
from gateway.control import ControlServer
from gateway.errors import GatewayError, SetupError, words_of
from gateway.ipc import LostError
from gateway.proxy.certs import combined_bundle
from gateway.store.lock import StateLock
from gateway.telemetry.log import Log
from gateway.telemetry.merge import counted, merge
from gateway.workers import spawn

BACKLOG: Final = 1024
START_S: Final = 120.0  # on a machine that is busy with other things
STOP_S: Final = serve.DRAIN_S + 10.0  # to finish what is in flight, and to settle the rest
ANSWER_S: Final = 2.0
RELOAD_S: Final = 20.0  # to compile a policy
WATCH_S: Final = 5.0
PAUSES_S: Final = (0.0, 0.2, 1.0, 5.0)  # before a process is started again; the last one for all that follow
STEADY_S: Final = 60.0
"""A process that lived so long ended for a reason of its own: pauses begin anew."""


def run(settings: Config) -> int:
    """Run until SIGTERM or SIGINT; the exit status. Raises SetupError or ConfigError where it cannot start."""
    os.umask(0o077)
    return asyncio.run(_until_stopped(settings))


async def _until_stopped(settings: Config) -> int:
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    async with supervising(settings) as fleet:
        core = fleet.core
        loop.add_signal_handler(signal.SIGHUP, lambda: spawn(fleet.reload(), name="reload"))
        loop.add_signal_handler(signal.SIGUSR1, lambda: core.kill.turn(on=True))
        core.log.event(
            "ready",
            listen=str(fleet.settings.listen.proxy),
            control=str(settings.listen.control),
            version=__version__,
            mode=str(settings.policy.mode),
            enforcement=str(settings.policy.enforcement),
            count=len(fleet.workers),
        )
        gc.collect()
        gc.freeze()
        await stop.wait()
        core.log.event("stopping")
    return 0


@dataclass(slots=True)
class Fleet:
    """The processes of a gateway that runs. `settings` are those of one worker."""

    settings: Config
    listeners: Sequence[socket.socket]  # the proxy's, and those of projects
    log: Log
    live: LiveSettings
    core: Core = field(init=False)
    control: ControlServer = field(init=False)
    writer: Child | None = None
    workers: list[Child | None] = field(default_factory=list)
    restarts: int = 0
    _past: list[bytes] = field(default_factory=list)  # what workers that ended had counted, one text
    _last: dict[str, bytes] = field(default_factory=dict)  # the last metrics of each life
    _expected: tuple[str, ...] = ()  # lives that the present writer was told to wait for
    _stopping: bool = False
    _writer_keepers: list[asyncio.Task[None]] = field(default_factory=list)
    _worker_keepers: list[asyncio.Task[None]] = field(default_factory=list)

    # -- life --------------------------------------------------------------------------------------------------------

    async def start_writer(self) -> None:
        """Start the writer, and keep one running; SetupError where the first one cannot work."""
        self.writer = await self._begin(self._new_writer())
        self._writer_keepers.append(spawn(self._keep_writer(self.writer), name="evidence writer"))

    async def start_workers(self, count: int) -> None:
        """Start the workers, and keep as many running; SetupError where one of the first cannot work."""
        for listener in self.listeners:
            listener.listen(BACKLOG)
        self.workers = [None] * count
        first = await asyncio.gather(
            *(self._begin(self._new_worker()) for _ in range(count)), return_exceptions=True
        )
        failures = [each for each in first if isinstance(each, BaseException)]
        self.workers = [each for each in first if isinstance(each, Child)]
        if failures:
            raise failures[0]
        for slot, child in enumerate(list(self.workers)):
            if child is not None:
                self._worker_keepers.append(spawn(self._keep_worker(slot, child), name="worker"))

    async def _begin(self, launching: Any) -> Child:
        """A process that does its work; SetupError with what it said where it does not."""
        child: Child = await launching
        ready, ended = asyncio.ensure_future(child.ready.wait()), asyncio.ensure_future(child.process.wait())
        try:
            await asyncio.wait({ready, ended}, timeout=START_S, return_when=asyncio.FIRST_COMPLETED)
        except asyncio.CancelledError:
            child.kill()
            raise
        finally:
            ready.cancel()
            ended.cancel()
        if child.ready.is_set() and child.alive:
            return child
        child.kill()
        await child.process.wait()
        await child.line.closed.wait()  # what it said last is on its way until then
        await child.line.settled()
        raise child.failure or SetupError(
            "setup.process",
            f"the {child.kind} did not start",
            hint="look at the lines it wrote before this one",
        )

    async def _new_writer(self) -> Child:
        self._expected = tuple(child.life for child in self.workers if child is not None and child.alive)
        return await launch("writer", Orders(self.settings, uuid.uuid4().hex, self._expected))

    async def _new_worker(self) -> Child:
        descriptors = tuple(listener.fileno() for listener in self.listeners)
        return await launch(
            "worker", Orders(self.settings, uuid.uuid4().hex, listeners=descriptors), descriptors
        )

    async def _keep_writer(self, child: Child) -> None:
        async with aclosing(self._replaced(child, self._new_writer)) as children:
            async for again in children:
                self.writer = again
                living = {each.life for each in self.workers if each is not None and each.alive}
                for life in self._expected:  # who died while the writer was away spoke to none
                    if life not in living:
                        self._gone(life)

    async def _keep_worker(self, slot: int, child: Child) -> None:
        async with aclosing(self._replaced(child, self._new_worker)) as children:
            async for again in children:
                self.workers[slot] = again

    async def _replaced(self, child: Child, new: Any) -> AsyncGenerator[Child | None]:
        """None whenever the process ends, and then the one that takes its place."""
        loop, failures = asyncio.get_running_loop(), 0
        while True:
            since = loop.time()
            await self._watched(child)
            self._ended(child)
            yield None
            failures = 0 if loop.time() - since > STEADY_S else failures
            again: Child | None = None
            while again is None:
                await asyncio.sleep(PAUSES_S[min(failures, len(PAUSES_S) - 1)])
                failures += 1
                try:
                    again = await self._begin(new())
                except (GatewayError, OSError) as error:  # descriptors or memory may be had again later
                    code = error.code if isinstance(error, GatewayError) else "setup.process"
                    self.log.event("process_failed", level="error", code=code, task=child.kind)
            self.restarts += 1
            child = again
            yield child

    async def _watched(self, child: Child) -> None:
        """Return when a process has ended; one that does not answer for too long is killed."""
        while child.alive:
            try:
                async with asyncio.timeout(WATCH_S):
                    await child.process.wait()
            except TimeoutError:
                _ = spawn(self._look_at(child), name="watch")
            if child.line.closed.is_set() and child.alive:
                child.kill()  # its line was cut: it owed an answer for too long
        await child.process.wait()

    def _ended(self, child: Child) -> None:
        code = child.process.returncode or 0
        self.log.event("process_ended", level="error", task=child.kind, count=code)
        if child.kind == "worker":
            self._past = [merge([*self._past, counted(last)]) for last in (self._last.pop(child.life, b""),)]
            self._gone(child.life)

    def _gone(self, life: str) -> None:
        """Tell the writer that a process has ended; one that starts later is told who is alive."""
        if self.writer is not None:
            with suppress(LostError):
                self.writer.line.tell("gone", life)

    async def stop(self) -> None:
        """Workers finish what is in flight; the writer is kept running meanwhile."""
        self._stopping = True
        await _cancelled(self._worker_keepers)
        workers = [child for child in self.workers if child is not None and child.alive]
        for child in workers:
            child.stop()
        await asyncio.gather(*(child.ended(STOP_S) for child in workers))

    async def stop_writer(self) -> None:
        """The last to go: it closes the log."""
        await _cancelled(self._writer_keepers)
        if self.writer is not None and self.writer.alive:
            self.writer.stop()
            await self.writer.ended(STOP_S)

    # -- all of them together ----------------------------------------------------------------------------------------

    async def health(self) -> str:
        """Empty when every worker accepts connections and can write evidence, else the reason."""
        if not self.workers:
            return "the workers do not accept connections yet"
        if self._stopping:
            return "the gateway is shutting down"
        if self.writer is None:
            return "the evidence writer is not running"
        said = await asyncio.gather(*(_health(child) for child in self.workers))
        return next((reason for reason in said if reason), "")

    async def _look_at(self, child: Child) -> None:
        """Ask for a sign of life: its line is cut where none comes for too long."""
        if child.kind == "writer":
            await child.ask("ping", START_S)
        else:
            await self._counted(child, START_S)

    async def _counted(self, child: Child, timeout_s: float) -> None:
        """Remember what a worker has counted up to now."""
        answer = await child.ask("metrics", timeout_s)
        if answer is not None and child.alive:
            self._last[child.life] = bytes(answer.blobs[0])

    async def metrics(self) -> bytes:
        """The metrics of all processes as one; what a worker that died counted in its last seconds is lost."""
        living = [child for child in self.workers if child is not None]
        await asyncio.gather(*(self._counted(child, ANSWER_S) for child in living))
        self.core.metrics.processes(sum(child is not None for child in self.workers), self.restarts)
        return merge([self.core.metrics.render(), *self._past, *self._last.values()])

    async def reload(self) -> None:
        """Load the policy anew, here and in every worker."""
        for each in filter(None, (self.core.policy, self.core.trial)):
            await each.reload()
        await self.live.reload()
        await self.spread()

    async def spread(self) -> Sequence[str]:
        """Have every worker load the policy anew; what went wrong."""
        living = [child for child in self.workers if child is not None]
        said = await asyncio.gather(*(child.ask("reload", RELOAD_S) for child in living))
        problems = [str(problem) for answer in said if answer is not None for problem in answer.args[2]]
        if None in said:
            problems.append("a worker does not answer; it is restarted with the policy on disk")
        return list(dict.fromkeys(problems))


async def _cancelled(tasks: Sequence[asyncio.Task[None]]) -> None:
    for task in tasks:
        task.cancel()
    if tasks:
        await asyncio.wait(tasks)


async def _health(child: Child | None) -> str:
    if child is None:
        return "a worker is starting"
    answer = await child.ask("health", ANSWER_S)
    return "a worker does not answer" if answer is None else str(answer.args[0])


def bound(address: Address) -> socket.socket:
    """A socket at an address that does not listen yet; SetupError where it cannot be had."""
    family = socket.AF_INET6 if ":" in address.host else socket.AF_INET
    made = socket.socket(family, socket.SOCK_STREAM)
    try:
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        made.bind((address.host, address.port))
    except OSError as error:
        made.close()
        raise SetupError(
            "listen.unavailable",
            f"the proxy port {address} cannot be had: {words_of(error)}",
            hint="if a gateway runs already, stop it or use it (egress doctor); else choose another listen.proxy",
        ) from None
    return made


def share_of(settings: Config, listener: socket.socket, count: int) -> Config:
    """The settings of one of so many workers: limits of the whole gateway are shared evenly."""
    limits, proxy = settings.limits, settings.listen.proxy
    each = replace(
        limits,
        max_connections=-(-limits.max_connections // count),
        max_inflight_bytes=max(limits.max_inflight_bytes // count, limits.max_body_bytes),
        scan_workers=limits.scan_workers or max((os.cpu_count() or 1) // count, 1),
    )
    address = Address(proxy.host, listener.getsockname()[1])
    return replace(settings, limits=each, listen=replace(settings.listen, proxy=address))


@asynccontextmanager
async def supervising(settings: Config, log: Log | None = None) -> AsyncIterator[Fleet]:
    """A gateway of several processes that runs; on leaving, what is in flight is finished and the log closed."""
    log = log or Log()
    log.capture()
    asyncio.get_running_loop().set_exception_handler(log.loop_handler)
    count = serve.worker_count(settings)
    make_state(settings)
    lock = StateLock(
        settings.state.dir / "lock"
    )  # the writer's; looked at before a port is, to name who runs
    lock.acquire()
    lock.release()
    async with AsyncExitStack() as stack:
        keys = keyring(settings, create=not settings.state.database.exists())
        authority = wiring.authority_of(settings, keys)
        combined_bundle(settings.state.dir / "ca-bundle.pem", authority.pem)
        addresses = (settings.listen.proxy, *wiring.listeners_of(settings))
        listeners = [stack.enter_context(bound(address)) for address in addresses]
        live = LiveSettings(settings, lambda _hosts: None, log)  # the workers use them
        fleet = Fleet(share_of(settings, listeners[0], count), listeners, log, live)
        stack.push_async_callback(fleet.stop_writer)
        await fleet.start_writer()
        opening = shared_stores(uuid.uuid4().hex)
        fleet.core = await stack.enter_async_context(
            serve.use_case(fleet.settings, log, opening, scans=False)
        )
        fleet.control = await serve.control_port(
            fleet.settings, fleet.core, stack, fleet.health, fleet.metrics, fleet.spread, live=fleet.live
        )
        stack.push_async_callback(fleet.stop)
        await fleet.start_workers(count)
        yield fleet
