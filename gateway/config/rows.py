"""A row of the table of settings, and how a section's fields become rows."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import Any

from gateway.config.values import Kind


@dataclass(frozen=True, slots=True)
class Setting:
    """One row of the table; `default` as it stands in the file, `key` is the name of the field."""

    key: str
    kind: Kind
    default: Any
    help: str


def setting(kind: Kind, default: Any, text: str, *, secret: bool = False) -> Any:
    """A field of a section; typed Any, as `dataclasses.field` is, so that the annotation gives the type.

    A `secret` one may hold a password and stands in no `repr`.
    """
    return field(repr=not secret, metadata={"kind": kind, "default": default, "help": text})


def settings_of(section: type) -> tuple[Setting, ...]:
    """The rows of one section, in order."""
    return tuple(
        Setting(f.name, f.metadata["kind"], f.metadata["default"], f.metadata["help"])
        for f in fields(section)
        if "kind" in f.metadata
    )
