"""Values that stand before what names them: `value="..." name="api_key"`, "use `...` as the access token"."""

from __future__ import annotations

import re
from collections.abc import Iterator
from string import ascii_letters
from typing import Final, override

from gateway.detect.families.named import NamedValues
from gateway.detect.keynames import KeyKind, key_kind
from gateway.detect.matcher import Trigger
from gateway.detect.scope import Scope

_WINDOW: Final = 480
_REST: Final = re.compile(r"[\w.-]{0,24}")
_SAID: Final = re.compile(
    r"(?P<q>[\"'`])(?P<v>[^\s\"'`]{6,400})(?P=q)(?:,? which is| as| for| is) (?:the|your|my|our|its|an?|this|that) "
    r"(?!weak|bad|common|strong|poor)(?P<key>(?:[\w-]{1,20} ){0,3}[\w-]{1,40})\Z"
)
_PAIR: Final = re.compile(
    r"(?i:value|content|data)\\{0,3}[\"']?\s{0,4}[=:]\s{0,4}\\{0,3}(?P<q>[\"'])(?P<v>[^\s\"'\\]{6,400})\\{0,3}(?P=q)"
    r"[ ,]{1,3}\s{0,24}(?:(?:type|class|id)=[\"'][\w -]{0,40}[\"'] )?\\{0,3}[\"']?(?i:name|key|id)\\{0,3}[\"']?"
    r"\s{0,4}[=:]\s{0,4}\\{0,3}[\"'](?P<key>[\w.-]{1,60})\Z"
)
_LISTED: Final = re.compile(
    r"(?:value|default|content): {0,4}[\"']?(?P<v>[^\s\"']{6,400})[\"']?\n\s{0,24}(?:name|key): {0,4}"
    r"[\"']?(?P<key>[\w.-]{1,60})\Z"
)
_MOVED: Final = re.compile(
    r"(?P<q>[\"'])(?P<v>[^\s\"']{6,400})(?P=q) (?:TO|to|INTO|into) (?P<key>[A-Za-z][\w-]{0,59})\.?\Z"
)
_TYPED: Final = re.compile(
    r"(?i:value)=(?P<q>[\"'])(?P<v>[^\s\"'\\]{6,400})(?P=q)[^<>\n]{0,80} (?i:type|name|id)=[\"'](?P<key>[\w.-]{1,60})\Z"
)
# Wider than the words of assignments, as the engine finds few literals faster than many: the key that follows is read.
_NAMING: Final = (
    "(?:passw|pass(?:phrase|code)|secret|token|[a-z_. -]key|credential|webhook|pwd"
    "|[._-]pass|[._-]pw|basic_auth|_pat)"
)
_LONGEST_NAME: Final = 60
_LAST_WORD: Final = re.compile(r"[\w.-]+\Z")
_OPEN_NAMES: Final = frozenset(("key", "keys", "phrase"))  # the words before them say what they name
_READ: Final = (
    "preceding: read"  # of `Scope.consumed`: the end of the last key, which two naming words may lie in
)
_COST: Final = 6  # units of the budget for a key
_FORM_COST: Final = 1  # and for a place where what stands before it may begin
_VALUE_WORDS: Final = ("value", "content", "data", "default")
_NEAR: Final = 80
_MARKS: Final = (" ", ":", '"', "'")  # what may stand before the key
_ASSIGNED: Final = (_PAIR, _LISTED, _TYPED)


class Preceding(NamedValues):
    """Finds values by the name that comes after them."""

    place = "preceding"
    triggers = (
        Trigger(
            "(?:[\"'`](?:(?:,? which is| as| for| is) (?:the|your|my|our|its|an?|this|that) [\\w -]{0,40}"
            "|(?: in)? to [\\w-]{0,24})"
            "|[\"' ,\n](?:name|key|id|type)\\\\{0,3}[\"']? ?[=:] ?\\\\{0,3}[\"']?[\\w.-]{0,24})" + _NAMING,
            0,
            caseless=True,
        ),
    )

    @override
    def _read(self, scope: Scope, end: int) -> None:
        text = scope.text
        rest = _REST.match(text, end)
        stop = rest.end() if rest else end
        if stop == scope.consumed.get(_READ):
            return
        scope.consumed[_READ] = stop
        before = text[max(0, end - _WINDOW) : stop]
        last = _LAST_WORD.search(before, max(0, len(before) - _LONGEST_NAME))
        if last is None or (key_kind(last[0]) is KeyKind.NONE and last[0].lower() not in _OPEN_NAMES):
            return
        scope.budget.hits -= _COST
        for form, at in _forms(before, last.start()):
            scope.budget.hits -= _FORM_COST
            found = form.match(before, at)
            if found is None:
                continue
            key = "_".join(found["key"].split())
            if key_kind(key) is not KeyKind.NONE:
                scope.consumed[self.place] = stop
                low = stop - len(before)
                self._assignments.judge(scope, key, low + found.start("v"), "=", low + found.end("v"))
            return


def _forms(before: str, key: int) -> Iterator[tuple[re.Pattern[str], int]]:
    """Which forms may begin where, for a last word that begins at `key`; the nearest to it first."""
    mark = before[key - 1 : key]
    if mark == " ":
        close = _last_quote(before, key)
        start = _last_quote(before, close)
        if start >= 0:
            yield _SAID, start
            yield _MOVED, before.rfind(before[close], 0, close)
    if mark in _MARKS and not _is_first(before, key):
        lowered = before.encode("ascii", "replace").decode("ascii").lower()  # character by character
        at = key
        while (at := max(lowered.rfind(word, 0, at) for word in _VALUE_WORDS)) >= 0:
            yield from ((form, at) for form in _ASSIGNED)


def _is_first(before: str, key: int) -> bool:
    """Whether `{"name": "` stands before the key: then its value comes behind it."""
    head = before[max(0, key - _NEAR) : key].rstrip(" \t\"'\\")
    name = head.removesuffix(":").rstrip(" \t\"'\\").rstrip(ascii_letters)
    return head.endswith(":") and name.rstrip(" \t\n\"'\\").endswith("{")


def _last_quote(text: str, stop: int) -> int:
    return max(text.rfind(quote, 0, max(0, stop)) for quote in "\"'`")
