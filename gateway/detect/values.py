"""Whether an assigned value can be a secret: its form against what its key promises."""

from __future__ import annotations

import re
from typing import NamedTuple

from gateway.detect.checks import strong_password
from gateway.detect.entropy import (
    DIGIT,
    LEAST_RANDOM,
    UUID,
    has_sequence,
    is_date,
    is_passphrase,
    is_readable_base64,
    looks_chosen,
    looks_random,
    random_letters,
    random_mixed,
    unspoken,
)
from gateway.detect.keynames import KeyKind
from gateway.detect.samples import is_filler, is_public, is_reference

_CODE = re.compile(
    r"(?:[abglstvw]:|@{1,2})?[A-Za-z_$][\w$]{0,80}(?:(?:\.|->|::|\?\.)[A-Za-z_$][\w$]{0,80}|\[[^\]]{0,80}\]){0,8}"
    r"(?:\(.{0,400}|[!?](?:[.\[(].{0,400})?)?"
)
# What follows a value that is a whole setting, not code.
_ENDS = frozenset(("", "\n", "\r", "\\", ";", "&", "<", "#", '"', "'"))
_MEMBER_ENDS = frozenset((" ", ",", "}"))
_SETS = frozenset(("=", ":", ":=", "?="))
_PATHLIKE = re.compile(
    r"(?:[a-z]{1,12}:/|\.{0,2}/|~/|[A-Za-z]:\\|#/|#[a-z]|\\\\).{0,400}|[\w.-]{1,80}(?:/[\w.-]{1,80}){2,8}"
)
_ODD = re.compile(r"[^\w .-]")
_SIGN = re.compile(r"[!@#$%^&*?_+~]\w{0,12}\Z")  # a sign near the end, as people put it
_SETTING = re.compile(r"[A-Z][A-Z0-9]{1,24}(?:_[A-Z0-9]{1,24}){1,6}")
_CHOSEN = re.compile(r"[A-Za-z0-9][\w!@#$%^&*?+~.-]{7,39}")
_UNUSUAL = re.compile(r"[^\w.$ -]")
_NAMING = re.compile(
    r"(?i)(?:key|keys|token|tokens|secret|secrets|password|credential|credentials)(?:_?\d)?\Z"
)
_NAMED = ("key", "token", "secret", "keys", "tokens", "secrets", "password", "credential", "credentials")
_COUNTED = "_0123456789"
_CAMEL = re.compile(r"[A-Z]*[a-z]*(?:[A-Z][a-z]+)+")  # a class or a method: `HTTPPasswordMgr`
_ALPHABET = "abcdefghijklmnopqrstuvwxyz"
_CONSONANTS = re.compile(r"(?i)[b-df-hj-np-tv-xz]{5}")
_SHORTEST = 10  # characters of what is no password: fewer pass none of the tests
_LEAST_LETTERS = 12  # of a password of letters alone that stands without an operator
_STRUCK = re.compile(r"[a-z]{3,24}[$!^~*][a-z]{3,24}")  # `super$ecret`: no path, address or format has that
_ARGUMENT = re.compile(r"[A-Za-z_][\w.]{0,40}=(?!=?\Z)")  # not the padding of base64
_CONSTANT = re.compile(r"(?=[A-Z0-9_]*_[A-Z]{3,24}(?:_|\Z))[A-Z][A-Z0-9]{1,24}(?:_[A-Z0-9]{1,24}){1,9}")
_ASKING = re.compile(
    r"(?i:split|get|parse|find|read|load|fetch|prompt|ask|lookup|resolve)(?:[_A-Z]|pass|pwd|pw)"
)
_LISTED = re.compile(r"[a-z][a-z0-9]{0,24}(?:[_.-][a-z0-9]{1,24}){1,8}|(?i:base|utf|ascii|latin)-?\d{0,3}")
_EXPRESSION = re.compile(  # what regular expressions hold and no generated key does
    r"\(\?[:=!P<]|\\[.()|dwsbDWSB](?:[*+?|()\\]|\Z)|\[[^\]\s]{0,12}[0-9a-zA-Z]-[0-9a-zA-Z][^\]\s]{0,12}\][*+?{]"
)


class Assigned(NamedTuple):
    """A value as it stands: its key, the operator (a space where there is none), quotes, what follows it."""

    key: str
    kind: KeyKind
    value: str
    operator: str
    quoted: bool
    tight: bool  # nothing between operator and value, or the key is a command's option
    following: str
    ending: str = ""  # the character after an unquoted value
    connection: bool = False  # among the members of a connection string


def plausible(a: Assigned) -> bool:
    """Whether the value can be what its key's name promises."""
    if (a.kind is not KeyKind.PASSWORD and len(a.value) < _SHORTEST) or _no_literal(a):
        return False
    if a.operator == " ":
        return _spaced(a)
    if a.operator in {",", ";", "|", "("} and not a.quoted:
        if a.kind is KeyKind.PASSWORD and a.operator != "(":
            odd = strong_password(a.value) and (_beyond_a_name(a.value) or looks_random(a.value))
            odd = odd or without_digits(a.value)
            named = _PATHLIKE.fullmatch(a.value) or is_date(a.value) or _ARGUMENT.match(a.value)
            return odd and not named
        drawn = random_mixed(a.value) or (looks_random(a.value) and _not_a_name(a.value))
        return a.operator != "(" and drawn
    match a.kind:
        case KeyKind.OWNED:
            return (a.quoted or a.key.startswith(("X-", "x-"))) and _owned(a.value)
        case KeyKind.PASSWORD:
            return not _a_path(a.value) and _password(a)
        case _:
            return _long(a)


def _no_literal(a: Assigned) -> bool:
    """A filler, a reference, a public value, a call, a prompt, or a name that says itself what it is."""
    if not a.quoted and (a.ending == "(" or _named_in_code(a)):
        return True
    if is_filler(a.value) or is_reference(a.value) or is_public(a.value) or "://" in a.value:
        return True
    if _EXPRESSION.search(a.value) is not None or _ALPHABET.startswith(a.value.lower()):
        return True  # `PORT_PAT = "(?::0*?([1-9][0-9]{0,4}))?"`, `password = 'abcdefghijkl'`
    if a.operator == "(" and (a.value[-1] == ":" or " " in a.value):
        return True
    if a.quoted and a.value.rstrip().endswith(":") and not DIGIT.search(a.value):
        return True  # a prompt
    if a.operator == "(" and a.kind in {KeyKind.KEY, KeyKind.OWNED} and not _owned(a.value):
        return True  # `getKey("...")`
    # `ed25519.Ed25519PrivateKey`, `CLIENT_TRAFFIC_SECRET_0`
    named = a.kind is not KeyKind.PASSWORD and a.value.lower().rstrip(_COUNTED).endswith(_NAMED)
    return named and _NAMING.search(a.value) is not None


def _named_in_code(a: Assigned) -> bool:
    """A member behind an arrow, an index, the next constant of a list: `Credentials->$method`, `X_TOKEN, X_NAME`."""
    if (a.ending == ">" and a.value[-1] == "-") or (a.ending == "[" and _CODE.fullmatch(a.value)):
        return True
    beside = a.key.partition("_")[0] == a.value.partition("_")[0]
    return beside and "_" in a.key and _CONSTANT.fullmatch(a.value) is not None


def _long(a: Assigned) -> bool:
    """A value that must be long and random."""
    random = looks_random(a.value)
    if a.kind is KeyKind.SECRET and _short_secret(a, random=random):
        return True
    if _PATHLIKE.fullmatch(a.value) and not (random and len(a.value) >= 24):
        return False
    if not a.quoted and _CODE.fullmatch(a.value) and not (random and _not_a_name(a.value)):
        return False
    if a.kind is KeyKind.KEY:
        return (
            random and len(a.value) >= 20 and not UUID.fullmatch(a.value) and not is_readable_base64(a.value)
        )
    return random or _symbols(a.value)


def _short_secret(a: Assigned, *, random: bool | None = None) -> bool:
    """What is no long random text and yet no name of anything, set as a value: short, chosen, or words at random."""
    value = a.value
    option = a.key.startswith("-") and a.tight
    placed = a.quoted or option or (a.operator in _SETS and (_settled(a) or a.ending in _MEMBER_ENDS))
    placed = placed or (a.operator == " " and a.ending in _ENDS and _SETTING.fullmatch(a.key) is not None)
    if not placed or _compared(a) or not 10 <= len(value) <= 80:
        return False
    if is_passphrase(value):
        return a.quoted or option or a.key.isupper()
    classes = value.lower() != value != value.upper() and DIGIT.search(value) is not None
    if not classes or has_sequence(value) or _EXPRESSION.search(value) is not None:
        return False
    if random_mixed(value, random if len(value) >= LEAST_RANDOM else None):
        return True
    settled = a.quoted or option or _settled(a) or (a.ending == " " and a.tight)
    return settled and _SIGN.search(value) is not None and _CHOSEN.fullmatch(value) is not None


def _spaced(a: Assigned) -> bool:
    """`--token VALUE`, `Use API_KEY VALUE`: no operator, so the value must be random, or the key in capitals."""
    if a.kind is KeyKind.PASSWORD:
        chance = without_digits(a.value)
        setting = a.quoted and any(c in a.key for c in "_-.")
        named = a.key.isupper() or a.tight or setting or strong_password(a.value)
        return (
            len(a.value) >= 8
            and not is_date(a.value)
            and (  # a date begins the next line of a log
                chance or (named and bool(DIGIT.search(a.value)) and looks_chosen(a.value))
            )
        )
    has_digit = bool(DIGIT.search(a.value)) or random_letters(a.value)
    if a.kind is KeyKind.SECRET and _short_secret(a):
        return True
    return (
        has_digit
        and looks_random(a.value)
        and not is_readable_base64(a.value)
        and (not a.key.islower() or "_" in a.key or "-" in a.key or a.tight or _not_a_name(a.value))
    )


def _owned(value: str) -> bool:
    """Random beyond doubt: a long value that is neither an identifier with a version nor base64 of words."""
    return (
        len(value) >= 24
        and looks_random(value)
        and len(DIGIT.findall(value)) >= 2
        and not UUID.fullmatch(value)
        and not _PATHLIKE.fullmatch(value)
        and not is_readable_base64(value)
        and _not_a_name(value)
    )


def _not_a_name(value: str) -> bool:
    """What no programmer calls a variable: three digits, long mixed case with a digit, long text that is no words."""
    digits = len(DIGIT.findall(value))
    mixed = digits > 0 and len(value) >= 24 and value.lower() != value != value.upper()
    return digits >= 3 or mixed or random_letters(value) or random_mixed(value)


def _a_path(value: str) -> bool:
    """A path or an address; base64 with strokes in it is none."""
    return _PATHLIKE.fullmatch(value) is not None and not (len(value) >= 24 and random_mixed(value))


def without_digits(value: str) -> bool:
    """What nobody says or types for its meaning though it holds no digit: letters drawn by chance, words at random."""
    if value.isalpha():
        return len(value) >= _LEAST_LETTERS and value.isascii() and unspoken(value)
    return is_passphrase(value) or (len(value) >= 8 and not DIGIT.search(value) and strong_password(value))


def _beyond_a_name(value: str) -> bool:
    """A password that no column or type is called: eight and more characters with a symbol, or all three classes."""
    symbol = any(not c.isalnum() and c not in "-_./" for c in value)
    return len(value) >= 8 and (symbol or (value.lower() != value != value.upper()))


def _symbols(value: str) -> bool:
    """Long text of several classes without a space: keys that frameworks generate with punctuation."""
    kinds = any(c.islower() for c in value) + any(c.isupper() for c in value) + bool(DIGIT.search(value))
    punctuation = sum(not c.isalnum() for c in value)
    enough = kinds == 3 or (kinds == 2 and punctuation >= 4 and len(value) >= 30)
    return (
        len(value) >= 20
        and enough
        and not has_sequence(value)
        and not any(c in value for c in " \t")
        and _EXPRESSION.search(value) is None
        and looks_chosen(value)
    )


def _password(a: Assigned) -> bool:
    value = a.value
    if a.connection:
        return len(value) >= 4 and "(" not in value
    if _compared(a) or value.count(" ") > (4 if "phrase" in a.key.lower() else 1):
        return False
    if a.operator == "=" and a.tight and not a.quoted and a.key.isupper() and _plain_word(value):
        return True
    if _drawn(value):
        set_up = _settled(a) or (a.ending == " " and (a.tight or a.key.isupper()))
        return a.quoted or (a.operator in _SETS and set_up) or a.key.startswith("-")
    if not looks_chosen(value) or is_date(value):
        return False
    if is_passphrase(value):
        return a.quoted or _settled(a) or a.ending in {" ", ",", "}", "|"}
    if a.quoted:
        joined = a.following[:1] in {"+", ":"} and "==" not in a.operator
        return _strong(value) and not joined and _whole(value)
    has_digit = bool(DIGIT.search(value))
    if any(c in value for c in "<>{}") or _ARGUMENT.match(value):
        return False
    if _CODE.fullmatch(value):
        return has_digit and _beside_code(a)
    return has_digit or bool(_UNUSUAL.search(value))


def _beside_code(a: Assigned) -> bool:
    """Whether what could be a name in a program is a password by its digits and by how it is set."""
    value, digits = a.value, len(DIGIT.findall(a.value))
    settled = _settled(a) and "." not in value
    long_enough = digits >= 2 and len(value) >= 8
    set_up = a.tight or a.operator == ":" or digits >= 3
    return (set_up and (settled or long_enough) and "(" not in value) or looks_random(value, least=8)


def _drawn(value: str) -> bool:
    """A password of letters alone that is no word and no name."""
    if not 8 <= len(value) <= 40 or not value.isalpha() or _CAMEL.fullmatch(value):
        return False
    return _CONSONANTS.search(value) is not None or unspoken(value)


def _strong(value: str) -> bool:
    """What is a password in quotes: a digit, symbols, or one symbol among letters that are not all small."""
    odd = len(_ODD.findall(value))
    if odd == 1:
        return bool(DIGIT.search(value)) or value.lower() != value or _STRUCK.fullmatch(value) is not None
    return odd > 1 or DIGIT.search(value) is not None


def _compared(a: Assigned) -> bool:
    """Beside a text that is a word rather than a password: compared with it, or listed with its standard's number."""
    if a.operator == "," and (a.value.isupper() or _word_of_list(a.value)):
        return True  # `"userPassword", "RFC4519"`, `"password", "scram-sha-256"`
    if a.operator == "(" and _ASKING.match(a.key):
        return True  # `getPassword("mail.smtp2")`
    compared = "==" in a.operator or "!" in a.operator
    return compared and not (a.quoted and strong_password(a.value) and _beyond_a_name(a.value))


def _word_of_list(value: str) -> bool:
    """A name in small letters, or that of a coding; a passphrase is none."""
    return _LISTED.fullmatch(value) is not None and not is_passphrase(value)


def _settled(a: Assigned) -> bool:
    """Nothing follows that would make the value part of an expression."""
    return a.ending in _ENDS or a.key.startswith("-")


def _whole(value: str) -> bool:
    """Not the code between two string literals: `" + x + "`."""
    code = value[0] in "+.) " or value[-1] == "("
    return not code or (" " not in value and len(value) >= 8 and bool(DIGIT.search(value)))


def _plain_word(value: str) -> bool:
    """A weak password in a settings file: a word of small letters."""
    return 6 <= len(value) <= 40 and value.isalpha() and value.islower()
