"""`egress project index --values`: lines of a file become known values that a scan finds."""

from __future__ import annotations

import json
from pathlib import Path

from gateway.app import wiring
from gateway.config import load
from gateway.context.findings import ScanItem
from tests.unit.cli.conftest import Run


def test_lines_of_a_file_become_known_values(egress: Run, folder: Path) -> None:
    (folder / "values.txt").write_text("# customers\nKD-48213377\n\nKD-48213378\nno\n")
    done = egress("project", "index", "--values", "values.txt", "--json")
    assert done.status == 0, done.err
    counts = json.loads(done.out)
    assert (counts["values"], counts["passed_over"]) == (2, 1)
    assert "48213377" not in done.out + done.err
    detector = wiring.build_detector(load(folder / "gateway.toml", {}))
    [found] = detector.scan([ScanItem("for kd 48213378 only")])
    assert [f.type for f in found.findings] == ["known_value"]


def test_a_file_that_is_no_text_is_refused(egress: Run, folder: Path) -> None:
    (folder / "values").write_bytes(b"\xff\xfe")
    done = egress("project", "index", "--values", "values")
    assert done.status != 0
    assert "cannot be read" in done.err
