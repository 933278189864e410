"""Check digits of further identifiers of persons, and of what a text calls a national number without a country."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from operator import mul

from gateway.detect import checksums as sums
from gateway.detect import identity, identity_world

_CARD_VALUES = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"


def _weighed(numbers: Sequence[int], weights: Sequence[int]) -> int:
    return sum(map(mul, numbers, weights))


def _born(month: int, day: int) -> bool:
    return 1 <= month <= 12 and 1 <= day <= 31


def is_kennitala(value: str) -> bool:
    """Iceland: a date, weights 3,2,7,6,5,4,3,2, modulus 11, and the century."""
    n = sums.digits(value)
    dated = _born(n[2] * 10 + n[3], (n[0] * 10 + n[1]) % 40)
    return dated and n[9] in {0, 9} and -_weighed(n, (3, 2, 7, 6, 5, 4, 3, 2)) % 11 == n[8]


def yu_jmbg(value: str) -> bool:
    """Slovenia, Serbia, Bosnia and their neighbours: a date, weights 7 to 2 twice, modulus 11."""
    n = sums.digits(value)
    check = -_weighed(n, (7, 6, 5, 4, 3, 2, 7, 6, 5, 4, 3, 2)) % 11
    return _born(n[2] * 10 + n[3], n[0] * 10 + n[1]) and check % 10 == n[12] and check < 11


def gr_amka(value: str) -> bool:
    """Greece (social insurance): a date, Luhn."""
    n = sums.digits(value)
    return _born(n[2] * 10 + n[3], n[0] * 10 + n[1]) and sums.luhn(n)


def dk_cpr(value: str) -> bool:
    """Denmark, before 2007: a date, weights 4,3,2,7,6,5,4,3,2,1, modulus 11."""
    n = sums.digits(value)
    return _born(n[2] * 10 + n[3], n[0] * 10 + n[1]) and _weighed(n, (4, 3, 2, 7, 6, 5, 4, 3, 2, 1)) % 11 == 0


def pl_nip(value: str) -> bool:
    """Poland (tax number): weights 6,5,7,2,3,4,5,6,7, modulus 11."""
    n = sums.digits(value)
    return len(set(n)) > 2 and _weighed(n, (6, 5, 7, 2, 3, 4, 5, 6, 7)) % 11 == n[9]


def lv_code(value: str) -> bool:
    """Latvia: since 2017 anything behind 32, before that a date and a check digit."""
    n = sums.digits(value)
    if n[:2] == [3, 2]:
        return len(set(n)) > 3
    check = (1101 - _weighed(n, (1, 6, 3, 7, 9, 10, 5, 8, 4, 2))) % 11
    return _born(n[2] * 10 + n[3], n[0] * 10 + n[1]) and check == n[10]


def gb_utr(value: str) -> bool:
    """United Kingdom (taxpayer reference): the first digit checks the nine behind it, modulus 11."""
    n = sums.digits(value)
    return "21987654321"[_weighed(n[1:], (6, 7, 8, 9, 10, 5, 4, 3, 2)) % 11] == str(n[0]) and len(set(n)) > 2


def fr_spi(value: str) -> bool:
    """France (fiscal number): ten digits modulo 511."""
    text = "".join(map(str, sums.digits(value)))
    return len(text) == 13 and int(text[:10]) % 511 == int(text[10:])


def pt_cc(value: str) -> bool:
    """Portugal (citizen card): Luhn over digits and letters."""
    text = "".join(c for c in value.upper() if c.isalnum())
    doubled = [_CARD_VALUES.find(c) * (2 - at % 2) for at, c in enumerate(text)]
    return sum(v - 9 if v > 9 and at % 2 == 0 else v for at, v in enumerate(doubled)) % 10 == 0


def in_epic(value: str) -> bool:
    """India (voter's card): Luhn."""
    n = sums.digits(value)
    return sums.luhn(n) and len(set(n)) > 2


def il_id(value: str) -> bool:
    """Israel: Luhn over nine digits."""
    n = sums.digits(value)
    return sums.luhn(n) and len(set(n)) > 2


def ec_cedula(value: str) -> bool:
    """Ecuador: a province, Luhn."""
    n = sums.digits(value)
    return 1 <= n[0] * 10 + n[1] <= 30 and sums.luhn(n)


def no_account(value: str) -> bool:
    """Norway (account): weights 5,4,3,2,7,6,5,4,3,2, modulus 11."""
    n = sums.digits(value)
    return len(set(n)) > 2 and -_weighed(n, (5, 4, 3, 2, 7, 6, 5, 4, 3, 2)) % 11 == n[10]


def tr_kimlik(value: str) -> bool:
    """Turkey: two check digits."""
    n = sums.digits(value)
    tenth = (sum(n[0:9:2]) * 7 - sum(n[1:8:2])) % 10
    return n[0] != 0 and tenth == n[9] and sum(n[:10]) % 10 == n[10]


_BY_LENGTH: dict[int, tuple[Callable[[str], bool], ...]] = {
    9: (identity.nl_bsn, il_id),
    10: (dk_cpr, is_kennitala, ec_cedula, il_id, identity_world.bg_egn, identity_world.cz_rodne_cislo),
    11: (
        identity_world.ee_isikukood,
        identity_world.hr_oib,
        lv_code,
        il_id,
        gr_amka,
        identity.pl_pesel,
        identity.be_national,
        tr_kimlik,
    ),
    12: (identity_world.my_nric, identity.in_aadhaar, identity.jp_my_number),
    13: (yu_jmbg, identity_world.ro_cnp, identity_world.th_id, identity.za_id),
    14: (lambda value: value[0] in "23" and _born(int(value[3:5]), int(value[5:7])),),
    16: (identity_world.id_nik,),
}  # fmt: skip
"""By the number of digits; Egypt's fourteen are a century and a date."""


def national_id(value: str) -> bool:
    """What a text calls a national number without a country: the check of one of those with as many digits."""
    text = "".join(c for c in value if c.isdigit())
    return len(set(text)) > 3 and any(check(text) for check in _BY_LENGTH.get(len(text), ()))


FURTHER_CHECKS: dict[str, Callable[[str], bool]] = {
    f.__name__: f
    for f in (
        is_kennitala, yu_jmbg, gr_amka, dk_cpr, pl_nip, lv_code, gb_utr, fr_spi, pt_cc, in_epic, il_id, ec_cedula,
        no_account, tr_kimlik, national_id,
    )
}  # fmt: skip
