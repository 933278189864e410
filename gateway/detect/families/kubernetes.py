"""Values of Kubernetes Secrets: in a document of kind Secret, everything under `data` and `stringData` is secret.

Keys stay readable; a ConfigMap beside it is left alone. YAML (with the line numbers of a Read tool) and JSON.
"""

from __future__ import annotations

import re

from gateway.context.findings import Category, Severity
from gateway.detect.matcher import Trigger
from gateway.detect.samples import is_filler, is_reference
from gateway.detect.scope import Scope
from gateway.detect.typelist import TypeRow

_MAX = 64_000
_AHEAD = 4_096  # how far behind `kind` the data may begin
_BRACES = 400
_LINE_COST, _OBJECT_COST, _VALUE_COST = 1, 6, 3  # units of the budget
_HEAD = 16  # characters of a head from its name on
_SOUGHT = "kubernetes_ahead"  # up to where no data was found behind a kind
_NUMBERED = r"(?:[ ]{0,8}[0-9]{1,6}[\t→:|])?"
_EOL = re.compile(r"\r?\n|(?<!\\)\\n")
_DATA = re.compile(rf"{_NUMBERED}( {{0,16}})(?:data|stringData):\s{{0,4}}\Z")
_ENTRY = re.compile(rf"{_NUMBERED}( {{1,32}})[\"']?([A-Za-z0-9._-]{{1,253}})[\"']?: ?(.{{0,16000}})\Z")
_BLOCK = re.compile(rf"{_NUMBERED}( {{1,64}})(\S.{{0,16000}})\Z")
_KIND_LINE = re.compile(rf"{_NUMBERED} {{0,16}}(?:- )?kind: [\"']?Secret\s{{0,4}}\Z")
_NEXT_DOCUMENT = re.compile(r"(?:\n|\\n)(?:[ ]{0,8}[0-9]{1,6}[\t→:|])?---")
_JSON_DATA = re.compile(r"\\{0,3}\"(?:data|stringData)\\{0,3}\"\s{0,4}:\s{0,4}\{")
_JSON_PAIR = re.compile(
    r"\\{0,3}\"[A-Za-z0-9._-]{1,253}\\{0,3}\"\s{0,40}:\s{0,40}\\{0,3}\"([^\"\\]{1,16000})"
)
_EXAMPLE = "\nkind: Secret\ndata:\n  password: RVIueURaa2E4akJsTQ==\n"
_WHAT = ("kubernetes_secret", Category.SECRET, Severity.CRITICAL)


class KubernetesSecrets:
    """Finds the values of Secret documents."""

    contextual = True
    triggers = (
        Trigger("kind: [\"']?Secret", 0),
        Trigger('kind\\\\{0,3}":[ ]{0,4}\\\\{0,3}"Secret\\\\{0,3}"', 0),
    )
    described = (
        TypeRow(
            "kubernetes-secret", _WHAT[0], _WHAT[1], _WHAT[2], _EXAMPLE, "Kubernetes API reference, Secret v1"
        ),
    )

    def find(self, scope: Scope, end: int) -> None:
        """See Family."""
        if end <= scope.consumed.get("kubernetes", 0):
            return
        if '"' in scope.text[max(0, end - 12) : end - 6]:
            self._json(scope, end)
        else:
            self._yaml(scope, end)

    def _yaml(self, scope: Scope, end: int) -> None:
        text = scope.text
        line_start = _line_start(text, end)
        following = _EOL.search(text, end, end + 8)
        if not _KIND_LINE.match(text[line_start : following.start() if following else end + 1].rstrip("'\"")):
            return
        low = max(scope.consumed.get("kubernetes", 0), end - _MAX, 0)
        separator = text.rfind("---", low, line_start)
        low = low if separator < 0 else separator + 3
        close = _NEXT_DOCUMENT.search(text, end, end + _MAX)
        high = close.start() if close else min(len(text), end + _MAX)
        scope.consumed["kubernetes"] = high
        indent: int | None = None
        for start, stop in _lines(text, low, high):
            scope.budget.hits -= _LINE_COST
            line = text[start:stop]
            opened = _DATA.match(line)
            if opened:
                indent = len(opened[1])
                continue
            if indent is None:
                continue
            entry, block = _ENTRY.match(line), _BLOCK.match(line)
            if entry and len(entry[1]) > indent:
                self._value(scope, start + entry.start(3), entry[3])
            elif (
                block and len(block[1]) > indent
            ):  # a line of a block scalar: text, or base64 that is wrapped
                self._value(scope, start + block.start(2), block[2])
            elif line.strip():
                indent = None

    def _json(self, scope: Scope, end: int) -> None:
        text = scope.text
        scope.budget.hits -= _OBJECT_COST
        low = _open_brace(text, end, max(0, end - _MAX, scope.consumed.get("kubernetes", 0)))
        scope.consumed["kubernetes"] = end
        block, found = _data_block(text, low, end), False
        while block is not None:
            found = True
            block = _data_block(text, self._pairs(scope, block), end)
        if found:
            return
        block = _data_block(text, max(end, scope.consumed.get(_SOUGHT, 0)), end + _AHEAD)
        if block is not None:
            self._pairs(scope, block)
        else:
            scope.consumed[_SOUGHT] = end + _AHEAD - _HEAD

    def _pairs(self, scope: Scope, block: re.Match[str]) -> int:
        """Add the values of the members in `block`; where it ends."""
        text = scope.text
        stop = text.find("}", block.end(), block.end() + _MAX)
        stop = stop if stop >= 0 else min(len(text), block.end() + _MAX)
        for pair in _JSON_PAIR.finditer(text, block.end(), stop):
            self._value(scope, pair.start(1), pair[1])
        scope.consumed["kubernetes"] = max(scope.consumed["kubernetes"], stop)
        return stop

    @staticmethod
    def _value(scope: Scope, start: int, value: str) -> None:
        scope.budget.hits -= _VALUE_COST
        stripped = value.strip().strip("\"'")
        start += len(value) - len(value.lstrip().lstrip("\"'"))
        if (
            len(stripped) < 4
            or stripped in {"null", "|", ">-", "|-"}
            or is_reference(stripped)
            or is_filler(stripped)
        ):
            return
        scope.add((start, start + len(stripped)), _WHAT, 960, "kubernetes-secret")


def _data_block(text: str, low: int, high: int) -> re.Match[str] | None:
    """The first head of `data` or `stringData` whose name lies in `low..high`."""
    at = text.find("ata", low, high)
    while at >= 0:
        block = _JSON_DATA.search(text, max(low, at - 12), at + _HEAD)
        if block is not None:
            return block
        at = text.find("ata", at + 3, high)
    return None


def _line_start(text: str, end: int) -> int:
    """Where the line that ends near `end` begins: behind a line break, or one that is written as an escape."""
    low = max(0, end - 48)
    breaks = ((text.rfind("\n", low, end), 1), (text.rfind("\\n", low, end), 2))
    return max((at + width for at, width in breaks if at >= 0), default=low)


def _lines(text: str, low: int, high: int) -> list[tuple[int, int]]:
    spans, start = [], low
    for end in _EOL.finditer(text, low, high):
        spans.append((start, end.start()))
        start = end.end()
    spans.append((start, high))
    return spans


def _open_brace(text: str, at: int, low: int) -> int:
    """The brace that opens the object round `at`, looking no further back than `low` and a number of braces."""
    depth = 0
    for _ in range(_BRACES):
        left = max(text.rfind("{", low, at), text.rfind("}", low, at))
        if left < 0:
            break
        if text[left] == "}":
            depth += 1
        elif depth == 0:
            return left
        else:
            depth -= 1
        at = left
    return low
