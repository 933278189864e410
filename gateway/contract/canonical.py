"""Canonical JSON and its digest (contract §4.3): the bytes that are hashed, signed and stored.

Compact, members sorted by the bytes of their names at every level, list order kept, non-ASCII as UTF-8,
control characters in their short escapes, `/` bare. Numbers are integers of 64 bits: a float has no
canonical text here and is refused. No domain prefix, no salt: a digest is plain SHA-256 and anyone can
recompute it.
"""

from __future__ import annotations

import hashlib
from enum import StrEnum
from typing import Any

import orjson

from gateway.contract.refusals import contract_error

_MAX_DEPTH = 128
_MAX_INTEGER = 2**64 - 1
_MIN_INTEGER = -(2**63)


def canonical_json(value: Any) -> bytes:
    """Canonical bytes of a JSON value made of dict, list, tuple, str, StrEnum, int, bool and None.

    Raises ContractError: `bad_type` for anything else (floats and names that are not text included),
    `bounds_exceeded` for an integer beyond 64 bits, `malformed_json` for nesting deeper than 128 or text
    that is not Unicode.
    """
    _require_canonical(value, 0)
    return dump(value)


def digest(data: bytes) -> str:
    """`sha256:` and the lower-case hexadecimal SHA-256 of `data`."""
    return f"sha256:{hashlib.sha256(data).hexdigest()}"


def dump(value: Any) -> bytes:
    """Canonical bytes of a value known to be canonical: what a validated record holds."""
    try:
        return orjson.dumps(value, option=orjson.OPT_SORT_KEYS)
    except orjson.JSONEncodeError:  # lone surrogates: no UTF-8 for them
        raise contract_error("malformed_json") from None


def _require_canonical(value: Any, depth: int) -> None:
    if depth > _MAX_DEPTH:
        raise contract_error("malformed_json")
    kind = type(value)
    if kind is str or kind is bool or value is None or isinstance(value, StrEnum):
        return
    if kind is int:
        if not _MIN_INTEGER <= value <= _MAX_INTEGER:
            raise contract_error("bounds_exceeded")
    elif kind is dict:
        for name, member in value.items():
            if type(name) is not str:
                raise contract_error("bad_type")
            _require_canonical(member, depth + 1)
    elif kind is list or kind is tuple:
        for item in value:
            _require_canonical(item, depth + 1)
    else:
        raise contract_error("bad_type")
