"""Telling people that something waits for them, by webhook and by command. Nothing here can delay or fail a request.

A notice names the held object and says what kind it is, how large, and for which reasons: never what it says, where it
stands or how it is called. Each way out has a queue of its own, bounded: what finds it full is dropped and counted. An
attempt that fails is made again, later and later; after the last one the notice is given up, and the object still
stands in `egress quarantine list` or `egress approvals list`.
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import os
import signal
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Final, Protocol

import orjson

from gateway.app.tokens import token_of
from gateway.app.webclient import WebClient, WebError
from gateway.config import Config
from gateway.telemetry.log import Log
from gateway.telemetry.metrics import Metrics
from gateway.workers import spawn

FACTS: Final = (
    "id",
    "kind",
    "project",
    "time",
    "destination",
    "policy",
    "object_kind",
    "bytes",
    "reason_codes",
)
"""What is told of a held object."""

_AGAIN: Final = frozenset({408, 425, 429})  # and every 5xx: asked again; other answers would stay as they are
_LONGEST_S: Final = 60.0
_CLOSING_S: Final = 2.0
_MAX_ANSWER: Final = 65_536


class NotTold(Exception):  # noqa: N818 - an outcome, not a fault
    """One attempt failed; `final` where another one would fail as well."""

    def __init__(self, code: str, *, final: bool = False) -> None:
        super().__init__(code)
        self.code, self.final = code, final


class Channel(Protocol):
    """One way to tell."""

    name: str

    async def send(self, body: bytes, delivery: str) -> None:
        """One attempt; NotTold where it failed."""
        ...


def signature(key: bytes, seconds: int, body: bytes) -> str:
    """What a receiver checks: HMAC-SHA256 under the shared secret over the time, a dot and the body."""
    return "v1=" + hmac.digest(key, str(seconds).encode() + b"." + body, hashlib.sha256).hex()


@dataclass(slots=True)
class Webhook:
    """A POST of the notice. With a secret it is signed: `x-egress-signature` over `x-egress-timestamp` and the body."""

    url: str = field(repr=False)
    client: WebClient
    key: bytes = field(default=b"", repr=False)
    name: str = "webhook"

    async def send(self, body: bytes, delivery: str) -> None:
        """See Channel."""
        seconds = int(time.time())
        headers = {
            "Content-Type": "application/json",
            "User-Agent": "egress",
            "X-Egress-Delivery": delivery,
            "X-Egress-Timestamp": str(seconds),
        }
        if self.key:
            headers["X-Egress-Signature"] = signature(self.key, seconds, body)
        try:
            answer = await asyncio.to_thread(
                self.client.ask, "POST", self.url, headers, body, limit=_MAX_ANSWER
            )
        except WebError as error:
            raise NotTold(error.code) from None
        if not 200 <= answer.status < 300:
            raise NotTold("notify.refused", final=answer.status < 500 and answer.status not in _AGAIN)


@dataclass(slots=True)
class Command:
    """A command with the notice on its standard input; it gets nothing of this process's environment but its PATH."""

    arguments: Sequence[str]
    seconds: float
    name: str = "command"

    async def send(self, body: bytes, delivery: str) -> None:
        """See Channel."""
        environment = {"PATH": os.environ.get("PATH", os.defpath), "EGRESS_DELIVERY": delivery}
        try:
            process = await asyncio.create_subprocess_exec(
                *self.arguments,
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.DEVNULL,
                stderr=asyncio.subprocess.DEVNULL,
                env=environment,
                start_new_session=True,
            )
        except OSError:
            raise NotTold("notify.command", final=True) from None
        try:
            async with asyncio.timeout(self.seconds):
                await process.communicate(body)
        except TimeoutError:
            raise NotTold("notify.timeout") from None
        finally:
            if process.returncode is None:
                with suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
                await process.wait()
        if process.returncode:
            raise NotTold("notify.command")


@dataclass(slots=True)
class _Way:
    channel: Channel
    queue: asyncio.Queue[tuple[bytes, str]]
    failing: bool = False


@dataclass(slots=True)
class Notifier:
    """All ways. `counted` hears (channel, sent | failed | dropped, code); `first_s` is the first pause of a repeat."""

    channels: Sequence[Channel] = ()
    events: frozenset[str] = frozenset({"held"})
    length: int = 256
    attempts: int = 6
    first_s: float = 1.0
    counted: Callable[[str, str, str], None] = lambda *_: None
    _ways: list[_Way] = field(default_factory=list)
    _tasks: list[asyncio.Task[None]] = field(default_factory=list)

    def start(self) -> None:
        """Begin to tell; on the running loop."""
        self._ways = [_Way(channel, asyncio.Queue(self.length)) for channel in self.channels]
        self._tasks = [spawn(self._serve(way), name="notify") for way in self._ways]

    def tell(self, event: str, facts: Mapping[str, Any], **more: Any) -> None:
        """Put a notice on every way, if it is of a kind that is told; never waits, never raises."""
        state = "held" if event.endswith((".held", ".pending")) else "decided"
        if state not in self.events or not self._ways:
            return
        told = {"event": event, **{name: facts[name] for name in FACTS if name in facts}, **more}
        body, delivery = orjson.dumps(told), f"{event}:{facts.get('id', '')}"
        for way in self._ways:
            try:
                way.queue.put_nowait((body, delivery))
            except asyncio.QueueFull:
                self.counted(way.channel.name, "dropped", "notify.queue_full")

    @property
    def waiting(self) -> int:
        """Notices that were not told yet."""
        return sum(way.queue.qsize() for way in self._ways)

    @property
    def failing(self) -> list[str]:
        """The ways whose last notice was given up, as health says it."""
        return [f"notify.{way.channel.name}" for way in self._ways if way.failing]

    async def _serve(self, way: _Way) -> None:
        while True:
            body, delivery = await way.queue.get()
            try:
                await self._deliver(way, body, delivery)
            finally:
                way.queue.task_done()

    async def _deliver(self, way: _Way, body: bytes, delivery: str) -> None:
        code = ""
        for attempt in range(self.attempts):
            if attempt:
                await asyncio.sleep(min(self.first_s * 2 ** (attempt - 1), _LONGEST_S))
            try:
                await way.channel.send(body, delivery)
            except NotTold as error:
                code = error.code
                if error.final:
                    break
            except Exception as error:  # noqa: BLE001 - its text may hold an address; the way goes on with the next
                code = f"notify.{type(error).__name__}"
            else:
                way.failing = False
                self.counted(way.channel.name, "sent", "")
                return
            way.failing = True
        self.counted(way.channel.name, "failed", code)

    async def close(self) -> None:
        """Tell what can still be told in two seconds, and end."""
        with suppress(TimeoutError):
            async with asyncio.timeout(_CLOSING_S):
                await asyncio.gather(*(way.queue.join() for way in self._ways))
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)


def notifier_of(config: Config, metrics: Metrics, log: Log) -> Notifier:
    """What the configuration asks for; SetupError where its secret cannot be read."""
    settings = config.notify
    channels: list[Channel] = []
    if settings.webhook:
        client = WebClient.of(config, settings.timeout_s)
        channels.append(Webhook(settings.webhook, client, token_of(settings.secret_file)))
    if settings.command:
        channels.append(Command(settings.command, settings.timeout_s))

    def counted(channel: str, result: str, code: str) -> None:
        metrics.notified(channel, result)
        if result != "sent":
            log.event("notify_failed", level="warning", code=code, plugin=channel)

    made = Notifier(channels, frozenset(settings.events), settings.queue, settings.attempts, counted=counted)
    metrics.queue("notify", lambda: made.waiting)
    return made
