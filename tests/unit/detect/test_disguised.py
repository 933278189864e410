"""One secret and some personal data in a hundred disguises, each found; and what looks like a disguise and is none."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
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


def _words(part: bytes) -> str:
    padded = part + b"\0" * (len(part) % 2)
    return " ".join(f"{high:02x}{low:02x}" for low, high in zip(padded[::2], padded[1::2], strict=True))


def _signs(part: bytes) -> str:
    return "".join(f"{chr(c) if 32 <= c < 127 else {10: chr(92) + 'n'}.get(c, f'{c:03o}'):>4}" for c in part)


def _shown(part: bytes) -> str:
    return "".join(chr(c) if 32 <= c < 127 else "." for c in part)


LAYOUTS: Mapping[str, Callable[[int, bytes], str]] = {
    "xxd": lambda at, part: f"{at:08x}: {part.hex(' ', -2):<39}  {_shown(part)}",
    "xxd -g 1": lambda at, part: f"{at:08x}: {part.hex(' '):<47}  {_shown(part)}",
    "hexdump": lambda at, part: f"{at:07x} {_words(part)}",
    "hexdump -C": lambda at, part: (
        f"{at:08x}  {part[:8].hex(' ')}  {part[8:].hex(' '):<23}  |{_shown(part)}|"
    ),
    "od -t x1": lambda at, part: f"{at:07o} {part.hex(' ')}",
    "od -A x -t x1z": lambda at, part: f"{at:06x} {part.hex(' '):<47}  >{_shown(part)}<",
    "od -c": lambda at, part: f"{at:07o}{_signs(part)}",
    "Format-Hex": lambda at, part: f"{at:08X}   {part.hex(' ').upper():<47}  {_shown(part)}",
    "pairs": lambda _, part: part.hex(" "),
    "pairs with colons": lambda _, part: part.hex(":"),
}
EACH_LAYOUT = pytest.mark.parametrize("layout", LAYOUTS.values(), ids=LAYOUTS.keys())


def _dump(data: bytes, layout: Callable[[int, bytes], str]) -> str:
    return "".join(layout(at, data[at : at + 16]) + "\n" for at in range(0, len(data), 16))


@EACH_LAYOUT
@pytest.mark.parametrize("before", [0, 3, 7, 15, 30])
def test_a_token_in_a_dump_is_found_over_its_lines(
    engine: Engine, layout: Callable[[int, bytes], str], before: int
) -> None:
    token = "ghp_" + "Zk4Tq9Wn2Rv7Xb1Lm6Pc3Jd8Hs5GfYuAeQo0"
    text = _dump(b"x" * before + f"\nexport GITHUB_TOKEN={token}\nexit\n".encode(), layout)
    [result] = engine.scan([ScanItem(text, "", "tool")])
    covered = sum(finding.end - finding.start for finding in result.findings)
    assert covered >= 2 * len(token)


TOKENS = ("ghp_Zx9Kq2LmN8vB4tR7wY1cD5fG3hJ6kP0sQaEe", "ghp_Qa7Wc3EdR5fTgB6yHnU8jMiK1oLpZ0xV2s9D")


@pytest.mark.parametrize("separator", [" ", ":"])
@pytest.mark.parametrize("before", ["", "0001: ", "face ", "key 1234: "])
@pytest.mark.parametrize("behind", [TOKENS[1], "and a line of words"], ids=["a token", "words"])
def test_a_token_in_pairs_ends_with_its_line(
    engine: Engine, separator: str, before: str, behind: str
) -> None:
    first, second = (text.encode().hex(separator) for text in (TOKENS[0], behind))
    [result] = engine.scan([ScanItem(f"{before}{first}\n{second}\n", "", "tool")])
    start = len(before)
    covered = [min(f.end, start + len(first)) - max(f.start, start) for f in result.findings]
    assert max(covered) == len(first)
    if behind == TOKENS[1]:
        assert max(f.end for f in result.findings) >= start + len(first) + 1 + len(second)


@pytest.mark.parametrize("size", [8, 16, 24, 32])
@pytest.mark.parametrize("base", ["07o", "06x", "08d"])
def test_lines_of_a_dump_may_be_of_any_length(engine: Engine, size: int, base: str) -> None:
    data = f"export GITHUB_TOKEN={TOKENS[0]}\nexit\n".encode()
    lines = (f"{at:{base}} {data[at : at + size].hex(' ')}\n" for at in range(0, len(data), size))
    [result] = engine.scan([ScanItem("".join(lines), "", "tool")])
    assert sum(finding.end - finding.start for finding in result.findings) >= 2 * len(TOKENS[0])


def test_a_dump_ends_where_its_offsets_count_no_longer(engine: Engine) -> None:
    counted = [f"{at:04x}: {b'x'.hex()} " + b"no token in it".hex(" ") + " 2e" for at in (0, 16)]
    tokens = [f"{at:04x}: {token.encode().hex(' ')}" for at, token in zip((32, 99), TOKENS, strict=True)]
    text = "\n".join((*counted, *tokens)) + "\n"
    [result] = engine.scan([ScanItem(text, "", "tool")])
    for token in tokens:
        assert any(
            f.start <= text.index(token) + 6 and text.index(token) + len(token) <= f.end
            for f in result.findings
        )


@EACH_LAYOUT
def test_dumps_of_a_program_are_read_to_their_end_and_hold_no_cards(
    engine: Engine, layout: Callable[[int, bytes], str]
) -> None:
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
