"""Make `gateway/boundary/rarity.bin`: how surprising a word is, and a token after two others, in code and prose.

    python tools/rarity.py FOLDER ...

The folders are open code of many hands; the file that is shipped was made of Python's standard library, pip,
setuptools and twisted, and of the npm packages mocha, prettier and react-dom. It holds sixteenths of bits by hashes of
words and of triples of tokens, and no text. Words and triples that were not met count `MOST_WORD` and `MOST_SHAPE`.
"""

from __future__ import annotations

import sys
import zlib
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from gateway.boundary.rarity import FILE, MOST_SHAPE, MOST_WORD, UNIT, triples
from gateway.boundary.shingles import pieces, symbols
from gateway.boundary.words import Tokens, read, same_length, short

SUFFIXES = {".py", ".js", ".mjs", ".cjs", ".ts", ".css", ".html", ".md", ".rst", ".txt", ".json"}
_SMOOTH = 4.0  # what a triple's last token counts for by itself


def texts(folders: list[Path]) -> Iterator[Tokens]:
    """Every text of the folders, read; tests and minified files left out."""
    for folder in folders:
        for path in sorted(folder.rglob("*")):
            named = {"test", "tests", "site-packages"} & set(path.relative_to(folder).parts)
            if path.suffix not in SUFFIXES or not path.is_file() or named or path.stat().st_size > 400_000:
                continue
            text = path.read_text(encoding="utf-8", errors="replace")
            if max(map(len, text.split("\n"))) < 2000:
                yield from (read(piece) for _, piece in pieces(same_length(text)))


def main(folders: list[Path]) -> None:
    """Count twice: how often each occurs, then what that makes of each triple."""
    words = np.zeros(1 << 16)
    three, two, one = np.zeros(1 << 17), np.zeros(1 << 17), np.zeros(1 << 12)
    for tokens in texts(folders):
        np.add.at(words, short(tokens.hashes), 1)
        last, before = triples(symbols(tokens))
        np.add.at(three, last, 1)
        np.add.at(two, before, 1)
        np.add.at(one, symbols(tokens), 1)
    alone = (one + 0.1) / one.sum()
    shape = np.full(1 << 17, MOST_SHAPE * UNIT)
    for tokens in texts(folders):
        last, before = triples(symbols(tokens))
        bits = -np.log2((three[last] + _SMOOTH * alone[symbols(tokens)]) / (two[before] + _SMOOTH))
        np.minimum.at(shape, last, np.maximum(bits, 0) * 0.75 * UNIT)  # two triples may share a number
    word = np.minimum(-np.log2((words + 0.5) / words.sum()), MOST_WORD) * UNIT
    table = np.concatenate([word.round(), shape.round()]).astype(np.uint8)
    FILE.write_bytes(zlib.compress(table.tobytes(), 9))
    sys.stdout.write(f"{int(words.sum())} words, {FILE.stat().st_size} bytes\n")


if __name__ == "__main__":
    main([Path(name) for name in sys.argv[1:]])
