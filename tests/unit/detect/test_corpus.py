"""What is found in labelled texts, against what was promised; and whether a stated confidence is kept.

`vectors/detect/corpus` holds generated texts with the spans of what was planted. The sets of others are measured where
they lie beside the checkout.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from gateway.context.findings import Category, Finding, ScanItem
from gateway.detect.engine import build

_HERE = Path(__file__).parents[2] / "vectors" / "detect" / "corpus"
_EXTERNAL = Path(__file__).parents[4] / "shared" / "data" / "corpus" / "external"
_SECRETS = {"provider", "keymat", "uri", "generic", "crypto"}
_PII = {"pii_struct", "pii_ctx", "pii_text"}
_COVERED = 0.95  # of a value, for it to count as taken out
_BANDS = (650, 700, 800, 850, 900, 950, 990)
_ENOUGH = 25  # findings of a band, for a share to say something

Row = dict[str, Any]


@cache
def _scanned(path: Path) -> list[tuple[Row, tuple[Finding, ...]]]:
    rows = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
    results = build().scan([ScanItem(row["text"]) for row in rows])
    return [(row, result.findings) for row, result in zip(rows, results, strict=True)]


def _of(name: str, families: Iterable[str] = ()) -> list[tuple[Row, tuple[Finding, ...]]]:
    scanned = _scanned(_HERE / f"dev.{name}.jsonl")
    return [each for each in scanned if not families or each[0]["meta"]["family"] in families]


def _touched(row: Row, findings: Iterable[Finding], category: Category) -> tuple[bool, bool]:
    """Whether the planted value is found, and whether it is covered."""
    start, end = row["spans"][0]["start"], row["spans"][0]["end"]
    inside = [f for f in findings if f.category is category and f.start < end and f.end > start]
    covered = {at for f in inside for at in range(max(start, f.start), min(end, f.end))}
    return bool(inside), len(covered) >= _COVERED * (end - start)


def _shares(name: str, families: set[str], category: Category) -> tuple[float, float]:
    rows = _of(name, families)
    seen = [_touched(row, findings, category) for row, findings in rows]
    return sum(found for found, _ in seen) / len(seen), sum(covered for _, covered in seen) / len(seen)


def _right(row: Row, finding: Finding) -> bool:
    return any(finding.start < span["end"] and finding.end > span["start"] for span in row.get("spans", ()))


def _precision(families: set[str], category: Category) -> float:
    """Of the findings in positives of these families and in all negatives, the share that touches what was planted."""
    told = [
        _right(row, finding)
        for row, findings in [*_of("pos", families), *_of("neg")]
        for finding in findings
        if finding.category is category
    ]
    return sum(told) / len(told)


@pytest.mark.parametrize(
    ("families", "category", "recall", "covered", "precision"),
    [(_SECRETS, Category.SECRET, 0.99, 0.98, 0.99), (_PII, Category.PII, 0.98, 0.96, 0.97)],
    ids=["secrets", "personal data"],
)
def test_what_was_planted_is_found_whole_and_little_else(
    families: set[str], category: Category, recall: float, covered: float, precision: float
) -> None:
    found, whole = _shares("pos", families, category)
    assert found >= recall
    assert whole >= covered
    assert _precision(families, category) >= precision


@pytest.mark.parametrize(
    ("families", "category"),
    [(_SECRETS, Category.SECRET), (_PII, Category.PII)],
    ids=["secrets", "personal data"],
)
def test_disguises_are_seen_through(families: set[str], category: Category) -> None:
    assert _shares("evasion", families, category)[0] >= 0.97


def test_texts_without_anything_are_left_alone() -> None:
    data = (Category.SECRET, Category.PII)
    flagged = [any(f.category in data for f in findings) for _, findings in _of("neg")]
    assert sum(flagged) / len(flagged) <= 0.005


def test_injections_are_told_from_texts_about_them() -> None:
    def heard(name: str) -> float:
        told = [any(f.category is Category.PROMPT_INJECTION for f in found) for _, found in _of(name)]
        return sum(told) / len(told)

    assert heard("inject_pos") >= 0.95
    assert heard("inject_neg") <= 0.02


@pytest.mark.parametrize("band", _BANDS)
def test_a_stated_confidence_is_kept(band: int) -> None:
    """Of the findings of a band at least the share is right that the band begins with (Jeffreys' smoothing)."""
    upper = next((low for low in _BANDS if low > band), 1001)
    told: dict[Category, list[bool]] = defaultdict(list)
    for row, findings in [*_of("pos"), *_of("neg"), *_of("evasion")]:
        for finding in findings:
            if band <= finding.confidence_milli < upper and finding.category is not Category.PROMPT_INJECTION:
                told[finding.category].append(_right(row, finding))
    for category, right in told.items():
        if len(right) >= _ENOUGH:
            assert (sum(right) + 0.5) / (len(right) + 1) * 1000 >= band, category


@pytest.mark.skipif(not _EXTERNAL.exists(), reason="the sets of others do not lie beside this checkout")
@pytest.mark.parametrize(("name", "hits", "strays"), [("np", 300, 22), ("sl", 48, 5)])
def test_sets_of_others(name: str, hits: int, strays: int) -> None:
    def flagged(kind: str) -> int:
        scanned = _scanned(_EXTERNAL / f"{name}.{kind}.jsonl")
        return sum(any(f.category is Category.SECRET for f in findings) for _, findings in scanned)

    assert flagged("pos") >= hits
    assert flagged("neg") <= strays
