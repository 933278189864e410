"""The documentation says what there is: its tables are written from it, and what it names exists."""

import re
import runpy
from pathlib import Path
from typing import Any

import pytest

from gateway.contract.reasons import REASONS

ROOT = Path(__file__).parents[2]
TOOL = runpy.run_path(str(ROOT / "tools" / "docs_tables.py"))


@pytest.mark.parametrize(("name", "tables"), TOOL["TABLES"].items())
def test_tables_are_what_they_describe(name: str, tables: dict[str, Any]) -> None:
    text = (ROOT / name).read_text()

    assert TOOL["filled"](text, tables) == text, "run: make docs"


def test_codes_of_errors_that_become_reasons_are_reasons() -> None:
    """BodyError and DetectorError carry reason codes; nothing else may reach a receipt."""
    allowed = {"edit.misplaced", "stream.no_data", "stream.event_too_large"}  # met inside, never in a receipt
    codes = {code for code, kind in TOOL["error_codes"]() if kind in {"BodyError", "DetectorError"}}

    assert codes - allowed <= set(REASONS)


def _documents() -> list[Path]:
    return [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]


@pytest.mark.parametrize("path", _documents(), ids=lambda path: str(path.relative_to(ROOT)))
def test_files_that_are_named_exist(path: Path) -> None:
    text = path.read_text()
    links = [link.partition("#")[0] for link in re.findall(r"\]\(([^)\s]+)\)", text) if "://" not in link]
    named = re.findall(r"`((?:gateway|docs|policies|addons|tools|tests|bench|docker)/[\w./-]+)`", text)
    missing = [link for link in links if link and not (path.parent / link).exists()]
    missing += [name for name in named if not (ROOT / name).exists()]

    assert missing == []


def test_make_targets_that_are_named_exist() -> None:
    makefile = (ROOT / "Makefile").read_text()
    targets = set(re.findall(r"^([a-z-]+):", makefile, flags=re.MULTILINE))
    for path in _documents():
        assert set(re.findall(r"`make ([a-z-]+)", path.read_text())) <= targets, path.name
    assert {"install", "demo", "test", "check", "bench", "fmt", "clean"} <= targets


def test_commands_that_are_named_exist() -> None:
    known = {path.removeprefix("egress ") for path, _ in TOOL["_leaves"](TOOL["cli"], "egress")}
    nouns = {name.split(" ")[0] for name in known}
    for path in _documents():
        for words in re.findall(r"(?<!no )(?<!no\n)`egress ((?:[a-z-]+)(?: [a-z]+)?)", path.read_text()):
            noun, _, verb = words.partition(" ")
            assert noun in nouns, f"{path.name}: egress {words}"
            verbs = {name.partition(" ")[2] for name in known if name.startswith(f"{noun} ")}
            verbs |= {name.partition(" ")[0] for name in verbs}  # a group inside a noun is named, too
            assert not verbs or not verb or verb in verbs, f"{path.name}: egress {words}"


def test_tests_that_are_named_exist() -> None:
    """SECURITY.md names a test for each row; so does any other document that names one."""
    for path in _documents():
        for name, function in re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", path.read_text()):
            source = ROOT / name
            assert source.is_file(), f"{path.name}: {name}"
            assert re.search(rf"^ *(async )?def {function}\(", source.read_text(), re.MULTILINE), (
                f"{name}::{function}"
            )


def test_every_row_of_the_threat_tables_names_a_test() -> None:
    rows = [line for line in (ROOT / "SECURITY.md").read_text().splitlines() if line.startswith("| ")]
    rows = [row for row in rows if not row.startswith(("| ---", "| threat", "| what fails"))]

    assert len(rows) > 20
    for row in rows:
        assert "`tests/" in row or "not protected" in row, row
