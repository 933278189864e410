"""Settings of where checkpoints are kept besides the state folder."""

# ruff: noqa: RUF009 - setting() makes a dataclasses.field, which the rule does not see through

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from gateway.config import values
from gateway.config.rows import setting
from gateway.config.values import Base, Kind


def _url(value: object, _: Base) -> str:
    try:
        parts = urlsplit(value) if isinstance(value, str) else None
        usable = value == "" or (
            parts is not None
            and parts.scheme in {"http", "https"}
            and bool(parts.hostname)
            and str(value).isprintable()
        )
    except ValueError:
        usable = False
    if not usable:
        raise ValueError("must be http://host/... or https://host/..., or empty")
    return str(value)


_URL = Kind("URL or empty", _url, values.without_password)


@dataclass(frozen=True, slots=True, kw_only=True)
class Anchor:
    """Where checkpoints of the log go by themselves, so that a state folder that is put back is found out."""

    file: Path | None = setting(
        values.FILE, "", "a file that they are appended to, best on another machine's disk"
    )
    url: str = setting(_URL, "", "where they are posted", secret=True)
    tsa: str = setting(
        _URL, "", "a time-stamping authority (RFC 3161); answers: <state.dir>/anchors", secret=True
    )
    every_minutes: int = setting(values.whole(1, 10_080), 60, "how often, where the log has grown")

    @property
    def is_set(self) -> bool:
        """Whether there is any such place."""
        return bool(self.file or self.url or self.tsa)
