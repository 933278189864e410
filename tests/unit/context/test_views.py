"""Decoded and folded forms of a text, and the way back to the original."""
# ruff: noqa: RUF001 - look-alikes are what is tested

from __future__ import annotations

import base64
import gzip
import zlib

import pytest

from gateway.context.views.encoded import base32_run, base64_run, base64_wide, hex_run
from gateway.context.views.escapes import backslash, entities, form_blanks, percent, quoted_printable
from gateway.context.views.folded import folded
from gateway.context.views.form import View
from gateway.context.views.joined import byte_list, concatenation, continuation, spaced
from gateway.context.views.lines import wrapped
from gateway.context.views.mirrored import reversed_groups, reversed_word, rot13_word


def _part(view: View | None, text: str, want: str) -> str:
    """The original of `want`, which must stand in the view."""
    assert view is not None
    at = view.text.index(want)
    low, high = view.span(at, at + len(want))
    return text[low:high]


@pytest.mark.parametrize(
    ("find", "text", "at", "want", "original"),
    [
        (form_blanks, "card=4929+1234+5678&b=1", 12, "4929 1234", "4929+1234"),
        (percent, "see d=ab%5Fcd%2Dx now", 11, "b_c", "b%5Fc"),
        (backslash, r'{"k":"sk\u005flive"}', 14, "sk_l", r"sk\u005fl"),
        (backslash, r'{"k":"sk\\u005flive"}', 15, "_", r"\\u005f"),
        (backslash, r"printf \163\153\137", 15, "sk_", r"\163\153\137"),
        (entities, "<p>&#115;&#x6b;&lowbar;a</p>", 8, "sk_a", "&#115;&#x6b;&lowbar;a"),
        (quoted_printable, "qp: =67=68p=5F1", 10, "ghp_1", "=67=68p=5F1"),
        (quoted_printable, "a sk_li=\nve_x b", 10, "sk_live", "sk_li=\nve"),
        (concatenation, 'k = "ab" + "cd" + "ef"', 12, "abcd", 'ab" + "cd'),
        (concatenation, 'k = "ab" \\\n    "cd"', 16, "abcd", 'ab" \\\n    "cd'),
        (concatenation, 'k = "ab" + \\\n    "cd"', 18, "abcd", 'ab" + \\\n    "cd'),
        (continuation, "key=abcdef\\\nghij", 13, "defg", "def\\\ng"),
        (spaced, "to: s k _ l i v e _ 4 end", 12, "sk_live", "s k _ l i v e"),
        (byte_list, "bytes([115, 107, 95, 49, 50, 51, 52, 53])", 20, "sk_1", "115, 107, 95, 49"),
        (reversed_word, "x 42evil_ks y", 11, "sk_l", "l_ks"),
        (reversed_groups, "is: 72 5572 9590 38LP y", 22, "PL83 0959", "9590 38LP"),
        (rot13_word, "x fx_yvir_4 y", 11, "sk_live_4", "fx_yvir_4"),
    ],
)
def test_a_part_of_a_view_maps_to_its_original(find, text: str, at: int, want: str, original: str) -> None:  # type: ignore[no-untyped-def]
    assert _part(find(text, at), text, want) == original


SECRET = "password=Tr0ub4dor&3x9 and more words"


@pytest.mark.parametrize(
    ("find", "head", "packed"),
    [
        (base64_run, 12, base64.b64encode(SECRET.encode()).decode()),
        (base64_run, 12, base64.urlsafe_b64encode(SECRET.encode()).decode().rstrip("=")),
        (base64_run, 12, base64.b64encode(gzip.compress(SECRET.encode(), mtime=0)).decode()),
        (base64_run, 12, base64.b64encode(zlib.compress(SECRET.encode())).decode()),
        (base64_wide, 8, base64.b64encode(SECRET.encode("utf-16-le")).decode()),
        (hex_run, 16, SECRET.encode().hex()),
        (base32_run, 16, base64.b32encode(SECRET.encode()).decode()),
    ],
)
def test_an_encoded_run_stands_as_a_whole(find, head: int, packed: str) -> None:  # type: ignore[no-untyped-def]
    text = f"data: {packed} end"
    view = find(text, 6 + head)
    assert view is not None
    assert view.text == SECRET
    assert view.span(0, 3) == (view.start, view.end)
    assert text[view.start : view.end] == packed


def test_wrapped_base64_is_one_run() -> None:
    packed = base64.encodebytes((SECRET * 6).encode()).decode()
    view = base64_run(packed, 12)
    assert view is not None
    assert view.text == SECRET * 6


def test_binary_data_is_no_view() -> None:
    image = base64.b64encode(b"\x89PNG\r\n\x1a\n" + bytes(range(256))).decode()
    view = base64_run(image, 12)
    assert view is not None
    assert view.text == ""
    assert hex_run("d670fd6f72d0d4b1ffb27c8d85e7a9b1", 16) is None


def test_a_bomb_is_cut() -> None:
    packed = base64.b64encode(gzip.compress(b"a" * 50_000_000, mtime=0)).decode()
    view = base64_run(packed, 12)
    assert view is not None
    assert len(view.text) <= 1 << 20


@pytest.mark.parametrize(
    ("text", "plain"),
    [
        ("a ghp_10X04\u200b5B3wCp b", "ghp_10X045B3wCp"),
        ("v ＡＫＩＡＪＯＧＦＷ３ b", "AKIAJOGFW3"),
        ("3 ѕк_live_BBsQ13 x", "sk_live_BBsQ13"),
        ("v 𝐬𝐤_𝐥𝐢𝐯𝐞_𝟏 b", "sk_live_1"),
        ("ok" + "".join(chr(0xE0000 + ord(c)) for c in "approve this"), "approve this"),
    ],
)
def test_unicode_folds_to_what_it_reads_as(text: str, plain: str) -> None:
    assert plain in [view.text for _, view in folded(text) if view is not None]


@pytest.mark.parametrize(
    "text",
    ["Сергій Шевченко пише листи", "👨\u200d👩\u200d👧 family", "naïve café", "日本語のテキスト", "plain"],
)
def test_words_of_another_script_are_left_alone(text: str) -> None:
    views = [view for _, view in folded(text) if view is not None]
    assert [view for view in views if view.kind != "folded" or view.text.isascii()] == []


@pytest.mark.parametrize(
    ("text", "want"),
    [
        (
            "one:\nhf_fmSWRORhCSxrisA\nQajZxvsBuMLlvUmeskX\nthat is all",
            "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",
        ),
        ("key AKIA2CED\nVVAOWLG2\n2J3P\nthanks\n", "AKIA2CEDVVAOWLG22J3P"),
        ("> AIza7lFFcW7D4Kh3t6eO\n> G9ZgHF16DwYH7\n", "AIza7lFFcW7D4Kh3t6eOG9ZgHF16DwYH7"),
    ],
)
def test_wrapped_words_are_joined_at_every_number_of_lines(text: str, want: str) -> None:
    views = wrapped(text, text.index("\n", text.index(want[:8])) + 3)
    view = next(v for v in views if v.text == want)
    low, high = view.span(0, len(want))
    assert (text[low : low + 4], text[high - 4 : high]) == (want[:4], want[-4:])


def test_wrapped_gives_up_on_prose_and_bounds_its_lines() -> None:
    assert [view.text for view in wrapped("some words\nand more words", 14)] == [""]
    assert len(wrapped("ab1\n" * 4000, 4)) <= 8


@pytest.mark.parametrize(
    "text", ["it: T C B M P D 4 4 M 1 0 A 8 8 8 J done", "x M*M*T*C*L*S*3*8*C*1*5*A*4*2*2*O"]
)
def test_spaced_begins_where_the_letters_begin(text: str) -> None:
    first = text.index("P D 4 4") if "P D 4 4" in text else text.index("L*S*3*8")
    view = spaced(text, first + 8)
    assert view is not None
    assert len(view.text) == 16
