"""What dialects do alike, as a class to begin one from.

A dialect states its `id`, its `rules`, the `paths` at which it is spoken, the `shape` of its bodies and how it reports
`errors`, and reads its events; it writes a method of its own only where it differs from this.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod

from gateway.context.objects import Block, Json, WalkRules
from gateway.ports import EventReading, NativeAnswer, Refusal
from gateway.providers import base, hosts, refusals


class Dialect(ABC):
    """One wire dialect: a `ProviderAdapter` (see there for what each method answers)."""

    id: str
    version: str = "1"
    rules: WalkRules
    paths: re.Pattern[str]  # of normalised request paths, whole
    shape: base.Shape
    errors: base.Errors | None = None  # None: those of the host's provider (`refusals`)
    error_event: str = ""  # the type of the event that reports an error in a stream
    text_arguments: bool = True  # whether whole answers carry tool arguments as JSON in a string

    def matches(self, host: str, path: str) -> bool:
        """At its paths, on any host."""
        return self.paths.fullmatch(path) is not None

    def blocks(self, body: Json) -> list[Block]:
        """The blocks of the shape in document order; then the parameters."""
        return base.list_blocks(body, self.shape)

    def destination(self, host: str, path: str, body: Json) -> tuple[str, str]:
        """The host's provider; the model stands in the body."""
        return hosts.provider(host), base.text_at(body, "model")

    @abstractmethod
    def read_event(self, name: str, data: Json) -> EventReading:
        """What one event, line or chunk carries."""

    def arguments(self, path: tuple[str | int, ...]) -> bool:
        """Members of this name, where arguments are text; else they are objects."""
        return self.text_arguments and path[-1:] == ("arguments",)

    def refuse(self, refusal: Refusal) -> NativeAnswer:
        """An error that SDKs show once and do not retry."""
        return base.error_answer(refusal, self.errors) if self.errors else refusals.refuse(refusal)

    def stream_error(self, refusal: Refusal) -> bytes:
        """The same error in place of an event."""
        if self.errors is None:
            return refusals.stream_error(refusal)
        return base.sse_event(self.errors.body(refusal, base.error_text(refusal)), self.error_event)
