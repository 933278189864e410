"""Scalar types of the wire (contract §1): text with a grammar, and unsigned integers.

Values are kept exactly as given: never trimmed, folded or normalised. Lengths of text are UTF-8 bytes. The
types are `str` and `int` to the type checker; `conform` checks a single value.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, datetime
from functools import cache
from typing import Annotated, Any, Final

from pydantic import AfterValidator, ConfigDict, Field, TypeAdapter, ValidationError, WithJsonSchema

from gateway.contract.refusals import from_validation, pattern, refuse

_CONTROL = re.compile("[\x00-\x1f\x7f-\x9f]")  # Unicode category Cc
_SEMVER = re.compile(
    r"(?:0|[1-9][0-9]*)\.(?:0|[1-9][0-9]*)\.(?:0|[1-9][0-9]*)"
    r"(?:-(?:0|[1-9][0-9]*|[0-9]*[a-zA-Z-][0-9a-zA-Z-]*)(?:\.(?:0|[1-9][0-9]*|[0-9]*[a-zA-Z-][0-9a-zA-Z-]*))*)?"
    r"(?:\+[0-9a-zA-Z-]+(?:\.[0-9a-zA-Z-]+)*)?"
)
_INSTANT = re.compile(
    r"([0-9]{4})-([0-9]{2})-([0-9]{2})T([0-9]{2}):([0-9]{2}):([0-9]{2})(\.[0-9]{1,9})?"
    r"(Z|[+-](?:[01][0-9]|2[0-3]):[0-5][0-9])"
)
_MAX_VERSION = 128


def _text(limit: int, *, blank: bool = False) -> Callable[[str], str]:
    def check(value: str) -> str:
        if _CONTROL.search(value) or len(value.encode()) > limit or not (blank or value.strip()):
            raise refuse("bad_reference")
        return value

    return check


def _text_schema(limit: int, *, blank: bool = False) -> WithJsonSchema:
    # JSON Schema counts characters: maxLength is an upper bound, the rule is in bytes.
    free_of_control = "^[^\\u0000-\\u001f\\u007f-\\u009f]*$"
    return WithJsonSchema(
        {"type": "string", "minLength": 0 if blank else 1, "maxLength": limit, "pattern": free_of_control}
    )


def _check_version(value: str) -> str:
    if len(value) > _MAX_VERSION or not _SEMVER.fullmatch(value):
        raise refuse("bad_version")
    return value


def _check_instant(value: str) -> str:
    parts = _INSTANT.fullmatch(value)
    try:
        if parts is None:
            raise refuse("bad_timestamp")
        year, month, day, hour, minute, second = (int(part) for part in parts.groups()[:6])
        datetime(year, month, day, hour, minute, second, tzinfo=UTC)
    except ValueError:
        raise refuse("bad_timestamp") from None
    return value


def _check_utc_seconds(value: str) -> str:
    if len(value) != len("2026-05-03T09:43:12Z") or not value.endswith("Z"):
        raise refuse("bad_timestamp")
    return _check_instant(value)


DIGEST_PATTERN: Final = pattern("^sha256:[0-9a-f]{64}$", "bad_digest")
REASON_PATTERN: Final = pattern("^[a-z][a-z0-9_.]{2,63}$", "bad_reason_code")
NAME_PATTERN: Final = pattern("^[a-z0-9][a-z0-9_.:-]{0,63}$", "bad_name")
PROJECT_PATTERN: Final = pattern("^[a-z0-9][a-z0-9._-]{0,62}$", "bad_name")

Sha256Digest = Annotated[str, Field(pattern=DIGEST_PATTERN)]
"""`sha256:` and 64 lower-case hexadecimal digits."""

ReasonCodeV1 = Annotated[str, Field(pattern=REASON_PATTERN)]
"""3 to 64 ASCII characters: a lower-case letter, then letters, digits, `_` and `.`."""

ProtocolReference = Annotated[str, AfterValidator(_text(1024)), _text_schema(1024)]
"""1 to 1024 bytes of text that is not blank and holds no control character."""

SourceId = Annotated[str, AfterValidator(_text(256)), _text_schema(256)]
"""As ProtocolReference, at most 256 bytes."""

PolicyId = SourceId
TaskId = SourceId

Revision = Annotated[str, Field(min_length=1), AfterValidator(_text(256, blank=True)), _text_schema(256)]
"""Free text of a source's revision: 1 to 256 bytes, no control character (contract §5, our bound)."""

SemanticVersion = Annotated[
    str,
    AfterValidator(_check_version),
    WithJsonSchema({"type": "string", "maxLength": _MAX_VERSION, "pattern": f"^{_SEMVER.pattern}$"}),
]
"""Strict SemVer 2.0.0, at most 128 characters, without a leading `v`."""

UtcTimestamp = Annotated[
    str,
    AfterValidator(_check_utc_seconds),
    WithJsonSchema({"type": "string", "pattern": "^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}Z$"}),
]
"""`YYYY-MM-DDTHH:MM:SSZ`, a real date, no leap second."""

Instant = Annotated[
    str,
    AfterValidator(_check_instant),
    WithJsonSchema({"type": "string", "pattern": f"^{_INSTANT.pattern}$"}),
]
"""An RFC 3339 instant with an optional fraction and any offset."""

Name = Annotated[str, Field(pattern=NAME_PATTERN)]
"""A short name of ours (kinds, channels, finding types, rules): 1 to 64 of `a-z 0-9 _ . : -`."""

ProjectName = Annotated[str, Field(pattern=PROJECT_PATTERN)]
"""A project's name as configured: `[a-z0-9][a-z0-9._-]{0,62}`."""

PlacePointer = Annotated[str, AfterValidator(_text(4096, blank=True)), _text_schema(4096, blank=True)]
"""An RFC 6901 pointer whose unknown member names are keyed tags; at most 4096 bytes."""

V1_SCHEMA_VERSION: Final = 1

SchemaVersion1 = Annotated[
    int,
    Field(ge=V1_SCHEMA_VERSION, le=V1_SCHEMA_VERSION),
    WithJsonSchema({"type": "integer", "const": V1_SCHEMA_VERSION}),
]
"""The version of a record that exists in version 1 only; the number, never `true` or `1.0`."""

U16 = Annotated[int, Field(ge=0, le=2**16 - 1)]
U32 = Annotated[int, Field(ge=0, le=2**32 - 1)]
U64 = Annotated[int, Field(ge=0, le=2**64 - 1)]
Milli = Annotated[int, Field(ge=0, le=1000)]
"""Thousandths; not a probability unless something says it is calibrated."""


@cache
def _adapter(scalar: Any) -> TypeAdapter[Any]:
    return TypeAdapter(scalar, config=ConfigDict(strict=True, hide_input_in_errors=True))


def conform(scalar: Any, value: object) -> Any:
    """The value itself when it is of this scalar type, else ContractError with the type's code."""
    try:
        return _adapter(scalar).validate_python(value)
    except ValidationError as error:
        raise from_validation("scalar", error) from None
