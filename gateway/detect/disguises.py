"""Triggers for tokens in disguise: backwards, in another alphabet, spaced out, cut by line ends or quotes.

A token that begins with letters of its own has them in each of these forms, so that the engine can look for them.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from itertools import batched

from gateway.context.findings import Category
from gateway.context.views.joined import spaced
from gateway.context.views.mirrored import reversed_word, rot13_word, rot47, rot47_word
from gateway.context.views.pieces import literals
from gateway.context.views.radix85 import ALPHABETS, heads, radix85
from gateway.detect.batch import shape_of
from gateway.detect.dialect import Atom, render
from gateway.detect.rule import Rule
from gateway.detect.target import Target, view_cost

_SPACED_HEAD = 4  # characters of a token by which it is known where it is spaced out
_TELLING_LITERAL = 4  # characters that are rare by themselves; `re_` backwards is in every second word
_LONG_LITERAL = 6  # characters that stand in no word backwards, so that what follows need not be looked at
_NO_WORD = "[^A-Za-z0-9]"
_LEAST_LITERAL = 3  # characters of literal text a trigger must begin with to be looked for in disguise
_EDGE = r"(?:[^A-Za-z0-9]|\\[nrtbf]|%[0-9A-Fa-f]{2})"  # what may stand before a token, see `left_edge`
_HEADS_AT_ONCE = 32
_TURNED = 16  # characters of a token that begins with few letters which are looked for in another alphabet
# What tools put before the text of a line.
_MARGIN = "[ \t]{0,8}(?:[+|>#*-]|//|(?:[A-Za-z0-9_./-]{1,40}:)?[0-9]{1,6}[ :|\t?-]{1,3})?[ \t]{0,4}"
_LINE_END = f"(?:\r?\n|\\\\{{1,4}}(?:r\\\\{{1,4}})?n){_MARGIN}[A-Za-z0-9_.-]{{4}}"
_CUT_ADDRESS = f"[A-Za-z0-9_+%-]@[A-Za-z0-9-]{{1,24}}[.]?{_LINE_END}"
_CUT_BY_QUOTE = "[A-Za-z0-9_.-]{0,14}\\\\{0,3}[\"'`][,;)}& \n]"
_SEPARATORS = (" ", "\n", "/", ".", "-", "_", "|", "*", ",", "  ", ", ", "\xa0", "?")
"""`?` is also what the engine sees of a character beyond Latin-1, such as a thin space."""
_NOT_SMALL = re.compile(r"[^a-z]")
_LITERAL = re.compile(r"\\?[A-Za-z0-9_.\-/:~=]")


def first_letters(rules: Sequence[Rule]) -> frozenset[str]:
    """What secrets with a form of their own begin with: three letters, four where there are as many."""
    return frozenset(_plain(literal[:4]) for literal, _, _ in _beginnings(rules))


def disguises(rules: Sequence[Rule]) -> dict[str, Target]:
    """Triggers for tokens that are reversed, rotated, spaced out or cut: each still has a known literal in it."""
    begun = list(_beginnings(rules))
    triggers: dict[str, Target] = {}
    for literal, atoms, alone in begun:
        known = atoms if len(literal) < _TELLING_LITERAL else tuple(literal)
        past = int(alone and len(literal) < _LONG_LITERAL)
        backwards = Target(
            view="reversed", find=partial(reversed_word, past=past), cost=view_cost("reversed")
        )
        triggers[render(known[::-1]) + _NO_WORD * past] = backwards
        for expression, target in _disguises(literal, atoms):
            triggers.setdefault(expression, target)
    triggers |= _turned_triggers(begun)
    for reach, cut in _reaches(begun).items():
        for expression in _any(cut, "[^A-Za-z0-9]", f"[A-Za-z0-9_.-]{{1,{reach}}}{_LINE_END}"):
            triggers[expression] = Target(view="wrapped")
    triggers[_CUT_ADDRESS] = Target(view="wrapped")
    for expression in _any(_marked(begun), "[\"'`]", _CUT_BY_QUOTE):
        triggers[expression] = Target(view="literals", find=literals, cost=view_cost("literals"))
    return triggers


type _Begun = tuple[list[Atom], tuple[Atom, ...], bool]


def _beginnings(rules: Sequence[Rule]) -> Iterator[_Begun]:
    """The literals that secrets begin with, each with its whole trigger and whether no word goes on into it."""
    for rule in rules:
        if rule.category is not Category.SECRET or rule.near or rule.at or rule.shape:
            continue
        for atoms in rule.triggers:
            if beginning(atoms):
                yield _leading_literal(atoms), atoms, rule.edge == "word"


def _reaches(begun: Sequence[_Begun]) -> dict[int, list[str]]:
    """Literals by how many characters may follow before a line end cuts what was begun: fewer than a token has."""
    reaches: dict[int, list[str]] = {}
    for literal, atoms, _ in begun:
        rest = sum(atom.count for atom in atoms) - len(literal)
        reaches.setdefault(min(48, max(16, rest)), []).append(render(tuple(literal)))
    return reaches


def _plain(literal: Sequence[Atom]) -> str:
    return "".join(atom.source.removeprefix("\\") for atom in literal)


def _marked(begun: Sequence[_Begun]) -> Iterator[str]:
    """Literals up to what no word has: `pass` and `test` begin many a text in quotes."""
    for literal, _, _ in begun:
        mark = _NOT_SMALL.search(_plain(literal))
        if mark is not None:
            yield re.escape(_plain(literal)[: max(mark.end(), _TELLING_LITERAL)])


def _any(heads: Iterable[str], before: str, after: str) -> Iterator[str]:
    """A few expressions for all heads: what follows costs the engine each time, and none may be too large for it."""
    for group in batched(dict.fromkeys(heads), _HEADS_AT_ONCE):
        yield f"{before}(?:{'|'.join(group)}){after}"


def _disguises(literal: list[Atom], atoms: tuple[Atom, ...]) -> Iterator[tuple[str, Target]]:
    yield _rotated(literal, atoms), Target(view="rot13", find=rot13_word, cost=view_cost("rot13"))
    packs = zip(heads(_plain(literal)), ALPHABETS, strict=True) if len(literal) >= _TELLING_LITERAL else ()
    for packed, alphabet in packs:
        find = partial(radix85, size=len(packed), alphabet=alphabet)
        yield re.escape(packed), Target(view="radix85", find=find, cost=view_cost("radix85"))


def _turned_triggers(begun: Sequence[_Begun]) -> dict[str, Target]:
    """Triggers for tokens moved by 47 places, the longest first, as a token may hold the beginning of another.

    Tokens that begin alike share one.
    """
    forms: dict[tuple[str, int], list[str]] = {}
    for literal, atoms, _ in begun:
        plain = _plain(literal)
        after = _turned(atoms, len(literal)) if len(literal) < _TELLING_LITERAL else []
        form = re.escape(rot47(plain)) + "".join(after), len(plain) + len(after)
        forms.setdefault(form, []).append(render(atoms))
    return {
        expression: Target(
            view="rot47",
            find=partial(rot47_word, size=size, head=re.compile("|".join(heads))),
            cost=view_cost("rot47"),
        )
        for (expression, size), heads in sorted(forms.items(), key=lambda form: -form[0][1])
    }


def _turned(atoms: tuple[Atom, ...], known: int) -> list[str]:
    """What may stand for the characters after the first `known`, moved by 47 places; no more than tell."""
    classes = [atom.source for atom in atoms for _ in range(atom.count)][known:_TURNED]
    visible = [chr(code) for code in range(33, 127)]
    return [
        "[" + "".join(re.escape(rot47(c)) for c in visible if re.fullmatch(source, c)) + "]"
        for source in classes
    ]


def spaced_shapes(rules: Sequence[Rule]) -> dict[str, Target]:
    """Triggers for tokens spaced out, in the text with digits and letters folded.

    Their forms are few, and single letters in such an order hardly stand anywhere else.
    """
    forms = dict.fromkeys(shape_of(_plain(literal[:_SPACED_HEAD])) for literal, _, _ in _beginnings(rules))
    return {
        "".join(re.escape(char + separator) for char in form): Target(
            view="spaced",
            find=partial(spaced, size=len(form) * (1 + len(separator))),
            cost=view_cost("spaced"),
        )
        for form in forms
        for separator in _SEPARATORS
    }


def beginning(atoms: tuple[Atom, ...]) -> str:
    """The literal that a trigger begins with, as text; empty where it has none that tells its tokens in disguise."""
    literal = _leading_literal(atoms)
    telling = len(literal) >= _LEAST_LITERAL and len({atom.source for atom in literal}) > 1
    return _plain(literal) if telling else ""  # `AAAA` backwards is everywhere


def _leading_literal(atoms: tuple[Atom, ...]) -> list[Atom]:
    out: list[Atom] = []
    for atom in atoms:
        if atom.count != 1 or not _LITERAL.fullmatch(atom.source):
            break
        out.append(atom)
    return out


def _rotated(literal: list[Atom], atoms: tuple[Atom, ...]) -> str:
    head = _EDGE if len(literal) < _TELLING_LITERAL else ""
    head += "".join(
        atom.source if atom.source.startswith("\\") else codecs.encode(atom.source, "rot13")
        for atom in literal
    )
    rest = sum(atom.count for atom in atoms) - len(literal)
    return head + (f"[A-Za-z0-9_+/-]{{{rest}}}" if rest else "")
