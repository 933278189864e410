"""JSON Schemas of the wire records: `python -m gateway.contract.schemas DIR` writes one file a record.

A schema says what JSON Schema can say. Rules between members, lengths in bytes and duplicate members are
beyond it; the models decide, docs/contracts.md lists the rules, and a test gates the copies in docs/schemas/.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, override

from pydantic.json_schema import GenerateJsonSchema

import gateway.contract
from gateway.contract.record import Record

DIALECT = "https://json-schema.org/draft/2020-12/schema"


class _Untitled(GenerateJsonSchema):
    """Leaves out the titles that pydantic makes from field names: they say nothing."""

    @override
    def field_title_should_be_set(self, schema: Any) -> bool:
        return False


def records() -> Mapping[str, type[Record]]:
    """Every public record by its name."""
    public = ((name, getattr(gateway.contract, name)) for name in gateway.contract.__all__)
    return {
        name: thing
        for name, thing in public
        if isinstance(thing, type) and issubclass(thing, Record) and thing is not Record
    }


def schema_text(record: type[Record]) -> str:
    """The committed form of a record's schema: stable, readable, ending in a newline."""
    schema = record.model_json_schema(schema_generator=_Untitled)
    return json.dumps({"$schema": DIALECT, **schema}, indent=2, sort_keys=True, ensure_ascii=False) + "\n"


def write(folder: Path) -> None:
    """Write the schema of every record to `folder`, which is made when it does not exist."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, record in records().items():
        (folder / f"{name}.json").write_text(schema_text(record), encoding="utf-8")


if __name__ == "__main__":
    if len(sys.argv) != 2:
        raise SystemExit("usage: python -m gateway.contract.schemas DIR")
    write(Path(sys.argv[1]))
