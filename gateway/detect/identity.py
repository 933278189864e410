"""Check digits of personal and business identifiers, by country.

Each function takes the identifier as matched (separators allowed) and says whether it can have been issued.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from operator import mul

from gateway.detect import checksums as sums
from gateway.detect.data import words
from gateway.detect.samples import TEST_CARDS

_CARD_BINS = re.compile(
    r"4|5[0-8]|6[0-9]|2(?:20[0-5]|22[1-9]|2[3-9]|[3-6]|7[01]|720)|9792|3[47]|35(?:2[89]|[3-8])|3(?:0[0-5]|[689])|81"
)
_CARD_LENGTHS = {"3": (14, 15, 16), "4": (13, 16, 19), "2": (16,), "8": (16, 17, 18, 19)}
IBAN_LENGTHS = dict(pair.split(":") for pair in words("iban_lengths"))
_DNI = "TRWAGMYFPDXBNJZSQVHLCKE"
_CF_ODD = (1, 0, 5, 7, 9, 13, 15, 17, 19, 21, 2, 4, 18, 20, 11, 3, 6, 8, 12, 14, 16, 10, 22, 25, 24, 23)
_HETU = "0123456789ABCDEFHJKLMNPRSTUVWXY"
_VIN_VALUES = dict(
    zip(
        "ABCDEFGHJKLMNPRSTUVWXYZ",
        (1, 2, 3, 4, 5, 6, 7, 8, 1, 2, 3, 4, 5, 7, 9, 2, 3, 4, 5, 6, 7, 8, 9),
        strict=True,
    )
)
_VIN_WEIGHTS = (8, 7, 6, 5, 4, 3, 2, 10, 0, 9, 8, 7, 6, 5, 4, 3, 2)


def _date(month: int, day: int) -> bool:
    return 1 <= month <= 12 and 1 <= day <= 31


def card(value: str) -> bool:
    """ISO/IEC 7812: issuer range, length, Luhn; not a published test number, nor a date and time."""
    text = re.sub(r"\D", "", value)
    lengths = _CARD_LENGTHS.get(text[:1], (16, 17, 18, 19, 12, 13, 14, 15))
    if len(text) not in lengths or not _CARD_BINS.match(text) or text in TEST_CARDS:
        return False
    numbers = sums.digits(text)
    return sums.luhn(numbers) and len(set(text)) > 3


def card_bare(value: str) -> bool:
    """A card number in one run of digits: sixteen (or fifteen for 34/37), as others are mostly not cards."""
    text = re.sub(r"\D", "", value)
    sixteen = len(text) == 16 and (text[0] != "3" or "3528" <= text[:4] <= "3589")
    return (sixteen or (len(text) == 15 and text[:2] in {"34", "37"})) and card(value)


def iban(value: str) -> bool:
    """ISO 13616: length by country and mod 97."""
    text = re.sub(r"[\s-]", "", value).upper()
    return IBAN_LENGTHS.get(text[:2]) == str(len(text)) and sums.mod97(text[4:] + text[:4]) == 1


def us_ssn(value: str) -> bool:
    """Ranges of the Social Security Administration (since 2011); not a number from an advertisement."""
    text = re.sub(r"\D", "", value)
    area, group, serial = text[:3], text[3:5], text[5:]
    bad = area in {"000", "666"} or area[0] == "9" or group == "00" or serial == "0000"
    return not bad and text not in {
        "078051120",
        "219099999",
        "123456789",
        "111111111",
        "333333333",
        "555555555",
    }


def us_itin(value: str) -> bool:
    """900-999 with group 50-65, 70-88, 90-92 or 94-99 (IRS)."""
    text = re.sub(r"\D", "", value)
    group = int(text[3:5])
    return (
        text[0] == "9"
        and text[5:] != "0000"
        and (50 <= group <= 65 or 70 <= group <= 88 or 90 <= group <= 92 or 94 <= group <= 99)
    )


def us_npi(value: str) -> bool:
    """Luhn over 80840 and the ten digits (CMS)."""
    return sums.luhn(sums.digits("80840" + value))


def us_dea(value: str) -> bool:
    """The last digit of (1+3+5) + 2(2+4+6) (DEA)."""
    n = sums.digits(value[2:])
    return (n[0] + n[2] + n[4] + 2 * (n[1] + n[3] + n[5])) % 10 == n[6]


def us_aba(value: str) -> bool:
    """3-7-1 weights (ABA) and a Federal Reserve prefix."""
    n = sums.digits(value)
    prefix = n[0] * 10 + n[1]
    good = prefix <= 12 or 21 <= prefix <= 32 or 61 <= prefix <= 72 or prefix == 80
    return good and sums.weighted(n, (3, 7, 1, 3, 7, 1, 3, 7, 1)) % 10 == 0 and any(n)


def aba_loose(value: str) -> bool:
    """The 3-7-1 weights alone, for text that calls the number a routing number."""
    n = sums.digits(value)
    return sums.weighted(n, (3, 7, 1, 3, 7, 1, 3, 7, 1)) % 10 == 0 and any(n)


def uk_nino(value: str) -> bool:
    """Prefixes that HMRC never gives out."""
    text = re.sub(r"\s", "", value).upper()
    return (
        text[0] not in "DFIQUV"
        and text[1] not in "DFIQUVO"
        and text[:2] not in {"BG", "GB", "KN", "NK", "NT", "TN", "ZZ"}
    )


def uk_nhs(value: str) -> bool:
    """Modulus 11 with weights 10 to 2."""
    n = sums.digits(value)
    check = 11 - sums.weighted(n, (10, 9, 8, 7, 6, 5, 4, 3, 2)) % 11
    return check != 10 and (0 if check == 11 else check) == n[9]


def luhn_any(value: str) -> bool:
    """Luhn alone (Canadian SIN, IMEI, South African id)."""
    n = sums.digits(value)
    return sums.luhn(n) and len(set(n)) > 2


def imei(value: str) -> bool:
    """Luhn, and a reporting body that exists."""
    return luhn_any(value) and value[:2] in {
        "01",
        "35",
        "86",
        "99",
        "44",
        "45",
        "49",
        "50",
        "51",
        "52",
        "53",
        "54",
        "98",
        "91",
        "30",
        "33",
    }


def au_tfn(value: str) -> bool:
    """Weights of the Australian tax file number, modulus 11."""
    n = sums.digits(value)
    return sums.weighted(n, (1, 4, 3, 7, 5, 8, 6, 9, 10)) % 11 == 0 and len(set(n)) > 2


def au_medicare(value: str) -> bool:
    """Weights 1,3,7,9,1,3,7,9 modulus 10; the first digit is 2 to 6."""
    n = sums.digits(value)
    return 2 <= n[0] <= 6 and sums.weighted(n, (1, 3, 7, 9, 1, 3, 7, 9)) % 10 == n[8]


def de_steuer_id(value: str) -> bool:
    """ISO 7064 mod 11,10; no leading zero."""
    n = sums.digits(value)
    return n[0] != 0 and sums.mod11_10(n)


def fr_nir(value: str) -> bool:
    """97 minus the number modulo 97; Corsica counts as 19 and 18."""
    text = re.sub(r"\s", "", value).upper().replace("2A", "19").replace("2B", "18")
    good = text[0] in "12378" and (
        text[3:5] in {"20", "30", "50"} or 1 <= int(text[3:5]) <= 12 or 30 <= int(text[3:5]) <= 42
    )
    return good and 97 - int(text[:13]) % 97 == int(text[13:15])


def es_dni(value: str) -> bool:
    """The letter is the number modulo 23; X, Y, Z of a NIE count as 0, 1, 2."""
    text = re.sub(r"[\s-]", "", value).upper()
    number = text[:-1].replace("X", "0").replace("Y", "1").replace("Z", "2")
    return _DNI[int(number) % 23] == text[-1]


def it_codice_fiscale(value: str) -> bool:
    """Odd and even tables, modulus 26 (decree of 23 December 1976)."""
    text = value.upper()
    total = 0
    for position, char in enumerate(text[:15]):
        index = ord(char) - 48 if char.isdigit() else ord(char) - 65
        total += index if position % 2 else _CF_ODD[index]
    return chr(65 + total % 26) == text[15]


def nl_bsn(value: str) -> bool:
    """The eleven test."""
    n = sums.digits(value)
    return sums.weighted(n, (9, 8, 7, 6, 5, 4, 3, 2, -1)) % 11 == 0 and any(n)


def pl_pesel(value: str) -> bool:
    """Weights 1,3,7,9 and a date with the century in the month."""
    n = sums.digits(value)
    check = (10 - sums.weighted(n, (1, 3, 7, 9, 1, 3, 7, 9, 1, 3)) % 10) % 10
    return check == n[10] and _date((n[2] * 10 + n[3]) % 20, n[4] * 10 + n[5])


def se_personnummer(value: str) -> bool:
    """Luhn over ten digits and a date (coordination numbers add 60 to the day)."""
    n = sums.digits(value)[-10:]
    day = n[4] * 10 + n[5]
    return sums.luhn(n) and _date(n[2] * 10 + n[3], day - 60 if day > 60 else day)


def be_national(value: str) -> bool:
    """97 minus the first nine digits (with a 2 before them since 2000) modulo 97."""
    text = re.sub(r"\D", "", value)
    number, check = int(text[:9]), int(text[9:])
    return check in {97 - number % 97, 97 - (2_000_000_000 + number) % 97}


def pt_nif(value: str) -> bool:
    """Modulus 11 with weights 9 to 2."""
    n = sums.digits(value)
    check = 11 - sums.weighted(n, (9, 8, 7, 6, 5, 4, 3, 2)) % 11
    return n[0] in {1, 2, 3, 5, 6, 8, 9} and (0 if check > 9 else check) == n[8]


def fi_hetu(value: str) -> bool:
    """The check character is the number modulo 31."""
    text = value.upper()
    return _HETU[int(text[:6] + text[7:10]) % 31] == text[10] and _date(int(text[2:4]), int(text[:2]))


def _cpf_digit(n: list[int], weights: range) -> int:
    rest = sum(map(mul, n, weights)) % 11
    return 0 if rest < 2 else 11 - rest


def br_cpf(value: str) -> bool:
    """Two modulus-11 digits."""
    n = sums.digits(value)
    return (
        len(set(n)) > 1
        and _cpf_digit(n[:9], range(10, 1, -1)) == n[9]
        and _cpf_digit(n[:10], range(11, 1, -1)) == n[10]
    )


def br_cnpj(value: str) -> bool:
    """Two modulus-11 digits with cycling weights."""
    n = sums.digits(value)
    for size in (12, 13):
        weights = [*range(size - 7, 1, -1), *range(9, 1, -1)]
        rest = sum(map(mul, n[:size], weights)) % 11
        if n[size] != (0 if rest < 2 else 11 - rest):
            return False
    return len(set(n)) > 1


def in_aadhaar(value: str) -> bool:
    """Verhoeff; the first digit is 2 to 9."""
    n = sums.digits(value)
    return n[0] > 1 and sums.verhoeff(n)


def cn_resident_id(value: str) -> bool:
    """ISO 7064 mod 11-2 (GB 11643) and a date of birth."""
    n = sums.digits(value[:17])
    good = value[6:8] in {"19", "20"} and _date(int(value[10:12]), int(value[12:14]))
    total = sums.weighted(n, (7, 9, 10, 5, 8, 4, 2, 1, 6, 3, 7, 9, 10, 5, 8, 4, 2))
    return good and "10X98765432"[total % 11] == value[17].upper()


def kr_rrn(value: str) -> bool:
    """A date and a century digit; numbers issued since October 2020 have no check digit, so none is asked for."""
    n = sums.digits(value)
    return _date(n[2] * 10 + n[3], n[4] * 10 + n[5]) and 1 <= n[6] <= 8


def jp_my_number(value: str) -> bool:
    """Modulus 11 with weights 6 to 2, 7 to 2."""
    n = sums.digits(value)
    rest = sums.weighted(n, (6, 5, 4, 3, 2, 7, 6, 5, 4, 3, 2)) % 11
    return (0 if rest <= 1 else 11 - rest) == n[11]


def sg_nric(value: str) -> bool:
    """Weights 2,7,6,5,4,3,2 and a letter table by series."""
    text = value.upper()
    total = sums.weighted(sums.digits(text[1:8]), (2, 7, 6, 5, 4, 3, 2)) + (
        4 if text[0] in "TG" else 3 if text[0] == "M" else 0
    )
    table = {
        "S": "JZIHGFEDCBA",
        "T": "JZIHGFEDCBA",
        "F": "XWUTRQPNMLK",
        "G": "XWUTRQPNMLK",
        "M": "KLJNPQRTUWX",
    }[text[0]]
    index = total % 11
    return table[10 - index if text[0] == "M" else index] == text[8]


def za_id(value: str) -> bool:
    """Luhn over thirteen digits and a date."""
    n = sums.digits(value)
    return sums.luhn(n) and _date(n[2] * 10 + n[3], n[4] * 10 + n[5]) and n[10] in {0, 1}


def vin(value: str) -> bool:
    """The ninth character is the check digit (ISO 3779, 49 CFR 565)."""
    text = value.upper()
    total = sum(
        (int(c) if c.isdigit() else _VIN_VALUES.get(c, 0)) * w
        for c, w in zip(text, _VIN_WEIGHTS, strict=True)
    )
    return (
        "0123456789X"[total % 11] == text[8]
        and any(c.isdigit() for c in text)
        and any(c.isalpha() for c in text)
    )


IDENTITY_CHECKS: dict[str, Callable[[str], bool]] = {
    f.__name__: f
    for f in (
        card, card_bare, iban, us_ssn, us_itin, us_npi, us_dea, us_aba, aba_loose, uk_nino, uk_nhs, luhn_any,
        imei, au_tfn, au_medicare, de_steuer_id, fr_nir, es_dni, it_codice_fiscale, nl_bsn, pl_pesel,
        se_personnummer, be_national, pt_nif, fi_hetu, br_cpf, br_cnpj, in_aadhaar, cn_resident_id, kr_rrn,
        jp_my_number, sg_nric, za_id, vin,
    )
}  # fmt: skip
