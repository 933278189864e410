"""How a person or a machine can be reached, and what labels introduce: addresses, telephones, names, dates.

Each function takes the datum as matched and says whether it is one.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Callable

import phonenumbers

from gateway.detect import checksums as sums
from gateway.detect.data import words

_NO_PERSON = re.compile(
    r"(?i)(?:no-?reply|do-?not-?reply|git|hg|svn|postmaster|mailer-daemon|root|example|test|user|username|you|your-?name|name|foo|bar)"
)
_NO_DOMAIN = re.compile(
    r"(?i)(?:[a-z0-9.-]{0,200}\.)?(?:example\.[a-z.]{2,8}|test|invalid|localhost|local|localdomain|internal|domain\.com"
    r"|email\.com|company\.com|yourdomain\.com|users\.noreply\.github\.com|noreply\.[a-z.]{2,40}"
    r"|iam\.gserviceaccount\.com)|example"
)
_NO_NUMBER = re.compile(r"(?:19|20)\d\d-(?:19|20)\d\d|[1-9]\d{3,4}(?:\.\d{1,2}){2}")  # years, a version
_DECIMAL = re.compile(
    r"\+\d{1,3}\.\d+"
)  # `+1.2490009` is one; of registries' `+1.4806242505` the validity tells
# RFC 6890; most of the addresses in programs.
_NOT_PUBLIC = ("127.", "10.", "192.168.", "0.", "255.", "169.254.")
_BRACKETED_AT = re.compile(r"(?i)[\[({<]at[\])}>]")
_SPELLED_AT = re.compile(r"(?i) ?[\[({<]at[\])}>] ?| at ")
_SPELLED_DOT = re.compile(r"(?i) ?[\[({<]dot[\])}>] ?| dot ")
_NO_DIGIT = re.compile(r"\D")
_US_DIGITS = 10
_NO_PREFIX = frozenset("2345679")
# Countries whose numbers have no prefix but a nought or a one, which `_NO_PREFIX` leaves out.
_PLAIN_CODES = frozenset(
    map(str, (1, *range(30, 35), 41, *range(43, 50), 61, 64, 65, 81, 82, 86, 91, 351, 353))
)
_SECTION = 32  # every part of a section's number is below it, and one address in four thousand
_EXTENSION = re.compile(r",? ?(?:ext\.?|x|Durchwahl) ?\d{1,6}$")
_FILE_ENDS = words("file_ends")
_NO_NAME = words("not_names")
# What sentences begin with, behind a label that ends another: `the customer. If Checkout ...`.
_NO_FIRST = frozenset(
    ("after", "at", "before", "by", "during", "each", "for", "from", "if", "in", "into", "on", "per", "see", "use",
     "via", "when", "where", "while", "with")
)  # fmt: skip


def phone(value: str) -> bool:
    """A number that libphonenumber takes for valid; one written `+` and in groups need only be possible."""
    value = _EXTENSION.sub("", value)
    plus = value.lstrip().startswith("+")
    digits = _NO_DIGIT.sub("", value)
    number = _plain_number(digits, plus=plus) or _parsed(value, plus=plus)
    if number is None or "55501" in digits:
        return False
    international = plus and len(re.findall(r"[0-9]+", value)) > 1 and not _DECIMAL.fullmatch(value)
    return (international and phonenumbers.is_possible_number(number)) or phonenumbers.is_valid_number(number)


def _plain_number(digits: str, *, plus: bool) -> phonenumbers.PhoneNumber | None:
    """What `_parsed` says of a number that begins with no digit of a prefix, for a third of the time."""
    if not plus:
        plain = len(digits) == _US_DIGITS and digits[0] in _NO_PREFIX
        return phonenumbers.PhoneNumber(country_code=1, national_number=int(digits)) if plain else None
    code = next((size for size in (1, 2, 3) if digits[:size] in _PLAIN_CODES), 0)
    rest = digits[code:]
    if not code or not 7 <= len(rest) <= 12 or rest[0] not in _NO_PREFIX:
        return None
    return phonenumbers.PhoneNumber(country_code=int(digits[:code]), national_number=int(rest))


def _parsed(value: str, *, plus: bool) -> phonenumbers.PhoneNumber | None:
    try:
        return phonenumbers.parse(value, None if plus else "US")
    except phonenumbers.NumberParseException:
        return None


def phone_loose(value: str) -> bool:
    """Seven to fifteen digits, for text that calls it a telephone number."""
    value = _EXTENSION.sub("", value)
    n = sums.digits(value)
    if _NO_NUMBER.fullmatch(value):
        return False
    return 7 <= len(n) <= 15 and len(set(n)) > 2 and "55501" not in re.sub(r"\D", "", value)


def ip_public(value: str) -> bool:
    """A globally reachable address."""
    if value.startswith(_NOT_PUBLIC):
        return False
    parts = value.split(".")
    if len(parts) == 4 and int(parts[0]) <= 2 and int(parts[1]) < 40 and max(map(int, parts[2:])) < 128:
        return False  # an object identifier (2.5.29.27) or a version
    if len(parts) == 4 and max(map(int, parts)) < _SECTION:
        return False  # a section (7.4.2.3), or a resolver that is everybody's (8.8.8.8)
    try:
        return ipaddress.ip_address(value).is_global
    except ValueError:
        return False


def birth_date(value: str) -> bool:
    """A year from 1900 to 2026 somewhere in a date."""
    years = [int(y) for y in re.findall(r"(?:19|20)\d\d", value)]
    return not years or any(1900 <= y <= 2026 for y in years)


def email(value: str) -> bool:
    """Not a name reserved for examples (RFC 2606), a machine's address, or something else with an `@` in it."""
    local, _, domain = value.rpartition("@")
    top = domain.rpartition(".")[2].lower()
    return not (_NO_DOMAIN.fullmatch(domain) or (_NO_PERSON.fullmatch(local)) or top in _FILE_ENDS)


def mac(value: str) -> bool:
    """Not all zeros or ones, not a multicast example."""
    return len(set(re.sub(r"[^0-9a-f]", "", value.lower()))) > 2


def email_spelled(value: str) -> bool:
    """`name (at) domain (dot) tld`: an address; without brackets only where the name is none of a sentence's words."""
    bracketed = _BRACKETED_AT.search(value) is not None
    plain = _SPELLED_DOT.sub(".", _SPELLED_AT.sub("@", value, count=1))
    local = plain.partition("@")[0]
    telling = any(c in "._0123456789" for c in local)
    return email(plain) and (bracketed or (telling and _SPELLED_DOT.search(value) is not None))


def account_number(value: str) -> bool:
    """Not one digit over and over, not a counted sequence."""
    n = sums.digits(value)
    return len(set(n)) > 3 and not sums.monotone(n)


def person_name(value: str) -> bool:
    """Two or more capitalised words, none of them a word of forms and programs."""
    words = re.split(r"[ -]", value)
    if words[0].lower() in _NO_FIRST:
        return False
    return all(w[:1].isupper() or len(w) <= 3 for w in words) and not any(
        w.lower() in _NO_NAME for w in words
    )


CONTACT_CHECKS: dict[str, Callable[[str], bool]] = {
    f.__name__: f
    for f in (
        phone,
        phone_loose,
        ip_public,
        birth_date,
        email,
        email_spelled,
        mac,
        account_number,
        person_name,
    )
}
