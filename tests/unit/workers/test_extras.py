"""Extra detectors in processes of their own: what they add, and what becomes of a scan that they do not answer."""

from __future__ import annotations

import importlib.util
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from gateway.app.scanning import extra_detectors
from gateway.config import load, parse
from gateway.context.findings import ScanItem
from gateway.errors import DetectorError, SetupError
from gateway.plugins import DETECTORS, activate
from gateway.workers import ScanPool
from gateway.workers.extras import SKIPPED_TYPE, Extra, ExtraScans
from tests.support.detector import TinyDetector
from tests.support.waiting import eventually

TICKETS = "tests.support.extras:Tickets"
FOREVER = 1 << 62
TOKEN = "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"


@asynccontextmanager
async def scans(
    factory: str = TICKETS, *, is_closed: bool = True, deadline_ms: int = 5000
) -> AsyncIterator[ExtraScans]:
    first = ScanPool(TinyDetector(), "tests.support.detector:TinyDetector")
    made = ExtraScans(
        first,
        [Extra("tickets", ScanPool(None, factory))],
        deadline_us=deadline_ms * 1000,
        is_closed=is_closed,
    )
    await made.start()
    try:
        yield made
    finally:
        await made.close()


async def test_an_extra_adds_what_the_builtin_detector_does_not_find() -> None:
    async with scans() as scanner:
        text = f"TICKET-12345 and {TOKEN} and password=TICKET-99999"
        [result] = await scanner.scan([ScanItem(text)], deadline_us=FOREVER)

    assert [(f.type, text[f.start : f.end]) for f in result.findings] == [
        ("ticket", "TICKET-12345"),
        ("github_token", TOKEN),
        ("password", "TICKET-99999"),
    ]
    assert result.complete
    assert scanner.revision != TinyDetector.revision


@pytest.mark.parametrize(
    ("text", "code"),
    [("be late", "detector.timed_out"), ("die now", "detector.failed"), ("fail now", "detector.failed")],
)
@pytest.mark.parametrize("is_closed", [True, False])
async def test_one_that_does_not_answer_is_said_and_comes_back(
    text: str, code: str, *, is_closed: bool
) -> None:
    async with scans(is_closed=is_closed, deadline_ms=700) as scanner:
        began = time.monotonic()
        [result] = await scanner.scan([ScanItem(f"{text} {TOKEN}")], deadline_us=FOREVER)
        assert time.monotonic() - began < 20
        assert TOKEN in {f"{text} {TOKEN}"[f.start : f.end] for f in result.findings}
        assert result.complete is not is_closed
        assert result.reason == (code if is_closed else "")
        said = [f for f in result.findings if f.type == SKIPPED_TYPE]
        assert len(said) == (0 if is_closed else 1)
        await eventually(
            lambda: scanner.scan([ScanItem("TICKET-12345")], deadline_us=FOREVER),
            lambda scanned: any(f.type == "ticket" for f in scanned[0].findings),
        )


async def test_the_builtin_detector_is_not_waited_for_by_extras_alone() -> None:
    async with scans() as scanner:
        with pytest.raises(DetectorError, match=r"timed_out"):
            await scanner.scan([ScanItem(TOKEN)], deadline_us=0)


async def test_an_extra_that_cannot_be_built_stops_the_start() -> None:
    with pytest.raises(SetupError, match="ModuleNotFoundError"):
        async with scans("tests.support.there_is_none:Nothing"):
            pass


def test_the_builtin_detector_cannot_be_left_out(tmp_path: Path) -> None:
    assert extra_detectors(load(None, {})) == []
    with pytest.raises(SetupError, match="left out"):
        extra_detectors(parse({"plugins": {"detectors": ["names"]}}, tmp_path, {}))
    with pytest.raises(SetupError, match="no plug-in nothing"):
        extra_detectors(parse({"plugins": {"detectors": ["builtin", "nothing"]}}, tmp_path, {}))


@pytest.mark.skipif(
    importlib.util.find_spec("presidio_analyzer") is None, reason="the extra `names` is not installed"
)
async def test_names_of_people_in_what_users_write() -> None:
    [plugin] = activate(DETECTORS, ["names"])
    text = "Please write to Priya Sharma in Leeds about the invoice."
    async with scans(plugin.factory, deadline_ms=60_000) as scanner:
        by_user, by_tool = await scanner.scan(
            [ScanItem(text, channel="user"), ScanItem(text, channel="tool")], deadline_us=FOREVER
        )
    assert ("person_name", "Priya Sharma") in {(f.type, text[f.start : f.end]) for f in by_user.findings}
    assert by_tool.findings == ()


@pytest.mark.skipif(
    importlib.util.find_spec("kingfisher_sdk") is None, reason="the extra `second-engine` is not installed"
)
async def test_a_second_engine_for_secrets() -> None:
    [plugin] = activate(DETECTORS, ["kingfisher"])
    text = 'naïve = "ü", key = "AKIAJYNZX3RQ7FEHQ5WT" secret_key = "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"'
    async with scans(plugin.factory, deadline_ms=60_000) as scanner:
        [result] = await scanner.scan([ScanItem(text)], deadline_us=FOREVER)
    assert "kWcrlUX5JEDGM/LtmEENI/aVmYvHNif5zB+d9+ct" in {text[f.start : f.end] for f in result.findings}
