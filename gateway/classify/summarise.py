"""The summarisers that are shipped: the shape of a text and counts, made here, without any model.

json_schema      members and types of a JSON text (or of NDJSON lines), lengths of arrays
csv_schema       columns, their types and how many cells are filled
log_templates    lines with everything but plain words left out, and how often each occurs
python_outline   classes, functions and imports, by the parser of Python itself
code_outline     lines that declare something, for other languages
counts           nothing but how much was withheld
auto             the first of these that fits the text

Each begins with how much was withheld, and says no more than that where it cannot read the text. Names that stand in
an extract are identifiers; values never do.
"""

from __future__ import annotations

import ast
import csv
import re
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final

from gateway.context import jsontext
from gateway.context.objects import Limits
from gateway.errors import BodyError, PolicyError

_LIMITS: Final = Limits()
_MAX_NAMES, _MAX_DEPTH, _MAX_LINES, _MAX_SOURCE = 60, 6, 80, 200_000
_IDENTIFIER: Final = re.compile(r"[A-Za-z_$][A-Za-z0-9_.$-]{0,47}")
_WORD: Final = re.compile(r"[A-Za-z][a-z]{1,15}[:,.;]?|[A-Z]{2,8}:?")
_DECLARES: Final = re.compile(
    r"\s{0,40}(?:(?:export|default|public|private|protected|static|async|pub|final|abstract|unsafe)\s{1,4}){0,4}"
    r"(class|interface|struct|enum|trait|impl|func|function|fn|def|type|module|namespace|package)\s{1,4}"
    r"([A-Za-z_$][A-Za-z0-9_$]{0,47})"
)

type _Extract = Callable[[str], list[str] | None]


def counts(text: str) -> str:
    """The head of every extract: all that is said where nothing else can be."""
    lines = text.count("\n") + bool(text and not text.endswith("\n"))
    return f"[extract by the egress gateway; withheld: {lines} lines, {len(text)} characters]"


class Extract:
    """ports.Summariser over one function, which gives the lines of an extract or None where the text does not fit."""

    version = "1"

    def __init__(self, name: str, *extracts: _Extract) -> None:
        self.id = name
        self._extracts = extracts

    def check(self, parameters: Mapping[str, str]) -> None:
        """See ports.Summariser; none takes parameters."""
        for name in parameters:
            raise PolicyError("policy.invalid", f"{self.id} takes no parameter {name!r}")

    def summarise(self, text: str, parameters: Mapping[str, str]) -> str:
        """See ports.Summariser."""
        for extract in self._extracts:
            lines = extract(text)
            if lines is not None:
                return "\n".join((counts(text), *lines[:_MAX_LINES], *_more(len(lines) - _MAX_LINES)))
        return counts(text)


def _more(count: int) -> Sequence[str]:
    return (f"... {count} more",) if count > 0 else ()


# -- JSON ----------------------------------------------------------------------------------------------------------


def json_schema(text: str) -> list[str] | None:
    """The shape of a JSON container, or of lines that are one each."""
    value = _json(text)
    if value is not None:
        return list(_shape(value, "", 0))
    lines = [line for line in text.splitlines() if line.strip()]
    records = [_json(line) for line in lines[:1000]] if len(lines) > 1 else []
    if not records or any(record is None for record in records):
        return None
    return [f"{len(lines)} JSON lines, each:", *_shape(records, "", 0)]


def _json(text: str) -> Any:
    if text.lstrip()[:1] not in {"{", "["}:
        return None
    try:
        return jsontext.parse_text(text, _LIMITS)
    except BodyError:
        return None


def _shape(value: Any, name: str, depth: int) -> Iterator[str]:
    indent = "  " * depth
    label = f"{indent}{name}: " if name else indent
    if isinstance(value, dict):
        yield f"{label}object, {len(value)} members"
        yield from _members([value], depth)
    elif isinstance(value, list):
        kinds = Counter(_kind(element) for element in value)
        yield f"{label}array of {len(value)}" + (f": {_listed(kinds)}" if kinds else "")
        yield from _members([element for element in value if isinstance(element, dict)], depth)
    else:
        yield label + _kind(value)


def _members(objects: Sequence[dict[str, Any]], depth: int) -> Iterator[str]:
    """The members of objects of one array, as those of one."""
    if depth >= _MAX_DEPTH:
        return
    first: dict[str, Any] = {}
    for item in objects:
        for key, inner in item.items():
            first.setdefault(key, inner)
    names = sorted(key for key in first if _IDENTIFIER.fullmatch(key))
    for key in names[:_MAX_NAMES]:
        yield from _shape(first[key], key, depth + 1)
    if hidden := len(first) - len(names[:_MAX_NAMES]):
        yield "  " * (depth + 1) + f"{hidden} other members"


_KINDS: Final = (
    (bool, "boolean"), (int, "integer"), (float, "number"), (str, "string"), (dict, "object"), (list, "array")
)  # fmt: skip


def _kind(value: Any) -> str:
    if value is None:
        return "null"
    return next(name for kind, name in _KINDS if isinstance(value, kind))


def _listed(found: Counter[str]) -> str:
    return ", ".join(f"{count} {name}" for name, count in sorted(found.items()))


# -- CSV -----------------------------------------------------------------------------------------------------------


def csv_schema(text: str) -> list[str] | None:
    """Columns of a table with a header, by the delimiter that gives every line as many cells."""
    if "\n" not in text or '"' in text[: text.find("\n")].replace('","', ""):
        return None
    for delimiter in (",", "\t", ";", "|"):
        try:
            rows = [row for row in csv.reader(text.splitlines(), delimiter=delimiter) if row]
        except csv.Error:
            continue
        width = len(rows[0]) if rows else 0
        if width > 1 and len(rows) > 1 and all(len(row) == width for row in rows):
            head = [f"table of {width} columns, {len(rows) - 1} rows"]
            return [*head, *(_column(rows, number) for number in range(min(width, _MAX_NAMES)))]
    return None


def _column(rows: Sequence[Sequence[str]], number: int) -> str:
    name = rows[0][number].strip()
    cells = [row[number].strip() for row in rows[1:]]
    filled = [cell for cell in cells if cell]
    kind = "text"
    if filled and all(re.fullmatch(r"[+-]?\d{1,18}", cell) for cell in filled):
        kind = "integer"
    elif filled and all(re.fullmatch(r"[+-]?\d{1,18}[.,]\d{1,18}", cell) for cell in filled):
        kind = "number"
    shown = name if _IDENTIFIER.fullmatch(name) else f"column {number + 1}"
    return f"  {shown}: {kind}, {len(filled)} filled"


# -- logs ----------------------------------------------------------------------------------------------------------


def log_templates(text: str) -> list[str] | None:
    """Templates of lines, plain words only; a line that occurs once is counted and not shown."""
    lines = [line for line in text.splitlines() if line.strip()]
    if len(lines) < 2:
        return None
    found = Counter(_template(line) for line in lines)
    often = [(template, count) for template, count in found.items() if count > 1]
    shown = [
        f"{count} x {template}" for template, count in sorted(often, key=lambda pair: (-pair[1], pair[0]))
    ]
    single = sum(count == 1 for count in found.values())
    return [*shown[: _MAX_LINES - 1], f"{single} other lines"] if shown else None


def _template(line: str) -> str:
    words = [word if _WORD.fullmatch(word) else "*" for word in line.split()[:40]]
    return re.sub(r"\*(?: \*)+", "*", " ".join(words))


# -- code ----------------------------------------------------------------------------------------------------------


def python_outline(text: str) -> list[str] | None:
    """Imports, classes and functions of a Python module; no bodies, defaults, strings or comments."""
    if len(text) > _MAX_SOURCE:
        return None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # a module's own warnings are not ours to give
            tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    lines = list(_declared(tree.body, 0))
    return lines or None


def _declared(body: Sequence[ast.stmt], depth: int) -> Iterator[str]:
    indent = "  " * depth
    for node in body:
        match node:
            case ast.Import(names=names):
                yield f"{indent}import {', '.join(alias.name for alias in names)}"
            case ast.ImportFrom(module=module):
                yield f"{indent}from {module or '.'} import {len(node.names)} names"
            case ast.ClassDef(name=name):
                yield f"{indent}class {name}"
                if depth < _MAX_DEPTH:
                    yield from _declared(node.body, depth + 1)
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                arguments = node.args
                names_ = [a.arg for a in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)]
                yield f"{indent}def {name}({', '.join(names_)})"
            case _:
                continue


def code_outline(text: str) -> list[str] | None:
    """What lines declare in languages that we have no parser of, by their keywords."""
    found = [f"{match[1]} {match[2]}" for line in text.splitlines() if (match := _DECLARES.match(line[:400]))]
    return found or None


SUMMARISERS: Final[dict[str, tuple[_Extract, ...]]] = {
    "json_schema": (json_schema,),
    "csv_schema": (csv_schema,),
    "log_templates": (log_templates,),
    "python_outline": (python_outline,),
    "code_outline": (code_outline,),
    "counts": (),
    "auto": (json_schema, csv_schema, python_outline, code_outline, log_templates),
}


def _made(name: str) -> Callable[[], Extract]:
    return lambda: Extract(name, *SUMMARISERS[name])


# What entry points name: called, each gives a summariser.
auto, sizes = _made("auto"), _made("counts")
json_, csv_, logs = _made("json_schema"), _made("csv_schema"), _made("log_templates")
python, code = _made("python_outline"), _made("code_outline")
