"""Settings of where requests go: accounts at providers, and models on this machine."""

# ruff: noqa: RUF009 - setting() makes a dataclasses.field, which the rule does not see through

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from gateway.config import values
from gateway.config.rows import setting
from gateway.contract import DestinationV1

_TENANT: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._/:-]{0,127}", re.ASCII)
_KEYED: Final = re.compile(r"hmac-sha256:[0-9a-f]{64}", re.ASCII)
_MODEL: Final = re.compile(r"[A-Za-z0-9._:/@-]{0,128}", re.ASCII)


def _tenant(text: str) -> str:
    if not _TENANT.fullmatch(text):
        raise ValueError("must be an id as the provider writes it: letters, digits and . _ - / :")
    return text


def _hash(text: str) -> str:
    if not _KEYED.fullmatch(text):
        raise ValueError("must be a keyed hash as `egress account hash` writes it")
    return text


def _model(text: str) -> str:
    if not _MODEL.fullmatch(text):
        raise ValueError("must be the name of a model: up to 128 letters, digits and - . _ : / @")
    return text


def _local_url(text: str) -> str:
    """Local is what the contract calls local (§7.4), so that no receipt says it of anything else."""
    if not text:
        return ""
    try:
        parts = urlsplit(text)
        plain = parts.scheme in {"http", "https"} and parts.port and not (parts.query or parts.fragment)
        usable = plain and text.isascii() and "@" not in parts.netloc
    except ValueError:
        usable = False
    if not usable or DestinationV1.for_url(text).locality != "local":
        raise ValueError(
            "must be http://127.0.0.1:port/path: a loopback address of this machine, with its port"
        )
    return text.rstrip("/")


def _webhook(text: str) -> str:
    if not text:
        return ""
    try:
        parts = urlsplit(text)
        plain = text.isascii() and parts.hostname and "@" not in parts.netloc and not parts.fragment
        here = parts.scheme == "http" and DestinationV1.for_url(text).locality == "local"
        _ = parts.port  # raises where it is no number
        usable = plain and (parts.scheme == "https" or here)
    except ValueError:
        usable = False
    if not usable:
        raise ValueError(
            "must be https://host/path, or http:// on a loopback address; without user and password"
        )
    return text


def _without_path(url: str) -> str:
    """Paths of webhooks are secrets with many services."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc}/***" if url else ""


WEBHOOK: Final = replace(values.checked("URL or empty", _webhook), show=_without_path)
ARGUMENTS: Final = values.each_checked("list of texts", str)
TENANTS: Final = values.each_checked("list of ids", _tenant)
HASHES: Final = values.each_checked("list of keyed hashes", _hash)
MODEL: Final = values.checked("name of a model", _model)
LOCAL_URL: Final = values.checked("URL or empty", _local_url)


@dataclass(frozen=True, slots=True, kw_only=True)
class Account:
    """An account at a provider that may be used. Its name is what receipts say (`account_ref`)."""

    name: str
    provider: str = setting(values.NAME, "", "the provider, as receipts name it; required")
    hashes: tuple[str, ...] = setting(HASHES, [], "keyed hashes of its credentials (`egress account hash`)")
    tenants: tuple[str, ...] = setting(
        TENANTS, [], "ids of the provider's for it: organisation, workspace, directory, AWS account"
    )
    organizations: tuple[str, ...] = setting(
        TENANTS, [], "what OpenAI-Organization may name beside its credentials; empty: anything"
    )
    organization_managed: bool = setting(
        values.FLAG, False, "the organisation runs it, so that receipts and rules may say so"
    )
    region: str = setting(values.NAME, "", "where it keeps data, for receipts and rules")
    projects: tuple[str, ...] = setting(values.NAMES, [], "projects that may use it; empty: every one")


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalModelSettings:
    """A model on this machine that rules may send requests to (`reroute`). Its name stands for the provider."""

    name: str
    url: str = setting(
        LOCAL_URL, "", "base of its API on a loopback address, as http://127.0.0.1:11434/v1; required"
    )
    model: str = setting(MODEL, "", "the model that is asked; required")
    dialects: tuple[str, ...] = setting(
        values.words(("openai_chat", "openai_responses", "anthropic")),
        ["openai_chat"],
        "what the server speaks; requests of other dialects are refused, not translated",
    )
    key_file: Path | None = setting(values.FILE, "", "file with its own key; the client's never goes there")


@dataclass(frozen=True, slots=True, kw_only=True)
class Notify:
    """How people hear that something is held. Notices name objects, and never say what is in them."""

    webhook: str = setting(WEBHOOK, "", "where notices are posted, https://", secret=True)
    secret_file: Path | None = setting(
        values.FILE, "", "file with the secret that signs posts (`x-egress-signature`)"
    )
    command: tuple[str, ...] = setting(
        ARGUMENTS, [], "a command and its arguments, which gets each notice on standard input"
    )
    events: tuple[str, ...] = setting(
        values.words(("held", "decided")),
        ["held"],
        "what is told: that something waits, that somebody decided",
    )
    queue: int = setting(
        values.whole(1, 65_536), 256, "notices that wait; over it they are dropped and counted"
    )
    attempts: int = setting(values.whole(1, 20), 6, "attempts for each notice, with longer and longer pauses")
    timeout_s: int = setting(values.whole(1, 300), 10, "seconds for each attempt")
