"""What labels of personal data say: of a column, of a member's value, of what stands before them."""

from __future__ import annotations

import pytest

from gateway.context.findings import ScanItem
from gateway.detect.engine import Engine, build


@pytest.fixture(scope="module")
def engine() -> Engine:
    return build()


def _found(engine: Engine, text: str, name: str = "") -> list[tuple[str, str]]:
    result = engine.scan([ScanItem(text, name, "tool")])[0]
    return [(f.type, text[f.start : f.end]) for f in result.findings]


_BSN = ["647900233", "353669970", "214056120"]


@pytest.mark.parametrize(
    "text",
    [
        "id,bsn,tier\n1,{},a\n2,{},b\n3,{},c\n",
        'id;"BSN";tier\r\n1;"{}";a\r\n2;"{}";b\r\n3;"{}";c\r\n',
        "id\tbsn_number\ttier\n1\t{}\ta\n2\t{}\tb\n3\t{}\tc",
        "| id | BSN | tier |\n|---|---|---|\n| 1 | {} | a |\n| 2 | {} | b |\n| 3 | {} | c |\n",
        " id | bsn                    | tier\n----+------------------------+------\n"
        "  1 | {}              | a\n  2 | {}              | b\n  3 | {}              | c\n(3 rows)\n",
        "+----+----------------------+\n| id | bsn                  |\n+----+----------------------+\n"
        "|  1 | {}            |\n|  2 | {}            |\n|  3 | {}            |\n+----+---+\n",
    ],
)
def test_every_row_of_a_labelled_column(engine: Engine, text: str) -> None:
    assert _found(engine, text.format(*_BSN)) == [("nl_bsn", bsn) for bsn in _BSN]


@pytest.mark.parametrize(
    "text", ["id,bsn,tier\n1,2\n647900233,a,b", "bsn,tier\n12,13\n", "call(bsn, tier)\n647900233,a\n"]
)
def test_rows_that_are_none(engine: Engine, text: str) -> None:
    assert _found(engine, text.replace("647900233", "647900234")) == []


@pytest.mark.parametrize(
    ("name", "text", "kind"),
    [
        ("bsn", "647900233", "nl_bsn"),
        ("dateOfBirth", "1961-02-03", "date_of_birth"),
        ("patientName", "Ingrid Berg", "person_name"),
        ("account_number", "0123987654", "us_bank_account"),
        ("npiNumber", "1003869967", "us_npi"),
    ],
)
def test_a_member_is_judged_by_its_name(engine: Engine, name: str, text: str, kind: str) -> None:
    assert _found(engine, text, name) == [(kind, text)]
    assert _found(engine, text, "value") == []


@pytest.mark.parametrize(
    "text",
    [
        "2398432510 (NPI) was entered twice.",
        "Could you check 2398432510? It is the NPI of the new member.",
        "2398432510 is the provider NPI.",
        '"2398432510" as the NPI',
    ],
)
def test_what_stands_before_its_label(engine: Engine, text: str) -> None:
    assert _found(engine, text) == [("us_npi", "2398432510")]


def test_a_number_before_another_sentence_is_not_named_by_it(engine: Engine) -> None:
    assert _found(engine, "Order 2398432510 was shipped. The NPI is missing.") == []


@pytest.mark.parametrize("gap", range(0, 60, 3))
def test_the_end_of_a_window_cuts_no_datum(engine: Engine, gap: int) -> None:
    text = "account number" + " " * gap + "07751838251 tail"
    assert _found(engine, text) in ([], [("us_bank_account", "07751838251")])


@pytest.mark.parametrize(
    ("text", "kind", "value"),
    [
        ('{"a": "Hi\\nMobile: 047 5930424"}', "phone_number", "047 5930424"),
        ('{"a": "x\\nDOB: 1971-04-03"}', "date_of_birth", "1971-04-03"),
        ('{"a": "x\\tVIN: 1HGLKB638Z1968179"}', "vin", "1HGLKB638Z1968179"),
        ("x\\nCPF: 39053344705", "br_cpf", "39053344705"),
        ("x\\r\\nNIE: X8914417P", "es_nie", "X8914417P"),
    ],
)
def test_a_label_behind_a_line_end_as_json_writes_it(
    engine: Engine, text: str, kind: str, value: str
) -> None:
    assert _found(engine, text) == [(kind, value)]
