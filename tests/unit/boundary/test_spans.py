"""Where a match stands: the lines of another project go and no line beside them, in whatever carries both."""

from __future__ import annotations

import json
import random
import re
import textwrap
from collections.abc import Callable

import pytest

from gateway.boundary import FingerprintIndex

KEY = b"k" * 32
STUB = "[withheld]"
OWN = """# harbour office
def berth(ship, quay):
    if quay.is_free():
        quay.moor(ship)
        return True
    return False
# tide tables
tide = 3
"""
FOREIGN = """def settle(batch, fee_schedule):
    for position in batch.open_positions():
        position.charge(fee_schedule.rate_for(position.counterparty))
        if position.is_disputed:
            ledger.suspend(position, reason="disputed by counterparty")
    total = sum(p.charged for p in batch.positions)
    audit.note(total)
    return batch.close(reason="cut-over")
"""
CARRIERS: dict[str, Callable[[str], str]] = {
    "plain": str,
    "indented": lambda t: textwrap.indent(t, "    "),
    "crlf": lambda t: t.replace("\n", "\r\n"),
    "patch": lambda t: textwrap.indent(t, "+", lambda _: True),
    "numbered": lambda t: "".join(
        f"{n:6}\u2192{line}" for n, line in enumerate(t.splitlines(keepends=True), 1)
    ),
    "grep": lambda t: "".join(
        f"src/a.py:{n}:{line}" for n, line in enumerate(t.splitlines(keepends=True), 1)
    ),
    "JSON": lambda t: json.dumps({"content": t}),
}


def indexed(*more: str) -> FingerprintIndex:
    index = FingerprintIndex(KEY)
    around = "\n".join(f"unrelated line {word}" for word in ["alpha", "beta", "gamma", "delta", "epsilon"])
    index.add("a", around + "\n" + FOREIGN + around, source="aa")
    for text in more:
        index.add("a", text)
    return index


def without(index: FingerprintIndex, text: str) -> str:
    """The text with a stub for each span."""
    found, at = [], 0
    for start, end in index.look_up(text)[0].spans:
        found += [text[at:start], STUB]
        at = end
    return "".join(found) + text[at:]


@pytest.mark.parametrize("carrier", CARRIERS)
@pytest.mark.parametrize("order", ["before", "after", "around"])
def test_own_lines_stay_and_foreign_ones_go(carrier: str, order: str) -> None:
    """Also where a line has only one word."""
    carry = CARRIERS[carrier]
    half = OWN.splitlines(keepends=True)
    text = {
        "before": OWN + FOREIGN,
        "after": FOREIGN + OWN,
        "around": "".join(half[:5]) + FOREIGN + "".join(half[5:]),
    }[order]
    left = without(indexed(), carry(text))
    carried = json.dumps if carrier == "JSON" else str
    for line in OWN.splitlines():
        assert carried(line).strip('"').strip() in left, line
    for line in FOREIGN.splitlines():
        assert carried(line).strip('"').strip() not in left, line


@pytest.mark.parametrize("start", range(5))
@pytest.mark.parametrize("lines", [4, 6, 8])
def test_wherever_the_copy_was_cut(start: int, lines: int) -> None:
    copied = FOREIGN.splitlines(keepends=True)[start : start + lines]
    index = indexed()
    text = OWN + "".join(copied) + OWN
    if not index.look_up(text):
        return  # too little of it
    left = without(index, text)
    assert [line for line in copied if line.strip() in left] == []
    assert left.count("quay.moor(ship)") == 2
    assert left.count("tide = 3") == 2
    assert left.count("# harbour office") == 2


def test_own_lines_between_two_copies_stay() -> None:
    lines = FOREIGN.splitlines(keepends=True)
    text = "".join(lines[:4]) + OWN + "".join(lines[4:])
    left = without(indexed(), text)
    assert all(line in left for line in OWN.splitlines())
    assert not any(line.strip() in left for line in lines)


def test_a_changed_line_within_a_copy_goes_with_it() -> None:
    lines = FOREIGN.splitlines(keepends=True)
    changed = lines[3].replace("is_disputed", "was_questioned")
    left = without(indexed(), OWN + "".join([*lines[:3], changed, *lines[4:]]) + OWN)
    assert "was_questioned" not in left
    assert left.count("quay.moor(ship)") == 2


def renamed(text: str, names: str) -> str:
    for number, name in enumerate(names.split()):
        text = re.sub(rf"\b{name}\b", f"q_{number}", text)
    return text


REPEATED = """
    def adopt(self, berth: Berth, until: date | None = None) -> Berth:
        taken = Berth(berth.number, until or berth.until)
        if not taken.until:
            raise ValueError("a berth without an end")
        taken.depth = berth.depth
        taken.width = berth.width
        taken.power = berth.power
        taken.water = berth.water
        taken.crane = berth.crane
        taken.owner = berth.owner
"""


def test_lines_that_repeat_themselves_at_the_edge_of_a_renamed_copy_go_with_it() -> None:
    """What repeats itself has no fingerprint, so it is not known to be missing."""
    index = indexed()
    index.add("b", FOREIGN.replace("settle", "close") + REPEATED + OWN, source="bb")
    copied = renamed(REPEATED, "adopt berth taken until depth width power water crane owner")
    left = without(index, OWN + copied + "\n" + OWN.replace("tide", "ebb"))
    assert not [line for line in copied.splitlines() if line.strip() and line.strip() in left]


@pytest.mark.parametrize("names", ["position", "batch position fee_schedule", "settle reason charged"])
def test_a_changed_name_at_the_edge_does_not_leave_its_line(names: str) -> None:
    copied = renamed(FOREIGN, names)
    left = without(indexed(), OWN + copied + OWN)
    assert not [line for line in copied.splitlines() if line.strip() in left]
    assert left.count("quay.is_free()") == 2


def test_words_of_one_file_and_the_shape_of_another_are_worth_less_than_of_one() -> None:
    """A copy is one file's in both."""
    note = (
        "The settlement engine for Brightwater is cut over on a Thursday, and the quay master signs for it."
    )
    one, two = FingerprintIndex(KEY), FingerprintIndex(KEY)
    one.add("a", note + "\n" + FOREIGN, source="aa")
    two.add("a", note, source="aa")
    two.add("a", FOREIGN, source="ab")
    text = (
        note
        + "\n"
        + renamed(FOREIGN, "settle batch fee_schedule position charge rate_for total ledger audit note")
    )
    whole, apart = (index.look_up(text, least=1)[0] for index in (one, two))
    assert 0 < apart.bits < whole.bits
    assert apart.sources == ("aa", "ab")


def test_a_stub_leaves_the_json_around_it_valid() -> None:
    """No escape is cut in two."""
    index = indexed()
    for carrier in (lambda t: json.dumps({"file": OWN + t + OWN, "n": 1}), lambda t: json.dumps([t, OWN])):
        for text in (FOREIGN, FOREIGN.replace("\n", "\r\n"), textwrap.indent(FOREIGN, "\t")):
            value = json.loads(without(index, carrier(text)))
            assert STUB in json.dumps(value)
            assert "quay.moor(ship)" in json.dumps(value)


def test_of_a_long_line_only_the_words_go() -> None:
    note = "Project Kestrel: settlement engine for Brightwater, cut-over on 14 March, fee schedule kept with Ann."
    own = (
        "The navbar of our harbour site lives in the source folder and nobody else may touch its colours. "
        * 2
    )
    left = without(indexed(note), own + note + " " + own)
    assert "Kestrel" not in left
    assert "Ann" not in left
    assert left.count("touch its colours") == 4


def test_random_mixtures_lose_what_is_foreign_and_hardly_more() -> None:
    """Half of the runs of a longer text have a fingerprint, so now and then a line beside the copy goes with it."""
    chance = random.Random(5)
    words = [
        a + b + c
        for a in ("plo", "mar", "tin", "vek")
        for b in ("ta", "ri", "bo")
        for c in ("lun", "sk", "d")
    ]
    marks = (" ", ", ", "(", ") ", " = ", ".")
    files = [
        [
            "".join(chance.choice(words) + chance.choice(marks) for _ in range(chance.randrange(2, 9)))
            for _ in range(60)
        ]
        for _ in range(6)
    ]
    index = FingerprintIndex(KEY)
    for number, lines in enumerate(files[:3]):
        index.add("a", "\n".join(lines), source=f"a{number}")
    kept = 0
    for _ in range(30):
        foreign, own = chance.choice(files[:3]), chance.choice(files[3:])
        start, length = chance.randrange(40), chance.randrange(8, 20)
        copied = foreign[start : start + length]
        text = "\n".join([*own[:10], *copied, *own[10:20]])
        left = [line.strip() for line in without(index, text).split("\n")]
        assert not {line.strip() for line in copied} & set(left)
        assert left.count(STUB) == 1
        kept += len(left) - 1
    assert 580 <= kept <= 600
