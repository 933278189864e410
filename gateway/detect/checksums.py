"""Check digits and checksums as the issuers publish them. Pure functions over the characters of a value."""

from __future__ import annotations

import base64
import binascii
import hashlib
import re
import zlib
from functools import reduce
from itertools import pairwise
from operator import xor

BASE62 = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
BASE58 = "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz"
BECH32 = "qpzry9x8gf2tvdw0s3jn54khce6mua7l"
_NO_DIGIT = re.compile(r"[^0-9]+")
_DOUBLED = (0, 2, 4, 6, 8, 1, 3, 5, 7, 9)  # twice a digit, the digits of that added up
_BECH32_VALUES = {c: n for n, c in enumerate(BECH32)}
_BASE36 = "0123456789abcdefghijklmnopqrstuvwxyz"
_D = (
    "0123456789", "1234067895", "2340178956", "3401289567", "4012395678",
    "5987604321", "6598710432", "7659821043", "8765932104", "9876543210",
)  # fmt: skip
_P = (
    "0123456789", "1576283094", "5803796142", "8916043527", "9453126870", "4286573901", "2793806415", "7046913258",
)  # fmt: skip


_ZERO = ord("0")


def digits(value: str) -> list[int]:
    """The ASCII digits of a value."""
    return [code - _ZERO for code in _NO_DIGIT.sub("", value).encode()]


def luhn(numbers: list[int]) -> bool:
    """ISO/IEC 7812-1 annex B."""
    return (sum(numbers[-1::-2]) + sum(map(_DOUBLED.__getitem__, numbers[-2::-2]))) % 10 == 0


def verhoeff(numbers: list[int]) -> bool:
    """Verhoeff's dihedral check (Aadhaar)."""
    check = 0
    for position, digit in enumerate(reversed(numbers)):
        check = int(_D[check][int(_P[position % 8][digit])])
    return check == 0


def mod97(text: str) -> int:
    """The remainder of ISO 7064 mod 97 with letters as 10-35."""
    return int("".join(str(int(c, 36)) for c in text)) % 97


def mod11_10(numbers: list[int]) -> bool:
    """ISO 7064 mod 11,10 (German tax id)."""
    product = 10
    for digit in numbers[:-1]:
        total = (digit + product) % 10 or 10
        product = total * 2 % 11
    return (11 - product) % 10 == numbers[-1]


def weighted(numbers: list[int], weights: tuple[int, ...]) -> int:
    """The weighted sum of the leading digits."""
    return sum(n * w for n, w in zip(numbers, weights, strict=False))


def crc32_base62(body: str, tail: str) -> bool:
    """GitHub and npm tokens: the tail is CRC-32 of the body in base 62, padded with 0."""
    number = zlib.crc32(body.encode())
    out = ""
    while number:
        number, rest = divmod(number, 62)
        out = BASE62[rest] + out
    return out.rjust(len(tail), "0") == tail


def crc32_base36(text: str, tail: str) -> bool:
    """GitLab routable tokens: CRC-32 of all before the tail in base 36, padded to seven."""
    number = zlib.crc32(text.encode())
    out = ""
    while number:
        number, rest = divmod(number, 36)
        out = _BASE36[rest] + out
    return out.rjust(7, "0") == tail


def crc32_hex(text: str, tail: str) -> bool:
    """Atlassian tokens: CRC-32 of all up to and including `=`, in upper-case hex."""
    return f"{zlib.crc32(text.encode()):08X}" == tail.upper()


def base58check(value: str) -> bytes | None:
    """The payload where the double SHA-256 checksum holds."""
    number = 0
    for char in value:
        index = BASE58.find(char)
        if index < 0:
            return None
        number = number * 58 + index
    raw = number.to_bytes((number.bit_length() + 7) // 8, "big")
    raw = b"\0" * (len(value) - len(value.lstrip("1"))) + raw
    if len(raw) < 5 or hashlib.sha256(hashlib.sha256(raw[:-4]).digest()).digest()[:4] != raw[-4:]:
        return None
    return raw[:-4]


_BECH32_GENERATORS = (0x3B6A57B2, 0x26508E6D, 0x1EA119FA, 0x3D4233DD, 0x2A1462B3)
_BECH32_STEPS = tuple(  # what the five generators add for each value of the top bits
    reduce(xor, (g for bit, g in enumerate(_BECH32_GENERATORS) if top >> bit & 1), 0) for top in range(32)
)


def bech32(value: str) -> bool:
    """BIP 173 (constant 1) and BIP 350 (bech32m)."""
    if value.lower() != value and value.upper() != value:
        return False
    human, separator, data = value.lower().rpartition("1")
    if not separator or not human or len(data) < 6 or any(c not in BECH32 for c in data):
        return False
    values = (
        [ord(c) >> 5 for c in human] + [0] + [ord(c) & 31 for c in human] + [_BECH32_VALUES[c] for c in data]
    )
    check = 1
    for item in values:
        top = check >> 25
        check = (check & 0x1FFFFFF) << 5 ^ item ^ _BECH32_STEPS[top]
    return check in {1, 0x2BC830A3}


def crc16_xmodem(data: bytes) -> int:
    """CRC-16/XMODEM, the check of NATS nkeys (little endian in the last two bytes)."""
    return binascii.crc_hqx(data, 0)


def nkey(value: str) -> bool:
    """A NATS nkey: base32 whose last two bytes are the CRC-16 of the rest."""
    try:
        raw = base64.b32decode(value + "=" * (-len(value) % 8))
    except binascii.Error:
        return False
    return len(raw) > 4 and crc16_xmodem(raw[:-2]) == int.from_bytes(raw[-2:], "little")


def bip39(indexes: list[int]) -> bool:
    """BIP 39: the last bits of the word indexes are the first bits of SHA-256 of the rest."""
    size = len(indexes) * 11
    number = 0
    for index in indexes:
        number = number << 11 | index
    check = size // 33
    entropy = (number >> check).to_bytes((size - check) // 8, "big")
    return hashlib.sha256(entropy).digest()[0] >> (8 - check) == number & ((1 << check) - 1)


def monotone(numbers: list[int]) -> bool:
    """Whether every digit follows the last by the same step of 0, 1 or -1 (111..., 12345...)."""
    steps = {(b - a) % 10 for a, b in pairwise(numbers)}
    return len(steps) <= 1 and (not steps or steps <= {0, 1, 9})


_KECCAK_RC = (
    0x0000000000000001, 0x0000000000008082, 0x800000000000808A, 0x8000000080008000,
    0x000000000000808B, 0x0000000080000001, 0x8000000080008081, 0x8000000000008009,
    0x000000000000008A, 0x0000000000000088, 0x0000000080008009, 0x000000008000000A,
    0x000000008000808B, 0x800000000000008B, 0x8000000000008089, 0x8000000000008003,
    0x8000000000008002, 0x8000000000000080, 0x000000000000800A, 0x800000008000000A,
    0x8000000080008081, 0x8000000000008080, 0x0000000080000001, 0x8000000080008008,
)  # fmt: skip
_MASK = (1 << 64) - 1


def keccak256(data: bytes) -> bytes:
    """Keccak-256 (the original padding) of less than 136 bytes: what EIP-55 needs."""
    block = bytearray(136)
    block[: len(data)] = data
    block[len(data)] ^= 0x01
    block[135] ^= 0x80
    lanes = [[0] * 5 for _ in range(5)]
    for index in range(17):
        lanes[index % 5][index // 5] = int.from_bytes(block[index * 8 : index * 8 + 8], "little")
    for constant in _KECCAK_RC:
        lanes = _keccak_round(lanes, constant)
    return b"".join(lanes[i % 5][i // 5].to_bytes(8, "little") for i in range(4))


def _rotate(value: int, by: int) -> int:
    return ((value << by) | (value >> (64 - by))) & _MASK if by else value


def _keccak_round(lanes: list[list[int]], constant: int) -> list[list[int]]:
    columns = [lanes[x][0] ^ lanes[x][1] ^ lanes[x][2] ^ lanes[x][3] ^ lanes[x][4] for x in range(5)]
    mixed = [columns[(x - 1) % 5] ^ _rotate(columns[(x + 1) % 5], 1) for x in range(5)]
    lanes = [[lane ^ mixed[x] for lane in lanes[x]] for x in range(5)]
    x, y, current = 1, 0, lanes[1][0]
    for step in range(24):
        x, y = y, (2 * x + 3 * y) % 5
        current, lanes[x][y] = lanes[x][y], _rotate(current, (step + 1) * (step + 2) // 2 % 64)
    lanes = [
        [lanes[x][y] ^ (~lanes[(x + 1) % 5][y] & lanes[(x + 2) % 5][y] & _MASK) for y in range(5)]
        for x in range(5)
    ]
    lanes[0][0] ^= constant
    return lanes


def eip55(address: str) -> bool:
    """EIP-55: the case of the 40 hex digits is that of their Keccak-256."""
    digest = keccak256(address.lower().encode()).hex()
    return all(
        c == (c.upper() if int(h, 16) > 7 else c.lower()) for c, h in zip(address, digest, strict=False)
    )
