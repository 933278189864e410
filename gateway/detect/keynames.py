"""What a key's name says about its value: a password, a secret, or nothing.

`DB_PASSWORD`, `stripe.apiKey` and `clientSecret` hold secrets; `max_tokens`, `password_field`, `primary_key` and
`tokenizationId` do not. The name is cut into words and the last words decide; the answer is cached, as names repeat.
"""

from __future__ import annotations

import re
from enum import Enum
from functools import lru_cache

from gateway.detect.data import words


class KeyKind(Enum):
    """What kind of value to expect."""

    NONE = 0
    PASSWORD = 1  # may be short and readable
    SECRET = 2  # long and random
    KEY = 3  # long and random, and the name alone is weak evidence
    OWNED = 4  # a key of something unknown (`airbrake_key`): the value must speak for itself


_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+")
_SUFFIXES = words("key_suffixes")
_PASSWORDS = words("key_passwords")
_SECRETS = words("key_secrets")
_KEY_BEFORE = words("key_before")
_KEY_DENY = words("key_not_before")
_DENY = words("key_denied")
_VENDOR_KEY = re.compile(r"[A-Z][A-Z0-9]{2,30}(?:_[A-Z0-9]{2,30}){0,3}_KEY")
_COMPOUND = re.compile(
    r"(?:[a-z]{2,24})(?P<p>password|passwd|passphrase)"
    r"|(?P<pp>(?:db|sql|mysql|pg|ftp|smtp|mail|ldap|root|admin|user|login|my|ssh|become|key|store|keystore|remote|local)(?:pass|pwd|pw))"
    r"|(?:[a-z]{2,24})(?P<s>secret|apikey|token|accesskey|privatekey|secretkey|authkey)"
)


@lru_cache(maxsize=4096)
def key_kind(name: str) -> KeyKind:
    """The kind of value that a key, member or variable of this name holds."""
    words = [w.lower() for w in _WORD.findall(name)]
    while len(words) > 1 and (words[-1] in _SUFFIXES or words[-1].isdigit()):
        words.pop()
    if not words:
        return KeyKind.NONE
    last = words[-1]
    before = words[:-1]
    if len(words) > 1 and _DENY & set(before[-2:]) and last not in _PASSWORDS:
        return KeyKind.NONE
    if last in _PASSWORDS:
        return (
            KeyKind.NONE
            if before and before[-1] in {"no", "has", "is", "forgot", "reset", "show", "hide", "confirm"}
            else KeyKind.PASSWORD
        )
    if last in _SECRETS:
        return KeyKind.SECRET
    if last in {"key", "keys"} and before:
        return _of_key(name, before)
    if last == "auth" and before and before[-1] in {"basic", "http", "proxy", "registry"}:
        return KeyKind.PASSWORD
    if last in {"mnemonic", "jwt", "cookie", "sid", "signature"}:
        return KeyKind.NONE
    compound = _COMPOUND.fullmatch(last)
    if compound is None:
        return KeyKind.NONE
    return KeyKind.PASSWORD if compound["p"] or compound["pp"] else KeyKind.SECRET


def _of_key(name: str, before: list[str]) -> KeyKind:
    if before[-1] in _KEY_DENY and not (before[-1] in {"primary", "storage"} and len(before) > 1):
        return KeyKind.NONE
    if before[-1] in {
        "api",
        "access",
        "secret",
        "private",
        "auth",
        "encryption",
        "signing",
        "master",
        "apikey",
        "shared",
        "hmac",
        "preshared",
    }:
        return KeyKind.SECRET
    if before[-1] in _KEY_BEFORE or _VENDOR_KEY.fullmatch(name):
        return KeyKind.KEY
    return KeyKind.OWNED if len(before[-1]) > 2 else KeyKind.NONE
