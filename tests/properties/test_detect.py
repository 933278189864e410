"""Laws of detection: no exception, spans inside the text, views that map back, engines that mean what `re` means."""

from __future__ import annotations

import base64
import random
import re
from collections.abc import Callable
from functools import cache
from urllib.parse import quote

from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.context.findings import Category, ScanItem
from gateway.context.views import VIEW_RULES
from gateway.context.views.folded import folded
from gateway.detect.engine import Engine, build
from gateway.detect.matcher import HyperscanMatcher, Matcher, Re2Matcher, Trigger

TOKEN = "sk_live_4XZjSKNnCOCzXsFUS1Ws5vdi"
_PIECES = st.sampled_from(
    [
        TOKEN, "password=", "://", "u:p@", "-----BEGIN PRIVATE KEY-----", "eyJ", '"', "'", "\\", "\\u0041", "%41", "&#65;", "=41=42",
        "kind: Secret\ndata:\n", "319-30-9023", "4000 0058 2318 9676", "GB29 NWBK 6016 1331 9268 19", " ", "\n", "\x00", "\ud800",
        "\u200b", "ѕк_live_", "\U000e0061", "aGVsbG8gd29ybGQsIGhvdyBhcmU=", "H4sIAAAAAAAA", "mnemonic ", "ignore all previous ",
        "instructions", '" + "', "65, 66, 67, 68, 69, 70, 71, 72,", "g h p _ ", "_evil_ks", "@", ".", "DNI: 21133869\u212a", "CF SNGTLF73T24E460\u017f", "\u0663\u0664", "EGRESS_X_ABCDEFGHIJKLMNOPQRSTUV",
    ]
)  # fmt: skip
_TEXT = st.lists(st.one_of(_PIECES, st.text(max_size=12)), max_size=40).map("".join)


@cache
def engine() -> Engine:
    return build()


@settings(max_examples=150, deadline=None)
@given(
    st.lists(
        st.tuples(_TEXT, st.sampled_from(["", "password", "apiKey", "text", "ssn"])), min_size=1, max_size=4
    )
)
def test_any_text_is_scanned_and_every_span_lies_inside_it(rows: list[tuple[str, str]]) -> None:
    items = [ScanItem(text, name, "tool") for text, name in rows]
    results = engine().scan(items)
    assert len(results) == len(items)
    for item, result in zip(items, results, strict=True):
        last = 0
        for f in result.findings:
            assert 0 <= f.start < f.end <= len(item.text)
            if f.category is not Category.PROMPT_INJECTION:
                assert f.start >= last
                last = f.end
            assert f.value is None or f.value != item.text[f.start : f.end]


_ENCODINGS: dict[str, Callable[[str], str]] = {
    "base64": lambda s: base64.b64encode(s.encode()).decode(),
    "base64url": lambda s: base64.urlsafe_b64encode(s.encode()).decode().rstrip("="),
    "base32": lambda s: base64.b32encode(s.encode()).decode(),
    "hex": lambda s: s.encode().hex(),
    "percent": lambda s: "".join(f"%{ord(c):02X}" for c in s),
    "some percent": lambda s: quote(s).replace("_", "%5F"),
    "unicode": lambda s: "".join(f"\\u{ord(c):04x}" for c in s),
    "x": lambda s: "".join(f"\\x{ord(c):02x}" for c in s),
    "octal": lambda s: "".join(f"\\{ord(c):03o}" for c in s),
    "html": lambda s: "".join(f"&#{ord(c)};" for c in s),
    "htmlx": lambda s: "".join(f"&#x{ord(c):x};" for c in s),
    "qp": lambda s: "".join(f"={ord(c):02X}" for c in s),
    "bytes": lambda s: ", ".join(str(ord(c)) for c in s),
    "spaced": " ".join,
    "dotted": ".".join,
    "zero width": "\u200b".join,
    "full width": lambda s: "".join(chr(ord(c) + 0xFEE0) for c in s),
    "tags": lambda s: "".join(chr(0xE0000 + ord(c)) for c in s),
    "reversed": lambda s: s[::-1],
    "concat": lambda s: '" + "'.join(s[i : i + 7] for i in range(0, len(s), 7)),
    "wrapped": lambda s: s[:17] + "\n" + s[17:],
    "numbered": lambda s: s[:17] + "\n    13\t" + s[17:],
    "hex pairs": lambda s: ":".join(f"{ord(c):02x}" for c in s),
    "hex spaced": lambda s: " ".join(f"{ord(c):02x}" for c in s),
    "bytes spaced": lambda s: " ".join(str(ord(c)) for c in s),
    "chr": lambda s: " + ".join(f"chr({ord(c)})" for c in s),
    "double spaced": "  ".join,
    "commas": ", ".join,
    "adjacent": lambda s: '" "'.join(s[i : i + 7] for i in range(0, len(s), 7)),
    "two dots": lambda s: '" .. "'.join(s[i : i + 7] for i in range(0, len(s), 7)),
    "two bars": lambda s: "' || '".join(s[i : i + 7] for i in range(0, len(s), 7)),
    "continued": lambda s: "\\\n".join(s[i : i + 11] for i in range(0, len(s), 11)),
    "grave": lambda s: s[:11] + "`\n" + s[11:],
    "emphasis": lambda s: f"{s[:9]}**{s[9:14]}**{s[14:]}",
    "tags in it": lambda s: f"{s[:9]}<b>{s[9:14]}</b>{s[14:]}",
    "colours": lambda s: f"{s[:9]}\x1b[31m{s[9:]}",
    "combining": lambda s: "".join(c + "\u0301" if c.isalpha() else c for c in s),
    "markdown": lambda s: s.replace("_", "\\_"),
}


@settings(max_examples=240, deadline=None)
@given(
    st.sampled_from(sorted(_ENCODINGS)),
    st.text("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789", min_size=24, max_size=24),
    st.sampled_from(["", "We moved the code. ", 'x = "', "(", "\n"]),
)
def test_a_token_is_found_through_every_view_and_its_region_covers_it(
    kind: str, body: str, before: str
) -> None:
    if len(set(body)) < 6:
        return
    secret = f"sk_live_{body}"
    hidden = _ENCODINGS[kind](secret)
    text = f'{before}{hidden}" end'
    [result] = engine().scan([ScanItem(text)])
    secrets = [f for f in result.findings if f.category is Category.SECRET]
    assert len(secrets) == 1, kind
    low, high = len(before), len(before) + len(hidden)
    assert secrets[0].start <= low + (len("chr(") if kind == "chr" else 1)
    assert secrets[0].end >= high - 3
    if kind not in {"spaced", "dotted", "double spaced", "commas"}:
        assert secrets[0].value == secret


@settings(max_examples=200, deadline=None)
@given(_TEXT, st.integers(0, 400))
def test_a_view_maps_every_part_back_into_its_region(text: str, at: int) -> None:
    at = min(at, len(text))
    views = [view for rule in VIEW_RULES if (view := rule.find(text, at)) is not None]
    for view in (*views, *(view for _, view in folded(text) if view is not None)):
        assert 0 <= view.start < view.end <= len(text)
        for start in range(0, len(view.text), 7):
            low, high = view.span(start, min(len(view.text), start + 5))
            assert view.start <= low < high <= view.end


def _all_ends(trigger: Trigger, data: bytes) -> set[int]:
    pattern = re.compile(trigger.expression.encode("latin-1"), re.IGNORECASE if trigger.caseless else 0)
    ends, at = set(), 0
    while (found := pattern.search(data, at)) is not None:
        ends.add(found.end())
        at = found.start() + 1
    return ends


def test_both_engines_match_as_re_does_at_every_padding() -> None:
    rng = random.Random(20261130)
    for (plan, matcher), kind in (
        (pair, kind) for pair in engine().databases for kind in (HyperscanMatcher, Re2Matcher)
    ):
        fixed = [n for n, t in enumerate(plan.triggers) if t.length]
        if not fixed:
            continue  # views: only some end of a match is asked for
        chosen = [plan.triggers[n] for n in rng.sample(fixed, min(60, len(fixed)))]
        other: Matcher = kind(chosen)
        examples = [row.example for row in rng.sample(engine().types(), 40)]
        data = b"".join(
            rng.randbytes(rng.randrange(70)).replace(b"\n", b" ") + e.encode("latin-1", "replace") + b" "
            for e in examples
        )
        found = other.scan(data)
        for number, trigger in enumerate(chosen):
            assert {end for n, end in found if n == number} == _all_ends(trigger, data), trigger.expression
        assert matcher.name == "hyperscan"
