"""Make `gateway/boundary/rarity.bin`: how surprising a word is, and a token after two others, in code and prose.

    python tools/rarity.py FOLDER ...

The folders are open code of many hands; the file that is shipped was made of Python's standard library, pip,
setuptools and twisted, of the npm packages mocha, prettier, react-dom, undici and @types/node, of the standard
libraries of Go, Rust and Ruby, of java.base, of the sources of uWSGI and psutil, and of some thirty packages of Debian
that libraries of Go, Rust and Ruby are built from.

It holds sixteenths of bits by hashes of words and of
triples of tokens, and no text. Each kind of file counts by itself, and what is usual in one is no surprise anywhere.
Words and triples that were not met count `MOST_WORD` and `MOST_SHAPE`.
"""

from __future__ import annotations

import random
import sys
import zlib
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from gateway.boundary.rarity import FILE, MOST_SHAPE, MOST_WORD, TRIPLE_BITS, UNIT, triples
from gateway.boundary.shingles import pieces, symbols
from gateway.boundary.words import Tokens, read, same_length, short

KINDS = {
    "python": {".py"},
    "javascript": {".js", ".mjs", ".cjs", ".ts", ".tsx"},
    "go": {".go"},
    "rust": {".rs"},
    "ruby": {".rb"},
    "java": {".java"},
    "c": {".c", ".h", ".cc", ".cpp"},
    "text": {".md", ".rst", ".txt"},
    "data": {".css", ".html", ".json", ".toml", ".yaml", ".yml"},
}
_LEFT_OUT = {"test", "tests", "testdata", "site-packages", "vendor", "node_modules"}
_MOST_BYTES = 16_000_000  # of one kind
_WORTH = 0.975  # of the surprise of a token beside that of a word; set with the thresholds
_SMOOTH = 4.0  # what a triple's last token counts for by itself


def texts(folders: list[Path], suffixes: set[str]) -> Iterator[Tokens]:
    """The texts of one kind, read, in an order that is always the same; tests and minified files left out."""
    paths = sorted(
        path
        for folder in folders
        for path in folder.rglob("*")
        if path.suffix in suffixes and not _LEFT_OUT & set(path.relative_to(folder).parts)
    )
    random.Random(1).shuffle(paths)
    size = 0
    for path in paths:
        if not path.is_file() or path.stat().st_size > 400_000:
            continue
        text = path.read_text(encoding="utf-8", errors="replace")
        if max(map(len, text.split("\n"))) < 2000:
            yield from (read(piece) for _, piece in pieces(same_length(text)))
            size += len(text)
            if size > _MOST_BYTES:
                return


def main(folders: list[Path]) -> None:
    """Count each kind twice: how often each occurs, then what that makes of each triple."""
    word = np.full(1 << 16, MOST_WORD * UNIT)
    shape = np.full(1 << TRIPLE_BITS, MOST_SHAPE * UNIT)
    for kind, suffixes in KINDS.items():
        read_of = list(texts(folders, suffixes))
        words = np.zeros(1 << 16)
        three, two, one = np.zeros(1 << TRIPLE_BITS), np.zeros(1 << TRIPLE_BITS), np.zeros(1 << 12)
        for tokens in read_of:
            np.add.at(words, short(tokens.hashes), 1)
            last, before = triples(symbols(tokens))
            np.add.at(three, last, 1)
            np.add.at(two, before, 1)
            np.add.at(one, symbols(tokens), 1)
        alone = (one + 0.1) / one.sum()
        for tokens in read_of:
            last, before = triples(symbols(tokens))
            bits = -np.log2((three[last] + _SMOOTH * alone[symbols(tokens)]) / (two[before] + _SMOOTH))
            np.minimum.at(shape, last, np.maximum(bits, 0) * _WORTH * UNIT)  # two triples may share a number
        word = np.minimum(word, -np.log2((words + 0.5) / words.sum()) * UNIT)
        sys.stdout.write(f"{kind}: {int(words.sum())} words\n")
    table = np.concatenate([word.round(), shape.round()]).astype(np.uint8)
    FILE.write_bytes(zlib.compress(table.tobytes(), 9))
    sys.stdout.write(f"{FILE.stat().st_size} bytes\n")


if __name__ == "__main__":
    main([Path(name) for name in sys.argv[1:]])
