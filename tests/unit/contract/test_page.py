"""Drift gate: the page for people, the committed schemas and the models say the same, both ways (contract §9.1)."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from enum import StrEnum
from functools import cache
from inspect import get_annotations
from pathlib import Path
from typing import Any

import jsonschema  # type: ignore[import-untyped]
import pytest

from gateway import contract
from gateway.contract import ERROR_CODES, MEMORY_BOUNDARY_V1_SCHEMA_VERSION, REASONS, SourceValidityV1
from gateway.contract.record import Record
from gateway.contract.schemas import records, schema_text, write
from tests.support.contract_fixtures import vectors

DOCS = Path(__file__).parents[3] / "docs"


@cache
def _page() -> str:
    return (DOCS / "contracts.md").read_text(encoding="utf-8")


def _section(title: str) -> str:
    """The text under a heading, up to the next one of any level."""
    found = re.search(rf"^#+ {re.escape(title)}$\n(.*?)(?=^#+ |\Z)", _page(), re.MULTILINE | re.DOTALL)
    assert found, f"docs/contracts.md has no section {title}"
    return found[1]


def _rows(text: str) -> list[list[str]]:
    lines = [line for line in text.splitlines() if line.startswith("|")][2:]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]


def _type(record: type[Record], member: str) -> str:
    """How the page writes a member's type, from its annotation in the source."""
    annotation = next(
        annotations[member] for annotations in map(get_annotations, record.__mro__) if member in annotations
    )
    text = re.sub(r"Wire\[(\w+)\]", r"\1", annotation).removesuffix(" | None")
    text = re.sub(r"^Annotated\[(\w+), .*$", r"\1", text, flags=re.DOTALL)
    words = {
        "str": "text",
        "int": "integer",
        "HttpStatus": "integer",
        "SchemaVersion1": "integer",
        "Literal['unmeasured']": "text",
        "dict[str, Any]": "JSON object",
        "dict[Name, U64]": "map of Name to U64",
    }
    text = re.sub(r"^tuple\[(\w+), \.\.\.\]$", r"list of \1", words.get(text, text))
    bounds = [m.max_length for m in record.model_fields[member].metadata if hasattr(m, "max_length")]
    return f"{text}, at most {bounds[0]}" if text.startswith("list of ") and bounds else text


def _required(record: type[Record], member: str) -> str:
    field: Any = record.model_fields[member]
    if field.is_required():
        return "yes"
    return "no" if field.exclude_if else "no, always written"


@pytest.mark.parametrize(("name", "record"), records().items())
def test_the_page_lists_every_member_as_it_is(name: str, record: type[Record]) -> None:
    wire = [member for member, field in record.model_fields.items() if not field.exclude]
    listed = {row[0].strip("`"): (row[1], row[2]) for row in _rows(_section(name))}
    assert listed == {member: (_type(record, member), _required(record, member)) for member in wire}


def test_the_page_describes_no_record_that_does_not_exist() -> None:
    titles = set(re.findall(r"^### (\w+V1|BoundaryPolicy)$", _page(), re.MULTILINE))
    assert titles == set(records())


def test_the_page_lists_every_enumeration() -> None:
    listed = {row[0].strip("`"): row[1].replace("`", "").split() for row in _rows(_section("Enumerations"))}
    public = {name: getattr(contract, name) for name in contract.__all__}
    assert listed == {
        name: [str(value) for value in thing]
        for name, thing in public.items()
        if isinstance(thing, type) and issubclass(thing, StrEnum)
    }


@pytest.mark.parametrize(("title", "table"), [("Error codes", ERROR_CODES), ("Reason codes", REASONS)])
def test_the_page_lists_every_code_with_its_sentence(title: str, table: dict[str, str]) -> None:
    assert {row[0].strip("`"): row[1] for row in _rows(_section(title))} == dict(table)


def test_the_page_maps_codes_to_states_as_the_code_does() -> None:
    rows = _rows(_section("Validity of sources"))
    assert len(rows) == 12
    for code, state in rows:
        assert SourceValidityV1.from_reason_code(code.strip("`")) == state.strip("`")


def test_the_page_names_every_schema_version() -> None:
    block = re.search(r"```\n(.*?)```", _section("Schema versions"), re.DOTALL)
    assert block
    stated = dict(line.split("=") for line in block[1].splitlines())
    expected = {"leanctx.contract.memory_boundary_v1.schema_version": str(MEMORY_BOUNDARY_V1_SCHEMA_VERSION)}
    for name, record in records().items():
        if "schema_version" in record.model_fields:
            room = "gateway" if name == "EvaluationRecordV1" else "leanctx"
            snake = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower()
            version = json.loads(schema_text(record))["properties"]["schema_version"]["const"]
            expected[f"{room}.contract.{snake}.schema_version"] = str(version)
    assert stated == expected


def test_the_command_writes_the_schemas(tmp_path: Path) -> None:
    module = "gateway.contract.schemas"
    subprocess.run([sys.executable, "-m", module, str(tmp_path / "made")], check=True, cwd=DOCS.parent)
    assert {path.stem for path in (tmp_path / "made").iterdir()} == set(records())
    wrong = subprocess.run([sys.executable, "-m", module], check=False, capture_output=True, cwd=DOCS.parent)
    assert wrong.returncode != 0
    assert b"usage" in wrong.stderr


def test_the_committed_schemas_are_those_of_the_models(tmp_path: Path) -> None:
    write(tmp_path / "schemas")
    made = {path.name: path.read_text() for path in (tmp_path / "schemas").iterdir()}
    committed = {path.name: path.read_text() for path in (DOCS / "schemas").iterdir()}
    assert committed == made


@pytest.mark.parametrize(("name", "record"), records().items())
def test_schemas_are_schemas(name: str, record: type[Record]) -> None:
    schema = json.loads(schema_text(record))
    jsonschema.Draft202012Validator.check_schema(schema)
    assert schema["additionalProperties"] is False


@pytest.mark.parametrize(
    "case",
    [c for c in vectors("records")["cases"] if c["code"] is None],
    ids=lambda c: f"{c['record']}: {c['id']}",
)
def test_what_the_models_accept_the_schemas_accept(case: dict[str, Any]) -> None:
    schema = json.loads((DOCS / "schemas" / f"{case['record']}.json").read_text())
    jsonschema.validate(case["value"], schema)
