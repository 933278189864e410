"""National numbers of some fifty countries behind, before, in and below the words that name them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from gateway.context.findings import ScanItem
from gateway.detect.engine import Engine, build

ROWS = json.loads((Path(__file__).parents[2] / "vectors/detect/national.json").read_text("utf-8"))


@pytest.fixture(scope="module")
def engine() -> Engine:
    return build()


def test_each_is_found_whole(engine: Engine) -> None:
    results = engine.scan([ScanItem(row["text"], "", "tool") for row in ROWS])
    for row, result in zip(ROWS, results, strict=True):
        found = [(f.type, row["text"][f.start : f.end]) for f in result.findings]
        assert (row["type"], row["value"]) in found, row["text"]


@pytest.mark.parametrize(
    "text",
    [
        "national_number_pattern='90123456789'",
        "national ID: 12345678901",
        "identity card: 4711-0815",
        "kontonummer: 1111111111",
        "UTR: 1955839662",
        "JMBG: 0101006500007",
        "cédula 2",
        "TC: 17291716061",
        "nit: 123.456.789",
        "The identification number of the part is 38503128177.",
    ],
)
def test_what_fails_its_check_or_has_no_such_form_is_none(engine: Engine, text: str) -> None:
    assert engine.scan([ScanItem(text, "", "tool")])[0].findings == ()
