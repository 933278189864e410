"""Known values over whole batches: found where a plain reading of the definition finds them, and nowhere else."""

import re
import tempfile
from pathlib import Path
from unittest import mock

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.context.findings import ScanItem
from gateway.detect import windows
from gateway.detect.engine import Engine, build
from gateway.detect.known import MAX_WORDS, indexable, normalised
from gateway.store.known import KnownFile, write_known

VALUES = [
    "KD-48213377",
    "4711 0815 2342",
    "Bergmann-Okonkwo",
    "ﬁnance-2042",
    "a1 b2 c3",
    "c3 d4 e5 f6 g7",
    "zürich-99",
    "1" * 128,
]
KNOWN = frozenset(filter(None, map(indexable, VALUES)))
PIECES = [
    *VALUES,
    "KD",
    "48213377",
    "4711",
    "08152342",
    "BERGMANN",
    "okonkwo",
    "Kd4821",
    "3377",
    "a1",
    "b2",
    "c3",
    "d4",
    "e5f6g7",
]
PIECES += ["ZÜRICH", "99", "ﬁ", "x", "\U0001f511", "٣"]
GAPS = [" ", "-", "\n", "", ", ", "---", "----", "_", "\u00a0", "é"]
TEXTS = st.lists(st.tuples(st.sampled_from(PIECES), st.sampled_from(GAPS)), max_size=30).map(
    lambda pairs: "".join(piece + gap for piece, gap in pairs)
)
FILLING = ("plain words of a text that holds none\n" * 40, "é" * 1100 + "\n", "0 " * 700)


@pytest.fixture(scope="module")
def engine() -> Engine:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "known"
        write_known(path, bytes(range(32)), VALUES)
        return build(
            rules=[], known=KnownFile(path, bytes(range(32))), engine="hyperscan", views=False, categories=()
        )


def plain_reading(text: str) -> set[tuple[int, int]]:
    """Every window of up to MAX_WORDS words of one line, from the left; what a found one covers begins no other."""
    found, at = set(), 0
    for line in text.split("\n"):
        words = [(at + m.start(), at + m.end()) for m in re.finditer(r"[^\W_]+", line)]
        seen = at
        for first, (start, _) in enumerate(words):
            if start < seen:
                continue
            for last in range(first, min(first + MAX_WORDS, len(words))):
                if last > first and words[last][0] - words[last - 1][1] > 3:
                    break
                end = words[last][1]
                if normalised(text[start:end]) in KNOWN:
                    found.add((start, end))
                    seen = end
        at += len(line) + 1
    return found


def spans(engine: Engine, texts: list[str]) -> list[set[int]]:
    results = engine.scan([ScanItem(text) for text in texts])
    return [{at for f in result.findings for at in range(f.start, f.end)} for result in results]


@given(st.lists(TEXTS, min_size=1, max_size=4), st.sampled_from(FILLING))
def test_values_are_found_where_a_plain_reading_finds_them(
    engine: Engine, texts: list[str], filling: str
) -> None:
    """Alone, word by word, and beside a long text, over the windows of the batch."""
    wanted = [{at for low, high in plain_reading(text) for at in range(low, high)} for text in texts]
    assert spans(engine, texts) == wanted
    assert spans(engine, [filling, *texts])[1:] == wanted
    assert spans(engine, [filling + text for text in texts]) == [
        {len(filling) + at for at in each} for each in wanted
    ]


@given(st.lists(TEXTS, min_size=1, max_size=4))
def test_words_are_followed_one_by_one_or_hashed_with_one_result(engine: Engine, texts: list[str]) -> None:
    """A chunk with few words that may begin a value is read in another way than one with many."""
    long = [FILLING[0] + text for text in texts]
    with mock.patch.object(windows, "_FEW", 0):
        hashed = spans(engine, long)
    assert hashed == spans(engine, long)


@pytest.mark.parametrize("before", [*range(65_536 - 300, 65_536 + 20, 7), *range(65_500, 65_540)])
def test_a_value_at_the_edge_of_what_is_read_together(engine: Engine, before: int) -> None:
    text = "." * before + " 4711-0815-2342. x" + "." * 300
    assert spans(engine, [text]) == [set(range(before + 1, before + 15))]
    assert spans(engine, ["x" * before + "KD-48213377"]) == [set()]
