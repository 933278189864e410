"""Check digits of personal identifiers of further countries; see `identity.py`."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from gateway.detect import checksums as sums

_TW_LETTERS = "ABCDEFGHJKLMNPQRSTUVXYWZIO"  # in the order of the numbers 10 to 35 that they stand for


def _weighed(numbers: Sequence[int], weights: Sequence[int]) -> int:
    return sum(n * w for n, w in zip(numbers, weights, strict=False))


def _born(month: int, day: int) -> bool:
    return 1 <= month <= 12 and 1 <= day <= 31


def cl_rut(value: str) -> bool:
    """Chile: modulus 11 with weights 2 to 7 from the right; K stands for ten."""
    body = [int(c) for c in value[:-1] if c.isdigit()][::-1]
    check = -_weighed(body, (2, 3, 4, 5, 6, 7, 2, 3, 4)) % 11
    return value[-1].upper() == "0123456789K"[check]


def ar_cuit(value: str) -> bool:
    """Argentina (CUIT, CUIL): modulus 11 with weights 5,4,3,2,7,6,5,4,3,2."""
    n = sums.digits(value)
    check = -_weighed(n[:10], (5, 4, 3, 2, 7, 6, 5, 4, 3, 2)) % 11
    return len(n) == 11 and n[0] == 2 and n[10] == (9 if check == 10 else check)


def ru_snils(value: str) -> bool:
    """Russia (insurance number): weights 9 to 1, modulus 101."""
    n = sums.digits(value)
    check = _weighed(n[:9], range(9, 0, -1)) % 101 % 100
    return len(n) == 11 and len(set(n)) > 2 and check == n[9] * 10 + n[10]


def ru_inn(value: str) -> bool:
    """Russia (tax number of a person): two modulus-11 digits."""
    n = sums.digits(value)
    weights = (3, 7, 2, 4, 10, 3, 5, 9, 4, 6, 8)
    first = _weighed(n[:10], weights[1:]) % 11 % 10
    second = _weighed(n[:11], weights) % 11 % 10
    return len(n) == 12 and len(set(n)) > 2 and n[10:] == [first, second]


def ua_rntrc(value: str) -> bool:
    """Ukraine (tax number of a person): weights -1,5,7,9,4,6,10,5,7, modulus 11."""
    n = sums.digits(value)
    return (
        len(n) == 10 and len(set(n)) > 2 and _weighed(n[:9], (-1, 5, 7, 9, 4, 6, 10, 5, 7)) % 11 % 10 == n[9]
    )


def ro_cnp(value: str) -> bool:
    """Romania: weights 279146358279, modulus 11, and a date."""
    n = sums.digits(value)
    check = _weighed(n[:12], (2, 7, 9, 1, 4, 6, 3, 5, 8, 2, 7, 9)) % 11
    return _born(n[3] * 10 + n[4], n[5] * 10 + n[6]) and n[12] == (1 if check == 10 else check)


def cz_rodne_cislo(value: str) -> bool:
    """Czechia and Slovakia: a multiple of eleven, and a date; women have fifty added to the month."""
    n = sums.digits(value)
    number = int("".join(map(str, n)))
    month = (n[2] * 10 + n[3]) % 50
    return (number % 11 == 0 or (number // 10 % 11 == 10 and n[9] == 0)) and _born(
        month % 20, n[4] * 10 + n[5]
    )


def bg_egn(value: str) -> bool:
    """Bulgaria: weights 2,4,8,5,10,9,7,3,6, modulus 11, and a date with the century in the month."""
    n = sums.digits(value)
    dated = _born((n[2] * 10 + n[3]) % 20, n[4] * 10 + n[5])
    return dated and _weighed(n[:9], (2, 4, 8, 5, 10, 9, 7, 3, 6)) % 11 % 10 == n[9]


def hr_oib(value: str) -> bool:
    """Croatia: ISO 7064 mod 11,10."""
    return sums.mod11_10(sums.digits(value))


def gr_afm(value: str) -> bool:
    """Greece (tax number): powers of two, modulus 11."""
    n = sums.digits(value)
    return len(set(n)) > 2 and _weighed(n[:8], [1 << power for power in range(8, 0, -1)]) % 11 % 10 == n[8]


def ee_isikukood(value: str) -> bool:
    """Estonia and Lithuania: weights 1 to 9 and 1, then 3 to 9 and 1 to 3, modulus 11; and a date."""
    n = sums.digits(value)
    check = _weighed(n[:10], (1, 2, 3, 4, 5, 6, 7, 8, 9, 1)) % 11
    if check == 10:
        check = _weighed(n[:10], (3, 4, 5, 6, 7, 8, 9, 1, 2, 3)) % 11 % 10
    return check == n[10] and _born(n[3] * 10 + n[4], n[5] * 10 + n[6])


def th_id(value: str) -> bool:
    """Thailand: weights 13 to 2, modulus 11."""
    n = sums.digits(value)
    return len(n) == 13 and (11 - _weighed(n[:12], range(13, 1, -1)) % 11) % 10 == n[12]


def tw_id(value: str) -> bool:
    """Taiwan: the letter counts as two digits; weights 1,9,8,7,6,5,4,3,2,1,1, modulus 10."""
    letter = _TW_LETTERS.find(value[0].upper()) + 10
    n = [letter // 10, letter % 10, *sums.digits(value)]
    return letter >= 10 and _weighed(n, (1, 9, 8, 7, 6, 5, 4, 3, 2, 1, 1)) % 10 == 0


def hk_id(value: str) -> bool:
    """Hong Kong: weights 9 to 1 over letters from A = 10, modulus 11; a missing letter counts as 36."""
    if not value.isascii():
        return False  # letters that only fold to one of these
    text = "".join(c for c in value.upper() if c.isalnum())
    head = [36 if c == " " else int(c, 36) for c in text[:-1].rjust(8)]
    return (_weighed(head, range(9, 1, -1)) + int(text[-1], 36)) % 11 == 0


def de_kvnr(value: str) -> bool:
    """Germany (health insurance): the letter counts as two digits; weights 1,2,1,2,... with digits added up."""
    letter = ord(value[0].upper()) - ord("A") + 1
    n = [letter // 10, letter % 10, *sums.digits(value)]
    total = sum(sum(divmod(digit * (1 + at % 2), 10)) for at, digit in enumerate(n[:-1]))
    return total % 10 == n[-1]


def my_nric(value: str) -> bool:
    """Malaysia: a date and a place of birth; there is no check digit."""
    n = sums.digits(value)
    return _born(n[2] * 10 + n[3], n[4] * 10 + n[5]) and 1 <= n[6] * 10 + n[7] <= 99


def id_nik(value: str) -> bool:
    """Indonesia: a province, and a date of birth with forty added to the day for women."""
    n = sums.digits(value)
    return 11 <= n[0] * 10 + n[1] <= 96 and _born(n[8] * 10 + n[9], (n[6] * 10 + n[7]) % 40)


WORLD_CHECKS: dict[str, Callable[[str], bool]] = {
    f.__name__: f
    for f in (
        cl_rut, ar_cuit, ru_snils, ru_inn, ua_rntrc, ro_cnp, cz_rodne_cislo, bg_egn, hr_oib, gr_afm, ee_isikukood,
        th_id, tw_id, hk_id, de_kvnr, my_nric, id_nik,
    )
}  # fmt: skip
