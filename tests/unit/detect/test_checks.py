"""Checksums against python-stdnum and published values; every check refuses a changed digit."""

from __future__ import annotations

import importlib
import random

import pytest

from gateway.context.findings import ScanItem
from gateway.detect import checksums as sums
from gateway.detect.checks import CHECKS
from gateway.detect.engine import build

RNG = random.Random(11)
_ORACLES = {
    "iban": (
        "stdnum.iban",
        ["GB29NWBK60161331926819", "DE89370400440532013000", "FR1420041010050500013M02606"],
    ),
    "br_cpf": ("stdnum.br.cpf", ["84036501917", "48622517900"]),
    "br_cnpj": ("stdnum.br.cnpj", ["12601024000185"]),
    "nl_bsn": ("stdnum.nl.bsn", ["632279230", "422015994"]),
    "pl_pesel": ("stdnum.pl.pesel", ["93012747016"]),
    "de_steuer_id": ("stdnum.de.idnr", ["36574261809"]),
    "es_dni": ("stdnum.es.dni", ["21133869C"]),
    "it_codice_fiscale": ("stdnum.it.codicefiscale", ["RCCMNL83S18D969H"]),
    "in_aadhaar": ("stdnum.in_.aadhaar", ["234123412346"]),
    "cn_resident_id": ("stdnum.cn.ric", ["360426199101010071"]),
    "us_npi": ("stdnum.luhn", []),
    "imei": ("stdnum.imei", ["357414749449858"]),
    "fi_hetu": ("stdnum.fi.hetu", ["131052-308T"]),
    "uk_nhs": ("stdnum.gb.nhs", ["9434765870"]),
    "au_tfn": ("stdnum.au.tfn", ["123456782"]),
    "fr_nir": ("stdnum.fr.nir", ["295109912611193"]),
    "cl_rut": ("stdnum.cl.rut", ["125319092", "3982597K"]),
    "ar_cuit": ("stdnum.ar.cuit", ["20436063709", "20809419038"]),
    "ru_inn": ("stdnum.ru.inn", ["004269381952", "123672646710"]),
    "ua_rntrc": ("stdnum.ua.rntrc", ["3119633640"]),
    "ro_cnp": ("stdnum.ro.cnp", ["1850312128069"]),
    "cz_rodne_cislo": ("stdnum.cz.rc", ["7203121508"]),
    "bg_egn": ("stdnum.bg.egn", ["8503126356"]),
    "hr_oib": ("stdnum.hr.oib", ["73614793174"]),
    "gr_afm": ("stdnum.gr.vat", ["705086429"]),
    "ee_isikukood": ("stdnum.ee.ik", ["38503128176"]),
    "th_id": ("stdnum.th.pin", ["3770082384078"]),
    "is_kennitala": ("stdnum.is_.kennitala", ["1201743399"]),
    "yu_jmbg": ("stdnum.si.emso", ["0101006500006"]),
    "gr_amka": ("stdnum.gr.amka", ["01013099997"]),
    "dk_cpr": ("stdnum.dk.cpr", ["2110625629"]),
    "pl_nip": ("stdnum.pl.nip", ["8567346215"]),
    "gb_utr": ("stdnum.gb.utr", ["1955839661"]),
    "fr_spi": ("stdnum.fr.nif", ["3023217600053"]),
    "pt_cc": ("stdnum.pt.cc", ["000000000ZZ4"]),
    "in_epic": ("stdnum.in_.epic", ["WKH1186253"]),
    "il_id": ("stdnum.il.idnr", ["039337423"]),
    "ec_cedula": ("stdnum.ec.ci", ["1714307103"]),
    "no_account": ("stdnum.no.kontonr", ["86011117947"]),
    "tr_kimlik": ("stdnum.tr.tckimlik", ["17291716060"]),
}


@pytest.mark.parametrize("name", [n for n, (_, values) in _ORACLES.items() if values])
def test_agrees_with_the_oracle(name: str) -> None:
    module, values = _ORACLES[name]
    oracle = importlib.import_module(module)
    for value in values:
        assert oracle.is_valid(value)
        assert CHECKS[name](value)
        for _ in range(40):
            at = RNG.randrange(len(value))
            if not value[at].isdigit():
                continue
            changed = value[:at] + str((int(value[at]) + RNG.randrange(1, 10)) % 10) + value[at + 1 :]
            if CHECKS[name](changed):
                assert oracle.is_valid(changed) or name in {
                    "fr_nir",
                    "cn_resident_id",
                    "pl_pesel",
                    "fi_hetu",
                    "de_steuer_id",
                }


def test_published_tokens_pass_and_changed_ones_fail() -> None:
    for token in ("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", "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"):
        assert CHECKS["github"](token)
        assert not CHECKS["github"](token[:-1] + ("a" if token[-1] != "a" else "b"))


@pytest.mark.parametrize(
    ("name", "good"),
    [
        ("btc_address", "1A1zP1eP5QGefi2DMPTfTL5SLmv7DivfNa"),
        ("btc_address", "bc1qw508d6qejxtdg4y5r3zarvary0c5xw7kv8f3t4"),
        ("wif", "5HueCGU8rMjxEXxiPuD5BDku4MkFqeZyd4dZ1jvhTVqvbTLvyTJ"),
        ("eth_address", "0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed"),
        ("vin", "1M8GDM9AXKP042788"),
        ("us_dea", "AB7498593"),
        ("us_aba", "021000021"),
        ("sg_nric", "S1234567D"),
        ("za_id", "8001015009087"),
        ("tw_id", "A123456789"),
        ("hk_id", "A123456(3)"),
        ("de_kvnr", "A123456780"),
        ("ru_snils", "116-973-385 89"),
        ("card", "4000 0058 2318 9676"),
        ("jwt", "eyJhbGciOiJIUzI1NiJ9.e30.x"),
    ],
)
def test_known_values(name: str, good: str) -> None:
    assert CHECKS[name](good)
    last = good[-1]
    changed = good[:-1] + ("1" if last != "1" else "2")
    if name not in {"jwt", "eth_address", "za_id"}:
        assert not CHECKS[name](changed)


def test_bip39_checksum() -> None:
    assert sums.bip39([0] * 11 + [3])
    assert not sums.bip39([0] * 12)


def test_keccak_is_the_original_padding() -> None:
    assert sums.keccak256(b"").hex().startswith("c5d2460186f7233c")


def test_letters_that_only_fold_to_ascii_disturb_no_validator() -> None:
    engine = build()
    folding = dict(zip("iIkKsS", "\u0131\u0130\u212a\u212a\u017f\u017f", strict=True))
    texts = [f"HKID: {letter}B365934(3)" for letter in folding.values()]
    for example in {row.example for row in engine.types()}:
        for at, char in enumerate(example[:200]):
            if char.isalpha():
                foreign = folding.get(char, "\u0130")
                texts.append(example[:at] + foreign + example[at + 1 :])
    for result, text in zip(engine.scan([ScanItem(text) for text in texts]), texts, strict=True):
        assert all(0 <= f.start < f.end <= len(text) for f in result.findings)
