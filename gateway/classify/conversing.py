"""One WebSocket connection: placeholders of all its messages restored in what comes back, answers told apart.

A turn of a conversation holds only what is new and names the response it continues, so the values behind placeholders
belong to the connection and its chain of responses, not to one request. Every stream of a connection (`stream_id`) has
its own order of events; within a stream events keep their order and number.

Which request a server event answers follows from the order of the connection: a provider reads messages in order, so
an event that answers one tells that those before it were read.
"""

from __future__ import annotations

import json
from collections import OrderedDict, deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, override

from gateway.classify.answers import AnswerRestoration
from gateway.classify.hearing import Listener
from gateway.classify.restore import EventRestorer, parsed
from gateway.classify.values import Values
from gateway.ports import Admitted, ProviderAdapter, Refused, Told
from gateway.providers.base import text_at
from gateway.providers.websocket import Spoken

MAX_TURNS: Final = 256  # of one stream that wait for an answer; the oldest is given up
MAX_STREAMS: Final = 64  # of one connection that are told apart
MAX_CHAINS: Final = 4096  # responses that a later connection may continue
_END_OF_FRAME: Final = b"\xff"  # no byte of UTF-8: parts the messages that waited for one another

type Openers = Mapping[str, Callable[[], str | None]]


@dataclass(frozen=True, slots=True)
class Frame:
    """A text message as the restorer of events sees it."""

    raw: bytes = field(repr=False)
    data: str = field(repr=False)
    name: str = ""

    def with_data(self, new: str) -> bytes:
        """The message with other text."""
        return new.encode("utf-8", "surrogatepass") + _END_OF_FRAME

    @override
    def __repr__(self) -> str:
        return f"Frame({len(self.raw)} bytes)"


@dataclass(frozen=True, slots=True)
class Carried:
    """What later messages of a chain build on: placeholders, and the hosts that people named (None: any)."""

    openers: Openers = field(default_factory=dict, repr=False)
    hosts: frozenset[str] | None = frozenset()


class GrowingValues(Values):
    """The values of every message that was admitted so far."""

    def __init__(self) -> None:
        super().__init__({})

    @property
    def carried(self) -> Carried:
        """These placeholders, also those that are yet to come, and the hosts so far."""
        return Carried(self.openers, self.allowed_hosts)

    def extend(self, more: Carried) -> None:
        """Restore these placeholders too, from now on; tool calls may take them to these hosts too."""
        for token in more.openers.keys() - self._open.keys():
            self._starts |= {token[:n] for n in range(1, len(token))}
            self._longest = max(self._longest, len(token))
        self._open.update(more.openers)
        if self._allowed is not None:
            self._allowed = None if more.hosts is None else self._allowed | more.hosts


def _carried(admitted: Admitted) -> Carried:
    restoration = admitted.restoration
    if not isinstance(restoration, AnswerRestoration):
        return Carried()
    return Carried(restoration.values.openers, restoration.values.allowed_hosts)


@dataclass(slots=True)
class Chains:
    """What the responses of a project's connections carry, for those that continue them; bounded, holds no values.

    `told` is told of every response that is kept here.
    """

    told: Callable[[str, str, Carried], None] = lambda project, response_id, carried: None
    _known: OrderedDict[tuple[str, str], Carried] = field(default_factory=OrderedDict, repr=False)

    def keep(self, project: str, response_id: str, carried: Carried) -> None:
        """A response may be continued on another connection."""
        if response_id and (carried.openers or carried.hosts):
            self.adopt(project, response_id, carried)
            self.told(project, response_id, carried)

    def adopt(self, project: str, response_id: str, carried: Carried) -> None:
        """Take over what is known elsewhere."""
        self._known[project, response_id] = carried
        self._known.move_to_end((project, response_id))
        while len(self._known) > MAX_CHAINS:
            self._known.popitem(last=False)

    def knows(self, project: str, response_id: str) -> bool:
        """Whether a response is known here."""
        return (project, response_id) in self._known

    def of(self, project: str, response_id: str) -> Carried:
        """What a response carries that a message continues."""
        return self._known.get((project, response_id), Carried())


@dataclass(slots=True)
class Turn:
    """A message that was admitted, and what was counted of its answer (ports.AnswerCounts)."""

    request_id: str
    kind: str
    asks: bool
    restored: int = 0
    withheld: int = 0
    refused: int = 0
    answered: bool = False
    listener: Listener = field(default_factory=Listener)

    @property
    def usage(self) -> Mapping[str, int] | None:
        """See ports.AnswerCounts."""
        return self.listener.usage.tokens


@dataclass(slots=True)
class Conversation:
    """ports.Conversing for one connection."""

    adapter: ProviderAdapter
    spoken: Spoken
    project: str
    chains: Chains
    values: GrowingValues = field(default_factory=GrowingValues, repr=False)
    _turns: dict[str, deque[Turn]] = field(default_factory=dict)
    _restorers: dict[str, EventRestorer] = field(default_factory=dict, repr=False)

    @property
    def binary(self) -> bool:
        """See ports.Conversing."""
        return self.spoken.binary

    def sent(self, request_id: str, admitted: Admitted) -> Turn:
        """See ports.Conversing."""
        message = _parsed(admitted.body)
        for named in _continued(message):
            self.values.extend(self.chains.of(self.project, named))
        self.values.extend(_carried(admitted))
        kind = self.spoken.kind(message)
        turn = Turn(request_id, kind, kind in self.spoken.asks)
        if isinstance(admitted.restoration, AnswerRestoration):
            turn.listener = admitted.restoration.listener
        self._queue(text_at(message, "stream_id")).append(turn)
        return turn

    def told(self, message: bytes) -> Told:
        """See ports.Conversing."""
        stream, event = "", None
        if not self._is_read(message):
            return Told((message,))
        if b'"stream_id"' in message:
            event = _parsed(message)
            stream = text_at(event, "stream_id")
        queue = self._queue(stream)
        current = next((turn for turn in queue if turn.asks), None)
        messages = self._restored(stream, message, current)
        if not queue and b'"response' not in message:
            return Told(messages)
        if current is not None and current is queue[0] and current.answered and not self._is_telling(message):
            return Told(messages)
        event = _parsed(message) if event is None else event
        answered, ended = self._follow(queue, event, message)
        return Told(messages, answered, ended)

    def end(self) -> tuple[bytes, ...]:
        """See ports.Conversing."""
        return tuple(piece for restorer in self._restorers.values() for piece in _parts(restorer.flush()))

    def refusal(self, message: bytes, refused: Refused) -> bytes | None:
        """See ports.Conversing."""
        answer = _parsed(refused.answer.body)
        shapes = (("error", "message"), ("error",), ("message",), ("detail",))
        text = next(filter(None, (text_at(answer, *shape) for shape in shapes)), "")
        ids = [v for n, v in refused.answer.headers if n.lower() == b"x-request-id"]
        return self.spoken.refusal(_parsed(message), text, ids[0].decode("latin-1") if ids else "")

    def _queue(self, stream: str) -> deque[Turn]:
        if stream not in self._turns and len(self._turns) >= MAX_STREAMS:
            idle = next((name for name, queue in self._turns.items() if name and not queue), None)
            if idle is None:
                stream = ""
            else:
                del self._turns[idle]
        return self._turns.setdefault(stream, deque(maxlen=MAX_TURNS))

    def _restored(self, stream: str, message: bytes, current: Turn | None) -> tuple[bytes, ...]:
        listener = current.listener if current is not None and current.listener.heard is not None else None
        if not self.values and listener is None:
            return (message,)
        if stream not in self._restorers and len(self._restorers) >= MAX_STREAMS:
            stream = ""
        restorer = self._restorers.get(stream)
        if restorer is None:
            restorer = self._restorers[stream] = EventRestorer(self.adapter, self.values)
        frame = Frame(message + _END_OF_FRAME, message.decode("utf-8"))
        data = parsed(frame.data)
        reading = restorer.read(frame, data)
        if listener is not None:
            listener.event(frame.data, data, reading, self.adapter)
        values = self.values
        if not values:
            return (message,)
        before = values.restored, values.foreign, values.withheld
        pieces = _parts(restorer.take(frame, data, reading))
        if current is not None:
            current.restored += values.restored - before[0]
            current.withheld += values.foreign - before[1]
            current.refused += values.withheld - before[2]
        return pieces

    def _is_read(self, message: bytes) -> bool:
        """Whether a message can be an event: where text comes in binary ones, sound may come in them as well."""
        if not self.spoken.binary:
            return True
        try:
            return message.decode("utf-8").lstrip()[:1] == "{"
        except UnicodeDecodeError:
            return False

    def _is_telling(self, message: bytes) -> bool:
        if self.spoken.binary:
            return True
        return b'"error"' in message or any(kind.encode() in message for kind in self.spoken.ends)

    def _follow(
        self, queue: deque[Turn], event: Any, message: bytes
    ) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Which turns a server event answers, and which it ends."""
        kind, asked = self.spoken.kind(event), [turn for turn in queue if turn.asks]
        if kind in self.spoken.begins or kind in self.spoken.ends:
            self.chains.keep(self.project, text_at(event, "response", "id"), self.values.carried)
        if not queue:
            return (), ()
        if kind in self.spoken.ends and asked:
            asked[0].listener.usage.note(event)
            return self._over(queue, asked[0], ends=True)
        if kind in self.spoken.begins:
            waiting = next((turn for turn in asked if not turn.answered), None)
            return self._over(queue, waiting, ends=False) if waiting is not None else ((), ())
        if kind == "error":
            return self._over(queue, queue[0], ends=self.spoken.error_ends or not queue[0].answered)
        if queue[0].asks and kind.startswith("response.") and not queue[0].answered:
            return self._over(queue, queue[0], ends=False)
        family = queue[0].kind.partition(".")[0]
        if not queue[0].asks and family and kind.startswith(family + "."):
            return self._over(queue, queue[0], ends=True)
        return (), ()

    def _over(self, queue: deque[Turn], turn: Turn, *, ends: bool) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """This turn has an answer, so those before it were read; a message that asks for nothing is over with that."""
        answered: list[str] = []
        ended: list[str] = []
        for each in list(queue):
            if not each.answered:
                each.answered = True
                answered.append(each.request_id)
            if (each is turn and ends) or not each.asks:
                ended.append(each.request_id)
                queue.remove(each)
            if each is turn:
                break
        return tuple(answered), tuple(ended)


def continued(message: bytes) -> list[str]:
    """The responses that a client's message continues."""
    return _continued(_parsed(message)) if b"previous_response_id" in message else []


def _continued(message: Any) -> list[str]:
    named = (text_at(message, *place, "previous_response_id") for place in ((), ("response",)))
    return [name for name in named if name]


def _parts(joined: bytes) -> tuple[bytes, ...]:
    return tuple(joined.split(_END_OF_FRAME)[:-1]) if joined else ()


def _parsed(message: bytes) -> Any:
    try:
        return json.loads(message)
    except (ValueError, RecursionError):
        return None
