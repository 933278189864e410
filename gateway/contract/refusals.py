"""Why a record is refused: the stable codes, and the one way from pydantic's errors to `ContractError`.

The wire itself carries no error codes (contract §8); these belong to the Python API. Messages and pointers
are made of our own words and field names only: what was read never shows in them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

from pydantic_core import ErrorDetails, PydanticCustomError, ValidationError

from gateway.errors import ContractError

ERROR_CODES: Mapping[str, str] = MappingProxyType(
    {
        "malformed_json": "not one UTF-8 JSON document within the limits of depth and number size",
        "duplicate_member": "an object names a member twice",
        "unsupported_schema_version": "the schema version is not one that this reader knows",
        "unknown_field": "a closed object holds a member that it does not define",
        "missing_field": "a required member is absent",
        "bad_type": "a value has the wrong JSON type",
        "unknown_value": "a closed enumeration does not define this value",
        "bounds_exceeded": "a number or a list is out of its bounds",
        "bad_digest": "a digest is not sha256: and 64 lower-case hexadecimal digits",
        "bad_reference": "a text is blank, too long, or holds a control character",
        "bad_reason_code": "a reason code does not match its grammar",
        "bad_version": "a version is not SemVer 2.0.0",
        "bad_timestamp": "an instant is not RFC 3339, or is no real date",
        "bad_name": "a name does not match its grammar",
        "principal_identity": "an unknown principal carries an id, or a known one carries none",
        "reason_required": "anything but a plain allow needs a reason code",
        "coverage_claim": "a coverage or a signal claims more than its numbers or its status allow",
        "coverage_sum": "inspected, opaque and refused bytes do not add up to the total",
        "source_counts": "selected exceeds permitted, or permitted and blocked exceed inspected",
        "security_counts": "denials or quarantines are counted differently from the decisions",
        "final_context": "a delivery lacks its final context, or something that was not delivered has one",
        "quality_claim": "a quality section claims what its counts do not show",
        "unsorted": "a list that must be strictly sorted is not",
        "derivation": "objects cannot be derived into one: no input, or more than one principal",
        "egress_body": "a body and a refusal are both present, or both absent, against the disposition",
        "egress_claim_route": "a route that does not carry model requests claims model egress",
        "egress_claim_unobserved": "model egress is claimed without an observation",
        "observation_without_admission": "observations are listed without the admission they belong to",
        "observation_claim": "result, status and failure of an observation contradict each other",
        "duplicate_observation": "an observation is listed twice",
        "unverifiable_valid_source": "a source that nobody can check again is called valid",
        "state_overclaims": "a state claims a clean delivery although something was withheld or not valid",
        "receipt_mismatch": "a record does not agree with the receipt it names",
        "admission_mismatch": "an observation does not belong to this prepared admission",
        "tampered": "bytes do not have the digest they are stored under",
    }
)
"""Every `code` of a `ContractError` raised by this package, and what it means."""

_CODE_OF_TYPE: Mapping[str, str] = {
    "extra_forbidden": "unknown_field",
    "none_required": "unknown_field",  # `object_digest`, known only so that an explicit null reads as absent
    "missing": "missing_field",
    "enum": "unknown_value",
    "literal_error": "unknown_value",
    "too_long": "bounds_exceeded",
    "too_short": "bounds_exceeded",
    "greater_than_equal": "bounds_exceeded",
    "less_than_equal": "bounds_exceeded",
}

_CODE_OF_PATTERN: dict[str, str] = {}
_FIELD_NAMES: set[str] = set()


def pattern(expression: str, code: str) -> str:
    """Let a mismatch of this pattern be refused with `code`; gives the pattern back."""
    _CODE_OF_PATTERN[expression] = code
    return expression


def know_fields(names: Sequence[str]) -> None:
    """Allow these member names in pointers; any other name may be content and ends a pointer."""
    _FIELD_NAMES.update(names)


def refuse(code: str) -> PydanticCustomError:
    """The refusal to raise inside a validator."""
    return PydanticCustomError(code, ERROR_CODES[code])


def contract_error(code: str, record: str = "", pointer: str = "") -> ContractError:
    """The error that leaves this package, with the sentence of its code."""
    place = f" at {pointer}" if pointer else ""
    return ContractError(
        code, f"{record}{place}: {ERROR_CODES[code]}" if record else ERROR_CODES[code], pointer=pointer
    )


def from_validation(record: str, error: ValidationError) -> ContractError:
    """One error out of all that pydantic found: the one that the order of contract §4.2 names first."""
    found = error.errors(include_url=False, include_input=False)
    code, detail = min(((_code(e), e) for e in found), key=lambda pair: _rank(pair[0]))
    return contract_error(code, record, _pointer(detail["loc"]))


def _code(detail: ErrorDetails) -> str:
    kind = detail["type"]
    if kind in ERROR_CODES:
        return kind
    loc = detail["loc"]
    if loc and loc[-1] == "schema_version" and kind in {"greater_than_equal", "less_than_equal"}:
        return "unsupported_schema_version"
    if kind == "string_pattern_mismatch":
        return _CODE_OF_PATTERN[detail["ctx"]["pattern"]]
    return _CODE_OF_TYPE.get(kind, "bad_type")


def _rank(code: str) -> int:
    """A wrong version explains everything else; quality precedes the decisions (contract §4.2, 1 and 2)."""
    if code == "unsupported_schema_version":
        return 0
    return 1 if code == "quality_claim" else 2


def _pointer(loc: tuple[Any, ...]) -> str:
    tokens: list[str] = []
    for token in loc:
        if isinstance(token, str) and token not in _FIELD_NAMES:
            break
        tokens.append(str(token))
    return "".join(f"/{token}" for token in tokens)
