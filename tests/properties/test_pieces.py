"""Tokens that programs, templates, markup and line numbers cut up, or that are packed without a frame.

The law: what is found covers the token from its first character to its last, and after it was cut out nothing of it is
left that could be found again.
"""

from __future__ import annotations

import base64
import bz2
import gzip
import lzma
import random
import string
from collections.abc import Callable, Sequence
from functools import cache
from textwrap import wrap

from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.context.findings import Category, ScanItem
from gateway.context.views.mirrored import rot47
from gateway.detect.engine import Engine, build

_HEADS = {"lin_api_": 40, "sk_live_": 24, "glpat-": 20, "AKIA": 16, "xai-": 80, "nfp_": 36}


@cache
def engine() -> Engine:
    return build()


def _lines(parts: Sequence[str], margin: Callable[[int], str]) -> str:
    return "".join(f"{margin(number)}{part}\n" for number, part in enumerate(parts, 12))


_CUT: dict[str, Callable[[Sequence[str]], str]] = {
    "list": lambda p: "[" + ", ".join(f'"{c}"' for c in p) + "]",
    "list over lines": lambda p: "[\n" + ",\n".join(f'  "{c}"' for c in p) + "\n]",
    "concat with arguments": lambda p: "''.concat(" + ", ".join(f"'{c}'" for c in p) + ")",
    "concat in a chain": lambda p: f"'{p[0]}'" + "".join(f".concat('{c}')" for c in p[1:]),
    "append": lambda p: "new StringBuilder()" + "".join(f'.append("{c}")' for c in p),
    "append by lines": lambda p: "".join(f'sb.append("{c}");\n' for c in p),
    "push": lambda p: "".join(f"a.push('{c}');\n" for c in p),
    "template": lambda p: "`" + "".join(f"${{'{c}'}}" for c in p) + "`",
    "f-string": lambda p: 'f"' + "".join(f"{{'{c}'}}" for c in p) + '"',
    "percent format": lambda p: '"' + "%s" * len(p) + '" % (' + ", ".join(f'"{c}"' for c in p) + ")",
    "format": lambda p: '"' + "{}" * len(p) + '".format(' + ", ".join(f'"{c}"' for c in p) + ")",
    "printf": lambda p: "printf '%s' " + " ".join(f"'{c}'" for c in p),
    "shift": lambda p: " << ".join(f'"{c}"' for c in p),
    "shift by lines": lambda p: f'k = +"{p[0]}"\n' + "".join(f'k << "{c}"\n' for c in p[1:]),
    "added with other lines": lambda p: f'k = "{p[0]}"\nn = 4\n' + "".join(f'k += "{c}"\nn += 1\n' for c in p[1:]),
    "variables": lambda p: "".join(f"const a{n} = '{c}';\n" for n, c in enumerate(p)),
    "ampersand": lambda p: " & _\n  ".join(f'"{c}"' for c in p),
    "empty quotes": "''".join,
    "emphasis": lambda p: "".join(f"**{c}**" for c in p),
    "elements": lambda p: "".join(f"<span>{c}</span>" for c in p),
    "removed lines": lambda p: _lines(p, lambda _: "+"),
    "slashes": lambda p: _lines(p, lambda _: "// "),
    "numbers": lambda p: _lines(p, lambda n: f"{n:6}\t"),
    "places": lambda p: _lines(p, lambda n: f"src/a.txt:{n}:"),
    "folded": lambda p: "key: >-\n" + _lines(p, lambda _: "  ") + "other: 1\n",
    "here document": lambda p: "k = <<~EOS\n" + _lines(p, lambda _: "  ") + "EOS\n",
}  # fmt: skip
_PACKED: dict[str, Callable[[str], str]] = {
    "base85": lambda s: base64.b85encode(s.encode()).decode(),
    "ascii85": lambda s: base64.a85encode(s.encode()).decode(),
    "base85 behind its name": lambda s: "base85: " + base64.b85encode(f"the key {s}".encode()).decode(),
    "rot47": rot47,
    "bzip2": lambda s: base64.b64encode(bz2.compress(s.encode())).decode(),
    "xz": lambda s: base64.b64encode(lzma.compress(s.encode())).decode(),
    "gzip in hex": lambda s: gzip.compress(s.encode()).hex(),
    "utf-16 in hex": lambda s: s.encode("utf-16-be").hex(),
    "short lines of base64": lambda s: "\n".join(wrap(base64.b64encode(s.encode()).decode(), 20)),
    "codes with dashes": lambda s: "-".join(str(ord(c)) for c in s),
    "codes by lines": lambda s: "\n".join(str(ord(c)) for c in s),
    "codes of three digits": lambda s: "".join(f"{ord(c):03}" for c in s),
    "octal": lambda s: " ".join(f"{ord(c):03o}" for c in s),
    "octal literals": lambda s: ", ".join(f"0o{ord(c):o}" for c in s),
    "hex with commas": lambda s: ",".join(f"{ord(c):02x}" for c in s),
    "casts": lambda s: "+".join(f"[char]{ord(c)}" for c in s),
    "%u": lambda s: "".join(f"%u{ord(c):04x}" for c in s),
    "\\U": lambda s: "".join(f"\\U{ord(c):08x}" for c in s),
    "slashes": "/".join,
    "lines": "\n".join,
}


@st.composite
def _tokens(draw: st.DrawFn) -> str:
    head = draw(st.sampled_from(sorted(_HEADS)))
    alphabet = string.ascii_uppercase + "234567" if head == "AKIA" else string.ascii_letters + string.digits
    rng = random.Random(draw(st.integers(0, 1 << 32)))
    return head + "".join(rng.choice(alphabet) for _ in range(_HEADS[head]))


def _secrets(text: str) -> list[tuple[int, int]]:
    [result] = engine().scan([ScanItem(text, "", "tool")])
    return [(f.start, f.end) for f in result.findings if f.category is Category.SECRET]


def _cut_out(text: str, spans: Sequence[tuple[int, int]]) -> str:
    for start, end in reversed(spans):
        text = text[:start] + "(gone)" + text[end:]
    return text


@settings(max_examples=120, deadline=None)
@given(_tokens(), st.sampled_from(sorted(_CUT)), st.integers(5, 9))
def test_a_token_in_pieces_is_covered_from_end_to_end(token: str, way: str, size: int) -> None:
    size = max(size, len(token) // 7)
    first = max(size, 2 + max(len(head) for head in _HEADS if token.startswith(head)))
    parts = [token[:first], *wrap(token[first:], size)]
    if len(parts[-1]) < 4:
        parts[-2:] = [parts[-2] + parts[-1]]
    text = f"The worker reads first.\n{_CUT[way](parts)}\nThen it goes on."
    spans = _secrets(text)
    assert spans, way
    left = _cut_out(text, spans)
    assert [part for part in parts if part in left] == [], way
    assert _secrets(left) == []


@settings(max_examples=80, deadline=None)
@given(_tokens(), st.sampled_from(sorted(_PACKED)))
def test_a_packed_token_is_covered_from_end_to_end(token: str, way: str) -> None:
    packed = _PACKED[way](token)
    text = f"The worker reads this: \n{packed}\nThen it goes on."
    [(start, end)] = _secrets(text)
    low = text.index(packed)
    assert start <= low + len("base85: "), way
    assert end >= low + len(packed) - 3, way
