"""Lists that formats and judgements rest on: `bip39_english.txt` (BIP 39; MIT, SatoshiLabs) and `words.toml`."""

from __future__ import annotations

import hashlib
import tomllib
from functools import cache
from importlib.resources import files


def bip39_words() -> tuple[str, ...]:
    """The 2,048 words of BIP 39 in order."""
    return tuple(files(__name__).joinpath("bip39_english.txt").read_text("ascii").split())


@cache
def _lists() -> dict[str, str]:
    return tomllib.loads(files(__name__).joinpath("words.toml").read_text("utf-8"))


def fingerprint() -> str:
    """A digest of the lists, for the revision of the detector."""
    return hashlib.sha256(repr(sorted(_lists().items())).encode()).hexdigest()


def words(name: str) -> frozenset[str]:
    """One word list."""
    return frozenset(_lists()[name].split())
