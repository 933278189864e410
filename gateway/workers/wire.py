"""What passes between the gateway and a scanning process: frames of a four-byte length and a payload.

To the process goes pickle, made by the gateway itself. From it comes JSON, because the process has handled
hostile text and pickle would let it run code here; strings travel with ASCII escapes, so that lone surrogates
survive.
"""

from __future__ import annotations

import json
import pickle
import struct
from collections.abc import Sequence
from typing import Any, Final

from gateway.context.findings import Category, Finding, ScanItem, ScanResult, Severity

HEADER: Final = struct.Struct(">I")
MAX_ANSWER_BYTES: Final = 64 << 20  # a process that answers with more is broken

type Ready = dict[str, str]
"""`revision` of the detector that the process has built, or `error`: the type of what stopped it."""


def frame(payload: bytes) -> bytes:
    """A payload with its length before it."""
    return HEADER.pack(len(payload)) + payload


def pack_items(items: Sequence[ScanItem]) -> bytes:
    """Items as a frame for the process."""
    return frame(pickle.dumps(list(items), pickle.HIGHEST_PROTOCOL))


def pack_results(results: Sequence[ScanResult]) -> bytes:
    """Results as JSON."""
    return json.dumps([[[_row(f) for f in r.findings], r.complete, r.reason] for r in results]).encode()


def pack_failure(error: BaseException) -> bytes:
    """The type of an exception as JSON; its text may hold content."""
    return json.dumps({"error": type(error).__name__}).encode()


def _row(finding: Finding) -> list[Any]:
    return [
        finding.type,
        finding.category.value,
        finding.severity.value,
        finding.confidence_milli,
        finding.start,
        finding.end,
        finding.detector,
        finding.value,
    ]


def unpack_results(payload: bytes, items: Sequence[ScanItem]) -> list[ScanResult]:
    """Results of `items`, checked: one an item, every span inside its text.

    Raises:
        ValueError: the process reported a failure, or its answer does not fit.
    """
    answer = json.loads(payload)
    if not isinstance(answer, list) or len(answer) != len(items):
        raise ValueError("not one result an item")
    try:
        return [
            ScanResult(tuple(_finding(row, len(item.text)) for row in rows), complete is True, str(reason))
            for item, (rows, complete, reason) in zip(items, answer, strict=True)
        ]
    except (TypeError, KeyError) as error:
        raise ValueError("not a list of results") from error


def _finding(row: list[Any], length: int) -> Finding:
    kind, category, severity, confidence, start, end, detector, value = row
    if not 0 <= int(start) <= int(end) <= length:
        raise ValueError("a span outside its text")
    return Finding(
        str(kind),
        Category(category),
        Severity(severity),
        int(confidence),
        int(start),
        int(end),
        str(detector),
        None if value is None else str(value),
    )
