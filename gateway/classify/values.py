"""The values behind a request's placeholders: which are in a text, and the text with them in place."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from gateway.classify.nesting import escape_depth, escaped
from gateway.classify.placeholders import PREFIX, form_at
from gateway.classify.wayout import leads_out
from gateway.context.objects import Json

type Substitution = tuple[int, int, str]
"""Start and end of a placeholder in a text, and what takes its place."""


class Values:
    """The values behind a request's placeholders, opened when an answer first holds one.

    The functions of `tokens` return None where a value cannot be had any more; the placeholder then stays. No value is
    put into a tool call that leads to a host that is neither local nor in `allowed_hosts`; None: into every call.
    """

    def __init__(
        self,
        tokens: Mapping[str, Callable[[], str | None]],
        allowed_hosts: frozenset[str] | None = frozenset(),
    ) -> None:
        self._open = dict(tokens)
        self._known: dict[str, str | None] = {}
        self._starts = {token[:n] for token in tokens for n in range(1, len(token))}
        self._longest = max((len(t) for t in tokens), default=0)
        self._allowed = allowed_hosts
        self.restored = 0
        self.foreign = 0
        self.withheld = 0

    def __bool__(self) -> bool:
        return bool(self._open)

    @property
    def openers(self) -> Mapping[str, Callable[[], str | None]]:
        """The placeholders, each with what opens its value."""
        return self._open

    @property
    def allowed_hosts(self) -> frozenset[str] | None:
        """Where tool calls may take values, beside this machine; None: anywhere."""
        return self._allowed

    @property
    def guarded(self) -> bool:
        """Whether tool calls are looked at before a value is put into them."""
        return self._allowed is not None

    def leads_out(self, call: Json) -> bool:
        """Whether a tool call must not get values; see `gateway.classify.wayout`."""
        return self._allowed is not None and leads_out(call, self._allowed)

    def may_hold(self, data: str | bytes) -> bool:
        """Whether a text, or the JSON that holds it, can hold anything to restore; a quick look."""
        return PREFIX in data if isinstance(data, str) else PREFIX.encode() in data

    def held_length(self, text: str) -> int:
        """How many characters at the end of a text could be the start of a placeholder, and are not the end of one."""
        for n in range(min(self._longest - 1, len(text)), 0, -1):
            if (
                text[-n] == PREFIX[0]
                and text[-n:] in self._starts
                and not self._goes_over(text, len(text) - n)
            ):
                return n
        return 0

    def _goes_over(self, text: str, at: int) -> bool:
        """Whether a whole placeholder goes on behind `at`: one in 32 ends in the letter that all begin with."""
        start = text.find(PREFIX, max(0, at - self._longest), at)
        while start >= 0:
            token = self._token_at(text, start)
            if token is not None and start + len(token) > at:
                return True
            start = text.find(PREFIX, start + 1, at)
        return False

    def first(self, text: str) -> int:
        """Where the first placeholder of this request begins; -1 where there is none."""
        at = text.find(PREFIX)
        while at >= 0 and self._token_at(text, at) is None:
            at = text.find(PREFIX, at + 1)
        return at

    def withhold(self, text: str) -> None:
        """Count the placeholders of a text that stays as it is."""
        at = text.find(PREFIX)
        while at >= 0:
            self.withheld += self._token_at(text, at) is not None
            at = text.find(PREFIX, at + 1)

    def substitutions(
        self, text: str, before: str | None = None, *, declared: bool = True
    ) -> list[Substitution]:
        """What to put where in a text.

        `before` is the JSON text that precedes it in the same string: then a value is escaped as deep as the string
        that it stands in. None: the text is no JSON.
        """
        found: list[Substitution] = []
        at = text.find(PREFIX)
        while at >= 0:
            token = self._token_at(text, at)
            value = self._value(token) if token else None
            end = at + 1
            if token and value is not None:
                depth = 0 if before is None else escape_depth(before + text[:at], declared=declared)
                end = at + len(token)
                found.append((at, end, escaped(value, depth)))
                self.restored += 1
            elif form_at(text, at):
                self.foreign += 1
            at = text.find(PREFIX, end)
        return found

    def substitute(
        self, text: str, before: str | None = None, *, declared: bool = True, bytewise: bool = False
    ) -> str:
        """The text with values in place. `bytewise`: it is bytes read as Latin-1."""
        found = self.substitutions(text, before, declared=declared)
        out, at = [], 0
        for start, end, value in found:
            if bytewise:
                value = value.encode("utf-8", "surrogatepass").decode("latin-1")  # noqa: PLW2901
            out += [text[at:start], value]
            at = end
        return "".join([*out, text[at:]]) if found else text

    def _token_at(self, text: str, at: int) -> str | None:
        form = form_at(text, at)
        if form in self._open:
            return form
        return next((t for t in self._open if text.startswith(t, at)), None)

    def _value(self, token: str) -> str | None:
        if token not in self._known:
            self._known[token] = self._open[token]()
        return self._known[token]
