"""Prose of made-up sentences, the same for the same seed, with nothing in common between seeds but words."""

from __future__ import annotations

import random

_SUBJECTS = (
    "the ledger",
    "a courier",
    "the harbour",
    "this index",
    "our bridge",
    "the kiln",
    "a beacon",
    "the mill",
)
_VERBS = ("settles", "reopens", "carries", "mirrors", "outlives", "repays", "divides", "postpones")
_OBJECTS = (
    "every tariff",
    "its oldest route",
    "the winter quota",
    "a broken seal",
    "the spare engine",
    "two estates",
)
_PLACES = (
    "near Brightwater",
    "under Kestrel Hill",
    "before the cut-over",
    "without a receipt",
    "at the far quay",
)


def prose(seed: int, *, lines: int) -> str:
    """`lines` sentences of some sixty letters."""
    chance = random.Random(seed)
    found = []
    for _ in range(lines):
        words = "".join(chance.choice("bcdfglmnprst") + chance.choice("aeiou") for _ in range(5))
        parts = [chance.choice(group) for group in (_SUBJECTS, _VERBS, _OBJECTS, _PLACES)]
        found.append(f"{' '.join(parts)} as {words} told {words[::-1]}")
    return "\n".join(found)
