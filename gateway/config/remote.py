"""Policy bundles that are fetched: where what was fetched of a URL lies."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

SCHEME: Final = "https://"


def is_remote(name: str) -> bool:
    """Whether a bundle is named by a URL."""
    return "://" in name


def check_url(name: str) -> str:
    """The URL of a bundle; ValueError where it is none that a bundle may be fetched from."""
    try:
        parts = urlsplit(name)
        usable = parts.scheme == "https" and parts.hostname and "@" not in parts.netloc and not parts.fragment
        _ = parts.port
    except ValueError:
        usable = False
    if not usable or not name.isascii():
        raise ValueError(
            "a bundle is fetched from https://host/path; credentials stand in policy.fetch_token_file"
        )
    return name


def cache_of(state: Path, url: str) -> Path:
    """The folder of a URL below the state folder."""
    return state / "bundles" / hashlib.sha256(url.encode("ascii")).hexdigest()[:16]


def current_of(state: Path, url: str) -> Path:
    """The bundle in force of a URL: a link to one of the revisions beside it, which changes in one step."""
    return cache_of(state, url) / "current"
