"""The strict JSON reader: one parse, no second opinion.

`json.loads` keeps the last of two equal members, reads NaN and guesses encodings; records are refused for
all of that (contract §0, "duplicate member", "integers").
"""

from __future__ import annotations

import json
import math
import re
from typing import Any, NoReturn

from gateway.contract.refusals import contract_error

_HALF_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")


def read_json(data: bytes | str, *, floats: bool = False) -> Any:
    """The value of one JSON document.

    Refused with ContractError: `duplicate_member`; `bad_type` for any number that is not an integer, `-0`
    included (unless `floats`, for documents that carry a provider's own body); `malformed_json` for everything
    that is not strict UTF-8 JSON, lone surrogates, NaN and infinities, and nesting or numbers beyond what the
    parser takes.
    """
    read_float = _read_finite if floats else _refuse_number
    read_int = int if floats else _read_integer
    try:
        text = (data.encode() if isinstance(data, str) else bytes(data)).decode("utf-8")
        value = json.loads(
            text,
            object_pairs_hook=_read_object,
            parse_float=read_float,
            parse_int=read_int,
            parse_constant=_refuse_constant,
        )
        if _HALF_SURROGATE.search(text):
            # Pairs have become single characters; a lone one has no UTF-8.
            json.dumps(value, ensure_ascii=False).encode()
    except (ValueError, RecursionError):
        raise contract_error("malformed_json") from None
    return value


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
