"""The strict JSON reader: one parse, no second opinion.

`json.loads` keeps the last of two equal members, reads NaN and guesses encodings; records are refused for
all of that (contract §0, "duplicate member", "integers").
"""

from __future__ import annotations

import json
import math
from typing import Any, NoReturn

from gateway.contract.refusals import contract_error


def read_json(data: bytes | str, *, floats: bool = False) -> Any:
    """The value of one JSON document.

    Refused with ContractError: `duplicate_member`; `bad_type` for any number that is not an integer, `-0`
    included (unless `floats`, for documents that carry a provider's own body); `malformed_json` for
    everything that is not strict UTF-8 JSON, NaN and infinities, and nesting or numbers beyond what the
    parser takes.
    """
    read_float = _read_finite if floats else _refuse_number
    read_int = int if floats else _read_integer
    try:
        text = data if isinstance(data, str) else bytes(data).decode("utf-8")
        return json.loads(
            text,
            object_pairs_hook=_read_object,
            parse_float=read_float,
            parse_int=read_int,
            parse_constant=_refuse_constant,
        )
    except (ValueError, RecursionError):
        raise contract_error("malformed_json") from None


def _read_object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) != len(pairs):
        raise contract_error("duplicate_member")
    return members


def _read_integer(text: str) -> int:
    if text == "-0":
        raise contract_error("bad_type")
    return int(text)


def _read_finite(text: str) -> float:
    value = float(text)
    if math.isinf(value):
        raise contract_error("malformed_json")
    return value


def _refuse_number(_text: str) -> NoReturn:
    raise contract_error("bad_type")


def _refuse_constant(_text: str) -> NoReturn:
    raise contract_error("malformed_json")
