"""Keys written as lists of codes, and in encodings with a frame: found, and mapped back."""

import base64
import binascii

import pytest

from gateway.context.findings import ScanItem
from gateway.context.views.codes import RULES
from gateway.detect.engine import Engine, build

KEY = "AKIAQ7WZK3XN5VTD2MRB"


@pytest.fixture(scope="module")
def engine() -> Engine:
    return build(engine="hyperscan")


def _uu(data: bytes) -> str:
    lines = [binascii.b2a_uu(data[at : at + 45]).decode() for at in range(0, len(data), 45)]
    return "begin 644 key.txt\n" + "".join(lines) + "`\nend\n"


LISTED = {
    "points": " ".join(f"U+{ord(c):04X}" for c in KEY),
    "points with commas": ", ".join(f"U+{ord(c):04x}" for c in KEY),
    "binary": " ".join(f"{ord(c):08b}" for c in KEY),
    "binary literals": ", ".join(f"0b{ord(c):08b}" for c in KEY),
    "quoted": ", ".join(f"'{c}'" for c in KEY),
    "double quoted": ",".join(f'"{c}"' for c in KEY),
    "css": "".join(f"\\{ord(c):x} " for c in KEY).rstrip(),
    "css, six digits and no space": "".join(f"\\{ord(c):06X}" for c in KEY[:-1]) + KEY[-1],
    "css, six digits": "".join(f"\\{ord(c):06x}" for c in KEY),
}
FRAMED = {
    "ascii85": base64.a85encode(f"the key is {KEY} there".encode(), adobe=True).decode(),
    "base32": base64.b32encode(f"the key is {KEY} there".encode()).decode().rstrip("="),
    "base32 in small letters": base64.b32encode(f"the key is {KEY} there".encode())
    .decode()
    .rstrip("=")
    .lower(),
    "uuencode": _uu(f"id = 4\nthe key of this account is {KEY}\nand more\n".encode()),
}


@pytest.mark.parametrize("form", LISTED)
def test_a_key_in_codes_is_found_where_it_stands(engine: Engine, form: str) -> None:
    text = f"see [{LISTED[form]}] there"
    [finding] = engine.scan([ScanItem(text)])[0].findings
    assert finding.value == KEY
    assert text[finding.start : finding.end].strip("[] ") == LISTED[form].strip("\"'")


@pytest.mark.parametrize("form", FRAMED)
def test_a_key_in_a_frame_is_found(engine: Engine, form: str) -> None:
    text = f"see\n{FRAMED[form]}\nthere"
    [finding] = engine.scan([ScanItem(text)])[0].findings
    assert finding.value == KEY
    assert finding.end - finding.start >= len(KEY)
    assert FRAMED[form].find(text[finding.start : finding.end].rstrip()) >= 0


@pytest.mark.parametrize(
    "text",
    [
        "U+0041 U+0042",
        "01000001 01000010 01000011",
        "'a', 'b', 'c', 'd'",
        r"\20\30\40",
        "<~!!!!!",
        "begin 644 x\nM",
    ],
)
def test_what_is_short_or_cut_is_no_finding(engine: Engine, text: str) -> None:
    assert engine.scan([ScanItem(text)])[0].findings == ()
    for rule in RULES:
        for at in range(len(text) + 1):
            view = rule.find(text, at)
            assert view is None or 0 <= view.start <= view.end <= len(text)


@pytest.mark.parametrize("text", [r"\7f\7f\7f", r"\000073a", r"\73\6ba\5f\5f\5f"])
def test_a_hit_of_css_always_gives_a_view(text: str) -> None:
    """Else every hit of a crafted text would read the same region again."""
    [find] = [rule.find for rule in RULES if rule.kind == "css"]
    view = find(text, len(text))
    assert view is not None
    assert view.end == len(text)
