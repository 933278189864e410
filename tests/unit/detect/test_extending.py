"""docs/detection.md shows how to add a rule, a validator and a view; this does it."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

from gateway.context import views
from gateway.context.findings import ScanItem
from gateway.context.views import View, ViewRule
from gateway.detect import plan
from gateway.detect.checks import CHECKS
from gateway.detect.engine import build

DOCUMENT = Path(__file__).parents[3] / "docs" / "detection.md"
KEY = "acme_4f1c0a9d2b7e6f3855aa01c9de47b28e"


def _documented_rule() -> dict[str, object]:
    block = re.search(r"```toml\n(.*?)```", DOCUMENT.read_text("utf-8"), re.DOTALL)
    assert block is not None
    return tomllib.loads(block[1])


def test_the_documented_rule_works_as_it_stands() -> None:
    engine = build(extra=[_documented_rule()])
    [result] = engine.scan([ScanItem(f"use {KEY} now")])
    assert [(f.type, f.start, f.end) for f in result.findings] == [("acme_key", 4, 4 + len(KEY))]


def test_a_validator_is_a_row(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(CHECKS, "acme_even", lambda value: int(value[-1], 16) % 2 == 0)
    document = _documented_rule()
    document["rule"][0] |= {"check": "acme_even", "unchecked": "drop"}  # type: ignore[index]
    engine = build(extra=[document])
    found = engine.scan([ScanItem(KEY), ScanItem(KEY[:-1] + "f")])
    assert [len(r.findings) for r in found] == [1, 0]


def test_a_view_is_a_row(monkeypatch: pytest.MonkeyPatch) -> None:
    def upside(text: str, at: int) -> View | None:
        end = text.find("<<", at)
        return View("swapped", text[at:end].swapcase(), at, end) if end > at else None

    monkeypatch.setattr(plan, "VIEW_RULES", (*views.VIEW_RULES, ViewRule("swapped", ("swap>>",), upside)))
    text = f"swap>>{KEY.swapcase()}<<"
    assert build(extra=[_documented_rule()], views=False).scan([ScanItem(text)])[0].findings == ()
    [finding] = build(extra=[_documented_rule()]).scan([ScanItem(text)])[0].findings
    assert (finding.type, finding.value) == ("acme_key", KEY)
    assert text[finding.start : finding.end] == KEY.swapcase()


def test_the_document_names_every_rule_key() -> None:
    text = DOCUMENT.read_text("utf-8")
    for key in (
        "at",
        "near",
        "shape",
        "edge",
        "context",
        "unless",
        "caseless",
        "confidence",
        "checked",
        "check",
        "unchecked",
    ):
        assert f"`{key}" in text or f"{key} =" in text
