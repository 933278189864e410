"""Every byte of every body is inspected, opaque or refused, and no opaque one is counted as inspected.

The bodies are those of every documented path, every capture that lies beside the checkout, and made-up ones with sealed
values and media, written as different clients write JSON. What is opaque is found again by a reader of its own, which
knows the bytes of each text.
"""

from __future__ import annotations

import base64
import gzip
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from json.decoder import py_scanstring  # type: ignore[attr-defined]  # the one that says where a text ends
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gateway.app.offline import InlineScanner, Inspector
from gateway.classify.objects import UNSCANNED, ContextObject
from gateway.config import Config, parse
from gateway.context.findings import ScanItem, ScanResult
from gateway.contract import ContextDecisionReceiptV1, EvaluationRecordV1
from tests.unit.providers.test_coverage import ROWS, Row, body_of
from tests.unit.providers.test_dialects import PIXEL

CAPTURES = sorted((Path(__file__).parents[3] / "shared" / "data" / "captures").glob("*.json"))
SPACE = b" \t\r\n"
SIGNATURE = base64.b64encode(bytes(range(256)) * 2).decode()


@pytest.fixture(scope="module")
def inspect(tmp_path_factory: pytest.TempPathFactory) -> Inspector:
    config: Config = parse({"policy": {"mode": "developer"}}, tmp_path_factory.mktemp("inspect"), {})
    return Inspector(config)


def texts(body: bytes) -> dict[tuple[str | int, ...], int]:
    """Bytes between the quotes of every string value of a JSON text, by its path."""
    text, found = body.decode("latin-1"), {}  # a character a byte

    def value(at: int, path: tuple[str | int, ...]) -> int:
        at = blank(at)
        if text[at] == '"':
            end = py_scanstring(text, at + 1, False)[1]
            found[path] = end - at - 2
            return int(end)
        if text[at] in "[{":
            return several(at + 1, path, "}" if text[at] == "{" else "]")
        while at < len(text) and text[at] not in ",]} \t\r\n":
            at += 1
        return at

    def several(at: int, path: tuple[str | int, ...], close: str) -> int:
        number = 0
        while text[at := blank(at)] != close:
            name: str | int = number
            if close == "}":
                raw, at = py_scanstring(text, at + 1, False)
                name = raw.encode("latin-1").decode()
                at = blank(at) + 1
            at = blank(value(at, (*path, name)))
            at += text[at] == ","
            number += 1
        return at + 1

    def blank(at: int) -> int:
        while at < len(text) and text[at] in " \t\r\n":
            at += 1
        return at

    value(0, ())
    return found


def sizes(objects: list[ContextObject], body: bytes) -> int:
    """The bytes of what no detector looks at, each place once."""
    raw = texts(body)
    places = {
        (*item.block.path, *leaf.path)
        for item in objects
        for leaf in item.leaves or ()
        if leaf.role in UNSCANNED and leaf.outer is None and leaf.path not in item.whole
    }
    return sum(raw[place] for place in places if place in raw)


def account(inspect: Inspector, request: Mapping[str, Any], size: int) -> tuple[int, list[ContextObject]]:
    """(opaque bytes, objects) of a request whose evidence adds up."""
    done = inspect(request)
    evaluation = EvaluationRecordV1.from_json(json.dumps(done["evaluation"]).encode())
    receipt = ContextDecisionReceiptV1.from_json(json.dumps(done["receipt"]).encode())
    coverage, objects = evaluation.coverage, list(inspect._objects())
    assert (
        coverage.bytes_total
        == coverage.bytes_inspected + coverage.bytes_opaque + coverage.bytes_refused
        == size
    )
    kinds = [str(item.kind) for item in evaluation.objects]
    assert coverage.bytes_refused or kinds.count("target") == 1, "the target is an object as well"
    unseen = [item for item in evaluation.objects if str(item.coverage) not in {"complete", "not_required"}]
    assert receipt.security.incomplete_coverage == len(unseen)
    assert all(item.coverage_reason for item in unseen)
    if coverage.bytes_refused:
        assert coverage.bytes_refused == size, "a body is read whole or not at all"
        assert receipt.outcome != "delivered"
    return coverage.bytes_opaque, objects


def asked(row: Row) -> tuple[dict[str, Any], int]:
    content_type, body = body_of(row)
    headers = {"content-type": content_type, "authorization": "Bearer k"}
    return {
        "method": "POST",
        "url": f"https://{row.host}{row.path}",
        "headers": headers,
        "body_b64": base64.b64encode(body).decode(),
    }, len(body)


@pytest.mark.parametrize("row", ROWS[::3], ids=str)
def test_every_path(inspect: Inspector, row: Row) -> None:
    account(inspect, *asked(row))


@pytest.mark.slow
@pytest.mark.parametrize("row", ROWS, ids=str)
def test_every_path_of_all(inspect: Inspector, row: Row) -> None:
    account(inspect, *asked(row))


def captured() -> Iterator[tuple[str, dict[str, Any], bytes]]:
    for file in CAPTURES:
        capture = json.loads(file.read_text())
        if isinstance(capture["body"], (dict, list)):
            for ascii_only in (True, False):
                body = json.dumps(capture["body"], ensure_ascii=ascii_only).encode()
                headers = {"content-type": "application/json"}
                yield file.stem, {"method": "POST", "url": capture["url"], "headers": headers}, body


@pytest.mark.skipif(not CAPTURES, reason="the captures do not lie beside this checkout")
def test_every_capture(inspect: Inspector) -> None:
    seen = 0
    for name, request, body in captured():
        opaque, objects = account(
            inspect, {**request, "body_b64": base64.b64encode(body).decode()}, len(body)
        )
        if objects:
            assert opaque == sizes(objects, body), name
            seen += opaque
    assert seen > 0


WRITERS = {
    "python": lambda value: json.dumps(value).encode(),
    "javascript": lambda value: json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode(),
    "php": lambda value: json.dumps(value).replace("/", "\\/").encode(),
    "careful": lambda value: json.dumps(value).replace("+", "\\u002b").encode(),
    "pretty": lambda value: json.dumps(value, indent=2).encode(),
}
PARTS = [
    {"type": "text", "text": "naïve ☃ text / with + signs"},
    {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PIXEL}},
    {"type": "thinking", "thinking": "hm", "signature": SIGNATURE},
    {"type": "redacted_thinking", "data": SIGNATURE},
    {"type": "tool_use", "id": "t", "name": "n", "input": {"deep": json.dumps({"a": "b / c"})}},
]


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.lists(st.sampled_from(PARTS), min_size=1, max_size=6), st.sampled_from(sorted(WRITERS)), st.booleans()
)
def test_however_it_is_written(inspect: Inspector, parts: list[Any], writer: str, packed: bool) -> None:
    message = {"model": "m", "max_tokens": 9, "messages": [{"role": "assistant", "content": parts}]}
    body = WRITERS[writer](message)
    sent = gzip.compress(body) if packed else body
    headers = {"content-type": "application/json", **({"content-encoding": "gzip"} if packed else {})}
    opaque, objects = account(
        inspect,
        {
            "method": "POST",
            "url": "https://api.anthropic.com/v1/messages",
            "headers": headers,
            "body_b64": base64.b64encode(sent).decode(),
        },
        len(body),
    )
    true = sizes(objects, body)
    assert opaque >= true, "an opaque byte is counted as inspected"
    if writer not in {"php", "careful"}:
        assert opaque == true


@pytest.mark.parametrize("body", [b"{", b'{"a":1,"a":2}', b"\xff\xfe{}", b"[" * 200 + b"]" * 200])
def test_what_cannot_be_read_is_refused_to_the_last_byte(inspect: Inspector, body: bytes) -> None:
    request = {
        "method": "POST",
        "url": "https://api.anthropic.com/v1/messages",
        "headers": {"content-type": "application/json"},
        "body_b64": base64.b64encode(body).decode(),
    }
    opaque, _ = account(inspect, request, len(body))
    assert opaque == 0


class Tired:
    """A detector that runs out of its budget in texts of one kind, and says so."""

    def __init__(self, detector: Any) -> None:
        self._detector = detector

    def __getattr__(self, name: str) -> Any:
        return getattr(self._detector, name)

    def scan(self, items: Sequence[ScanItem]) -> list[ScanResult]:
        results: list[ScanResult] = self._detector.scan(items)
        return [
            replace(result, complete=False, reason="coverage.budget_exhausted")
            if "tiring" in item.text
            else result
            for item, result in zip(items, results, strict=True)
        ]


def test_what_a_detector_did_not_finish_is_not_inspected(
    inspect: Inspector, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(inspect._egress, "scanner", InlineScanner(Tired(inspect._detector)))
    messages = [{"role": "user", "content": text} for text in ("a tiring \u2603 text", "another one")]
    body = json.dumps({"model": "m", "max_tokens": 9, "messages": messages}).encode()
    request = {"method": "POST", "url": "https://api.anthropic.com/v1/messages", "headers": {}}
    done = inspect({**request, "body_b64": base64.b64encode(body).decode()})
    coverage = done["evaluation"]["coverage"]
    assert coverage["bytes_opaque"] == len(json.dumps("a tiring \u2603 text")) - 2
    assert coverage["bytes_inspected"] == len(body) - coverage["bytes_opaque"]
    assert [item["coverage"] for item in done["evaluation"]["objects"]].count("partial") == 1
    assert done["receipt"]["security"]["incomplete_coverage"] == 1
