"""The fuzz target runs without atheris, passes on known inputs, and tells a broken law."""

from __future__ import annotations

from pathlib import Path

import pytest

from gateway.context.findings import Category, Finding, ScanItem, ScanResult, Severity
from tests.fuzz import fuzz_scan


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\x01",
        b"\x00\x00password=Tr0ub4dor&3x9",
        b"\x81\x80" + "gh\u200bp_".encode("utf-16-le") * 40,
        b"\x02\x01\xff\xfe\x00%41%41" * 50,
        b"\x00\x83\xd8\x00\xd8\x00" * 9,
    ],
)
def test_inputs_pass(data: bytes) -> None:
    fuzz_scan.one_input(data)


def _found(start: int, end: int, value: str | None = None) -> Finding:
    return Finding("x", Category.SECRET, Severity.HIGH, 900, start, end, "x", value)


@pytest.mark.parametrize(
    "result",
    [
        ScanResult((_found(0, 9),)),
        ScanResult((_found(2, 2),)),
        ScanResult((_found(0, 3), _found(2, 4))),
        ScanResult((_found(0, 2, "ab"),)),
        ScanResult((), complete=False),
    ],
)
def test_a_broken_law_is_told(result: ScanResult) -> None:
    with pytest.raises(AssertionError):
        fuzz_scan.check(ScanItem("abcdef"), result)


def test_without_atheris_inputs_are_run_once(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fuzz_scan, "_atheris", lambda: None)
    (tmp_path / "one").write_bytes(b"\x00\x00text")
    fuzz_scan.main(["fuzz_scan.py", "-max_len=9", str(tmp_path)])
    assert "1 inputs run once" in capsys.readouterr().out
