"""One secret and some personal data in a hundred disguises, each found; and what looks like a disguise and is none."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from gateway.context.findings import ScanItem
from gateway.context.views import VIEW_RULES
from gateway.detect.engine import Engine, build

ROWS = json.loads((Path(__file__).parents[2] / "vectors/detect/disguised.json").read_text("utf-8"))


@pytest.fixture(scope="module")
def engine() -> Engine:
    return build()


def test_each_is_found(engine: Engine) -> None:
    results = engine.scan([ScanItem(row["text"], "", "tool") for row in ROWS])
    missed = [
        row["name"]
        for row, result in zip(ROWS, results, strict=True)
        if row["type"] not in [f.type for f in result.findings]
    ]
    assert missed == []


@pytest.mark.parametrize("row", ROWS[::7], ids=[row["name"] for row in ROWS[::7]])
def test_any_part_of_one_can_be_read(engine: Engine, row: dict[str, str]) -> None:
    """Also where a text ends in the middle of what triggers a view."""
    text = row["text"]
    for result in engine.scan([ScanItem(text[:end], "", "tool") for end in range(len(text))]):
        assert result.complete


@pytest.mark.parametrize("end", range(1, 12))
def test_a_view_whose_trigger_reaches_over_the_end_of_its_text(engine: Engine, end: int) -> None:
    """The engine reads texts in one go; what stands behind the last character is a byte of its own."""
    lists = ["\n".join(str(ord(c)) for c in "xoxb-668592672258"[:n]) for n in (8, 9, 10)]
    for text in [*lists, *(each[:-end] for each in lists)]:
        assert engine.scan([ScanItem(text, "", "tool")])[0].complete
    for rule in VIEW_RULES:
        for at in range(6):
            rule.find("a b"[:at], at)


@pytest.mark.parametrize(
    "text",
    [
        "look at example dot com",
        "tim [at] corporate",
        "runs at node.js dot com",
        "pages 100-200\n300-400\n500-600",
        "00000000: 0000 0100 0200 0300 0400 0500 0600 0700  ................",
        "0x4000_0058_2318_9677",
        "1.2.840.113549.1.1.11 4000.0058.2318.9677",
        "IBAN DE12500105\n17064848\n9891",
    ],
)
def test_what_is_none(engine: Engine, text: str) -> None:
    assert engine.scan([ScanItem(text, "", "tool")])[0].findings == ()


def _dump(data: bytes, layout: str) -> str:
    lines = []
    for at in range(0, len(data), 16):
        part = data[at : at + 16]
        shown = "".join(chr(c) if 32 <= c < 127 else "." for c in part)
        pairs = [f"{c:02x}" for c in part]
        groups = " ".join("".join(pairs[i : i + 2]) for i in range(0, len(pairs), 2))
        halves = " ".join(pairs[:8]) + "  " + " ".join(pairs[8:])
        lines.append(
            {
                "xxd": f"{at:08x}: {groups:<39}  {shown}",
                "hexdump": f"{at:08x}  {halves:<48}  |{shown}|",
                "od": f"{at:07o} {' '.join(pairs)}",
            }[layout]
        )
    return "\n".join(lines) + "\n"


@pytest.mark.parametrize("layout", ["xxd", "hexdump", "od"])
def test_dumps_of_a_program_are_read_to_their_end_and_hold_no_cards(engine: Engine, layout: str) -> None:
    program = Path(__file__).read_bytes().replace(b"0058", b"") * 4
    [result] = engine.scan([ScanItem(_dump(program, layout), "", "tool")])
    assert result.complete
    assert [f for f in result.findings if f.type == "credit_card"] == []


def test_numbers_in_other_scripts_are_read_to_their_end(engine: Engine) -> None:
    persian = {ord("0") + n: 0x6F0 + n for n in range(10)}
    row = "قیمت کالا 47182 تومان برای 12 عدد در تاریخ 1403/05/12 ثبت شد.\n".translate(persian)
    [result] = engine.scan([ScanItem(row * 1500, "", "tool")])
    assert result.complete
    assert result.findings == ()
