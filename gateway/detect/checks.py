"""Validators by name, as rules name them: does the datum hold what its issuer puts into it?

A new one is one function and one row of CHECKS. Each takes the datum as matched and never raises.
"""

from __future__ import annotations

import base64
import binascii
import json
import re
from collections.abc import Callable

from gateway.detect import checksums as sums
from gateway.detect.contact import CONTACT_CHECKS
from gateway.detect.entropy import (
    DIGIT,
    bits,
    is_passphrase,
    is_readable_base64,
    looks_random,
    random_letters,
    random_mixed,
)
from gateway.detect.identity import IDENTITY_CHECKS
from gateway.detect.identity_further import FURTHER_CHECKS
from gateway.detect.identity_world import WORLD_CHECKS
from gateway.detect.samples import is_filler, is_public, is_reference
from gateway.detect.turns import TURN_CHECKS


def github(value: str) -> bool:
    """Six base-62 digits of CRC-32 at the end (GitHub classic tokens, npm)."""
    body = value.rpartition("_")[2]
    return len(body) > 6 and sums.crc32_base62(body[:-6], body[-6:])


def gitlab_routable(value: str) -> bool:
    """Seven base-36 digits of CRC-32 of everything before them."""
    return sums.crc32_base36(value[:-7], value[-7:])


def atlassian(value: str) -> bool:
    """Eight hex digits of CRC-32 of everything up to `=`."""
    head, _, tail = value.rpartition("=")
    return len(tail) == 8 and sums.crc32_hex(head + "=", tail)


def decode_base64(value: str) -> bytes | None:
    """Standard or URL alphabet, padding optional; None when it is neither."""
    text = value.rstrip("=").replace("-", "+").replace("_", "/")
    try:
        return binascii.a2b_base64(text + "=" * (-len(text) % 4), strict_mode=True)
    except (binascii.Error, ValueError):
        return None


def _decode_loose(value: str) -> bytes | None:
    text = value.rstrip("=").replace("-", "+").replace("_", "/")
    try:
        return binascii.a2b_base64(text + "=" * (-len(text) % 4))
    except (binascii.Error, ValueError):
        return None


def jwt(value: str) -> bool:
    """The first part is a JSON object with `alg` (RFC 7515) or `enc` (RFC 7516)."""
    raw = _decode_loose(value.split(".", 1)[0])
    try:
        head = json.loads(raw) if raw else None
    except (ValueError, RecursionError):
        return False
    return isinstance(head, dict) and ("alg" in head or "enc" in head)


def base64_json(value: str) -> bool:
    """What follows the prefix is base64 of JSON (Grafana Cloud, 1Password, Sentry organisations)."""
    raw = _decode_loose(value[value.find("eyJ") :].split("_", 1)[0]) if "eyJ" in value else None
    return bool(raw) and raw is not None and raw[:2] == b'{"'


def key64(value: str) -> bool:
    """Base64 of 64 bytes (Azure storage)."""
    raw = _decode_loose(value)
    return raw is not None and len(raw) == 64


def key32(value: str) -> bool:
    """Base64 of 32 bytes, perhaps percent-encoded (Azure shared access signatures, WireGuard)."""
    text = value.replace("%2B", "+").replace("%2F", "/").replace("%3D", "=")
    text = text.replace("%2b", "+").replace("%2f", "/").replace("%3d", "=")
    raw = _decode_loose(text)
    return raw is not None and len(raw) == 32


def discord(value: str) -> bool:
    """The first part is base64 of the bot's numeric id."""
    raw = _decode_loose(value.split(".", 1)[0])
    return raw is not None and raw.isdigit()


def basic_auth(value: str) -> bool:
    """Base64 of `user:password` (RFC 7617)."""
    raw = _decode_loose(value)
    return raw is not None and b":" in raw and all(32 <= c < 127 or c > 159 for c in raw)


def bedrock(value: str) -> bool:
    """Base64 that starts with `BedrockAPIKey-`."""
    raw = _decode_loose(value[4:44])
    return raw is not None and raw.startswith(b"BedrockAPIKey-")


def wif(value: str) -> bool:
    """Bitcoin WIF: base58check with version 0x80."""
    raw = sums.base58check(value)
    return raw is not None and len(raw) in {33, 34} and raw[0] == 0x80


def extended_key(value: str) -> bool:
    """BIP 32: base58check of 78 bytes."""
    raw = sums.base58check(value)
    return raw is not None and len(raw) == 78


def btc_address(value: str) -> bool:
    """base58check of 21 bytes, or bech32."""
    if value.lower().startswith("bc1"):
        return sums.bech32(value)
    raw = sums.base58check(value)
    return raw is not None and len(raw) == 21


def eth_address(value: str) -> bool:
    """EIP-55 where the case is mixed."""
    body = value[2:]
    return body in {body.lower(), body.upper()} or sums.eip55(body)


def mixed(value: str) -> bool:
    """Letters and digits, and not a run of one pattern: what separates random text from words."""
    body = value[-24:]
    return any(c.isdigit() for c in body) and any(c.isalpha() for c in body) and len(set(body)) >= 8


def upper_lower_digit(value: str) -> bool:
    """All three classes, as random base-62 text of 20 and more characters nearly always has."""
    return bool(re.search(r"[a-z]", value) and re.search(r"[A-Z]", value) and re.search(r"\d", value))


def b32_bytes(value: str) -> bool:
    """Base32 text (A-Z, 2-7) whose length is whole."""
    try:
        base64.b32decode(value + "=" * (-len(value) % 8))
    except binascii.Error:
        return False
    return True


_SYMBOLS = re.compile(r"[^A-Za-z0-9\s]")


def bearer(value: str) -> bool:
    """An opaque token: not words joined by dashes, not a filler."""
    body = value.rstrip("=")
    if body.startswith("eyJ"):
        return True
    if random_mixed(body) or random_letters(body):
        return True
    digits = sum(c.isdigit() for c in body)
    return len(body) >= 16 and digits >= 2 and any(c.isalpha() for c in body) and len(set(body)) >= 8


def not_reference(value: str) -> bool:
    """A literal, not a variable, a template or a call."""
    return not is_reference(value) and not is_filler(value) and not is_public(value)


def unreadable(value: str) -> bool:
    """Base-62 text that does not decode to words."""
    return not is_readable_base64(value) and mixed(value)


def not_reference_symbol(value: str) -> bool:
    """A literal with a digit or a symbol in it."""
    return not_reference(value.strip("'\"")) and mixed_or_symbol(value)


def spoken_password(value: str) -> bool:
    """What a sentence calls the password: letters with a digit, or with a symbol inside, and no reference."""
    body = value.split("\\n", 1)[0].rstrip(".,;:!?)")
    has_digit = any(c.isdigit() for c in body)
    symbol = any(not c.isalnum() and c not in "-'_./" for c in body[1:])
    literal = not_reference(body) and not_reference(value)
    odd = has_digit or symbol or is_passphrase(body)
    return len(body) >= 6 and odd and any(c.isalpha() for c in body) and literal


def mixed_or_symbol(value: str) -> bool:
    """Letters with digits or symbols."""
    return any(c.isalpha() for c in value) and (
        any(c.isdigit() for c in value) or bool(_SYMBOLS.search(value))
    )


def _by_chance(value: str) -> bool:
    """Without a digit or a symbol, yet no word and no label: random letters, words at random."""
    return is_passphrase(value) or random_letters(value)


def option_password(value: str) -> bool:
    """What an option of a command says is the password: a digit or a symbol in it, or drawn by chance; no reference."""
    odd = any(c.isdigit() for c in value) or any(not c.isalnum() and c not in "-_./: " for c in value)
    letters = any(c.isalpha() for c in value)
    return (odd or _by_chance(value)) and len(value) >= 6 and letters and not_reference(value)


def call_password(value: str) -> bool:
    """An argument that stands where a password goes; a word with one digit behind it may as well be a name."""
    numbered = value.lower() == value and value[:-1].replace("-", "").replace("_", "").isalpha()
    return option_password(value) and not (numbered and value[-1:].isdigit())


def strong_password(value: str) -> bool:
    """What reads as a password even without a word that says so: two digits or a digit and a symbol, among letters."""
    body = value.rstrip(".!?:")
    digits = sum(c.isdigit() for c in body)
    symbols = sum(not c.isalnum() and c not in "-'_./" for c in body[1:])
    odd = digits + symbols >= 2 and any(c.isalpha() for c in body)
    return (odd or random_mixed(body)) and not_reference(body)


def foreign_password(value: str) -> bool:
    """What follows the word for password in another language: a password by its characters, or drawn by chance."""
    body = value.rstrip(".,;:!?")
    return strong_password(body) or (_by_chance(body) and not_reference(body))


def opaque(value: str) -> bool:
    """A long random value: no words, no version, no identifier with dashes."""
    digits = len(DIGIT.findall(value)) >= 2 or random_mixed(value)
    return value.count("-") < 3 and digits and looks_random(value, least=20)


def drawn_tail(value: str) -> bool:
    """Random to its end: 24 characters, as a filler or words behind a real head have none."""
    return looks_random(value[-24:], least=20)


def dense(value: str) -> bool:
    """Random base-62 text throughout; base64 of tables and machine code repeats itself."""
    return bits(value) >= 5.0


COSTS: dict[str, int] = {
    "answered_turn": 14,
    "phone": 8,
    "extended_key": 10,
    "opaque": 7,
    "spoken_password": 8,
    "bech32": 8,
    "github": 6,
    "wif": 6,
    "drawn_tail": 4,
    "bearer": 4,
    "foreign_password": 5,
    "option_password": 4,
    "not_reference": 4,
    "not_reference_symbol": 4,
    "nkey": 4,
    "strong_password": 4,
    "ru_inn": 3,
    "ip_public": 4,
    "de_kvnr": 3,
    "in_aadhaar": 3,
    "call_password": 3,
    "dense": 3,
    "ru_snils": 2,
    "btc_address": 2,
    "ar_cuit": 2,
    "cz_rodne_cislo": 2,
    "national_id": 8,
}
"""Units of the budget for the validators that cost most."""

CHECKS: dict[str, Callable[[str], bool]] = {
    "option_password": option_password,
    "call_password": call_password,
    "strong_password": strong_password,
    "foreign_password": foreign_password,
    "opaque": opaque,
    "drawn_tail": drawn_tail,
    "dense": dense,
    "unreadable": unreadable,
    "bearer": bearer,
    "spoken_password": spoken_password,
    "not_reference": not_reference,
    "not_reference_symbol": not_reference_symbol,
    "mixed_or_symbol": mixed_or_symbol,
    "github": github,
    "gitlab_routable": gitlab_routable,
    "atlassian": atlassian,
    "jwt": jwt,
    "base64_json": base64_json,
    "key64": key64,
    "key32": key32,
    "discord": discord,
    "basic_auth": basic_auth,
    "bedrock": bedrock,
    "wif": wif,
    "extended_key": extended_key,
    "btc_address": btc_address,
    "eth_address": eth_address,
    "bech32": sums.bech32,
    "nkey": sums.nkey,
    "mixed": mixed,
    "upper_lower_digit": upper_lower_digit,
    "b32": b32_bytes,
    **IDENTITY_CHECKS,
    **WORLD_CHECKS,
    **FURTHER_CHECKS,
    **TURN_CHECKS,
    **CONTACT_CHECKS,
}
