"""The base of every wire record: closed, strict, frozen, with one canonical form.

A record that exists is valid: the constructor, `from_json`, `from_value` and `replace` all run the whole
validation and raise nothing but `gateway.errors.ContractError`. Members that are absent when empty
(contract §0) are declared with `optional()` and `listed()`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Self, TypeVar, override

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from gateway.contract.canonical import digest, dump
from gateway.contract.reading import read_json
from gateway.contract.refusals import contract_error, from_validation, know_fields

_E = TypeVar("_E")

Wire = Annotated[_E, Field(strict=False)]
"""An enumeration that may be given by its wire string as well as by its member."""


def _is_none(value: object) -> bool:
    return value is None


def _is_empty(value: object) -> bool:
    return not value


def optional() -> Any:
    """A scalar or an object that may be absent: omitted when none; an explicit null reads as absent."""
    return Field(default=None, exclude_if=_is_none)


def listed(bound: int | None = None) -> Any:
    """A list that is omitted when empty and may be absent; a null is refused. At most `bound` items."""
    return Field(default=(), max_length=bound, strict=False, exclude_if=_is_empty)


def kept_list(bound: int | None = None) -> Any:
    """A list that may be absent but is always written, also when empty. At most `bound` items."""
    return Field(default=(), max_length=bound, strict=False)


def required_list(bound: int | None = None) -> Any:
    """A list that is required and always written."""
    return Field(max_length=bound, strict=False)


class Record(BaseModel):
    """A closed, strict, frozen JSON object of the contract."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, hide_input_in_errors=True)

    carries_foreign_json: ClassVar[bool] = False
    """Whether a member holds JSON of somebody else, in which any number may stand."""

    def __init__(self, **members: Any) -> None:
        try:
            self.__pydantic_validator__.validate_python(members, self_instance=self)
        except ValidationError as error:
            raise from_validation(type(self).__name__, error) from None

    # Tells pydantic that this constructor only validates, so that nested records are built in its core.
    __init__.__pydantic_base_init__ = True  # type: ignore[attr-defined]

    @classmethod
    @override
    def __pydantic_init_subclass__(cls, **kwargs: Any) -> None:
        super().__pydantic_init_subclass__(**kwargs)
        know_fields(tuple(cls.model_fields))

    @classmethod
    def from_json(cls, data: bytes | str) -> Self:
        """Read one document; ContractError on anything but exactly one valid record."""
        return cls.from_value(read_json(data, floats=cls.carries_foreign_json))

    @classmethod
    def from_value(cls, value: object) -> Self:
        """Validate a parsed JSON value as strictly as `from_json`, which alone can see duplicate members."""
        if not isinstance(value, Mapping):
            raise contract_error("bad_type", cls.__name__)
        try:
            return cls.__pydantic_validator__.validate_python(value)  # type: ignore[no-any-return]
        except ValidationError as error:
            raise from_validation(cls.__name__, error) from None

    @classmethod
    def from_stored(cls, data: bytes, expected: str) -> Self:
        """Read bytes kept under their digest; `tampered` when they do not have it."""
        if digest(data) != expected:
            raise contract_error("tampered", cls.__name__)
        return cls.from_json(data)

    def to_json(self) -> bytes:
        """The canonical bytes (contract §4.3)."""
        return dump(self.model_dump())

    def canonical_digest(self) -> str:
        """`sha256:...` of the canonical bytes: no prefix, no salt, no field left out."""
        return digest(self.to_json())

    def replace(self, **changes: Any) -> Self:
        """A record that differs in `changes` and is validated as a whole."""
        return type(self)(**{**dict(self), **changes})

    @override
    def model_copy(self, *, update: Mapping[str, Any] | None = None, deep: bool = False) -> Self:
        """As pydantic's, but a change is validated: there is no way to a record that is not valid."""
        return self.replace(**update) if update else super().model_copy(deep=deep)

    @classmethod
    @override
    def model_construct(cls, _fields_set: set[str] | None = None, **values: Any) -> Self:
        """The ordinary constructor: records are never built unchecked."""
        return cls(**values)
