"""Stored texts made small: zstd with a dictionary of typical evidence, which is shipped and never changes.

Records are mostly member names and digests. The dictionary knows the names and how hexadecimal digits are
distributed, so that texts of a few hundred bytes shrink as well as long ones: to a third, in about 15 µs.
Digests are always those of the text itself. A dictionary that was released stays, byte for byte; a better one
gets a number of its own (tools/part_dictionary.py makes it).
"""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from typing import Final

import zstandard

from gateway.errors import VerificationError

PLAIN: Final = 0
"""Codec of a text that is stored as it is."""

ZSTD_1: Final = 1
"""Codec of a zstd frame made with the first dictionary."""

MAX_TEXT: Final = 16 * 1024 * 1024
"""Bytes; a stored text that claims to be longer is damaged, and is not unpacked."""

_LEVEL = 3
_SMALLEST = 48  # a frame's own bytes eat up what less could save


@cache
def _dictionary() -> zstandard.ZstdCompressionDict:
    made = zstandard.ZstdCompressionDict((files("gateway.store") / "data" / "parts-1.zdict").read_bytes())
    made.precompute_compress(level=_LEVEL)
    return made


class Packer:
    """Compresses; for one thread, since it works in a buffer of its own."""

    def __init__(self) -> None:
        self._zstd = zstandard.ZstdCompressor(
            dict_data=_dictionary(), level=_LEVEL, write_checksum=False, write_dict_id=False
        )

    def pack(self, text: bytes) -> tuple[int, bytes]:
        """(codec, stored form), the smaller of the two forms."""
        if len(text) >= _SMALLEST:
            packed = self._zstd.compress(text)
            if len(packed) < len(text):
                return ZSTD_1, packed
        return PLAIN, text


class Unpacker:
    """Gives back what `Packer` stored; for one thread."""

    def __init__(self) -> None:
        self._zstd = zstandard.ZstdDecompressor(dict_data=_dictionary())

    def unpack(self, codec: int, stored: bytes) -> bytes:
        """The text; VerificationError `store.packed` where the stored form is damaged or of an unknown codec."""
        if codec == PLAIN:
            return stored
        try:
            if codec == ZSTD_1 and 0 <= zstandard.frame_content_size(stored) <= MAX_TEXT:
                return self._zstd.decompress(stored)
        except zstandard.ZstdError as error:
            raise VerificationError("store.packed", "a stored text cannot be unpacked") from error
        raise VerificationError("store.packed", "a stored text is not in a form that can be unpacked")
