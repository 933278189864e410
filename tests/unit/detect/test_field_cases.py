"""Faults that other people met in the field, as texts: what must go, what must stay, what is no finding at all."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from gateway.context.findings import Category, ScanItem
from gateway.detect.engine import Engine, build

CASES: list[dict[str, Any]] = json.loads(
    (Path(__file__).parents[2] / "vectors" / "detect" / "field_cases.json").read_text("utf-8")
)
_DATA = {Category.SECRET, Category.PII}


@pytest.fixture(scope="module")
def engine() -> Engine:
    return build()


def _redact(engine: Engine, case: dict[str, Any]) -> tuple[str, int]:
    items = [ScanItem(text, name, "tool") for name, text in case["items"]]
    out, count = [], 0
    for item, result in zip(items, engine.scan(items), strict=True):
        text = item.text
        for finding in sorted(result.findings, key=lambda f: -f.start):
            if finding.category in _DATA:
                count += 1
                text = text[: finding.start] + "<REDACTED>" + text[finding.end :]
        out.append(text)
    return "\n".join(out), count


@pytest.mark.parametrize("number", range(len(CASES)), ids=[c["id"] + f"-{n}" for n, c in enumerate(CASES)])
def test_field_case(engine: Engine, number: int) -> None:
    case = CASES[number]
    left, count = _redact(engine, case)
    assert [value for value in case["gone"] if value in left] == []
    assert [value for value in case["stay"] if value not in left] == []
    if case["none"]:
        assert count == 0
