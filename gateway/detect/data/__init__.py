"""What formats and judgements rest on: the words of BIP 39 (MIT, SatoshiLabs) and the TOML files here."""

from __future__ import annotations

import hashlib
import tomllib
from functools import cache
from importlib.resources import files
from typing import Any


def bip39_words() -> tuple[str, ...]:
    """The 2,048 words of BIP 39 in order."""
    return tuple(files(__name__).joinpath("bip39_english.txt").read_text("ascii").split())


@cache
def document(name: str) -> dict[str, Any]:
    """One TOML file."""
    return tomllib.loads(files(__name__).joinpath(name).read_text("utf-8"))


def _lists() -> dict[str, str]:
    return document("words.toml")


def fingerprint() -> str:
    """A digest of them, for the revision of the detector."""
    parts = (sorted(_lists().items()), document("forms.toml"), document("orders.toml"))
    return hashlib.sha256(repr(parts).encode()).hexdigest()


def words(name: str) -> frozenset[str]:
    """One word list."""
    return frozenset(_lists()[name].split())
