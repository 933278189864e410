"""Changes to a gateway.toml that a person wrote: only the lines that must change do, comments and order stay.

The result is read back: where it does not say what was asked for, nothing is written and the person is told which lines
to write.
"""

from __future__ import annotations

import json
import os
import re
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from gateway.config.load import load
from gateway.errors import ConfigError

_HEADER = re.compile(r"^[ \t]*\[", re.MULTILINE)


def add_project(path: Path, name: str, settings: Mapping[str, Any], environ: Mapping[str, str]) -> None:
    """Append a project; ConfigError where it exists, or the result is no valid configuration."""
    text = path.read_text(encoding="utf-8") if path.exists() else ""
    if name in tomllib.loads(text).get("projects", {}):
        raise ConfigError([f"projects.{name}: exists"])
    lines = [f"[projects.{_key(name)}]", *(f"{key} = {_value(v)}" for key, v in settings.items())]
    glue = "" if not text or text.endswith("\n\n") else "\n" if text.endswith("\n") else "\n\n"
    wanted = {**tomllib.loads(text)}
    wanted["projects"] = {**wanted.get("projects", {}), name: dict(settings)}
    _replace(path, text + glue + "\n".join(lines) + "\n", wanted, lines, environ)


def set_links(path: Path, name: str, links: Sequence[str], environ: Mapping[str, str]) -> None:
    """Set `linked_projects` of a project; ConfigError where it does not exist, or the result is not valid."""
    text = path.read_text(encoding="utf-8")
    wanted = tomllib.loads(text)
    if name not in wanted.get("projects", {}):
        raise ConfigError([f"projects.{name}: no such project"])
    wanted["projects"][name]["linked_projects"] = list(links)
    line = f"linked_projects = {_value(list(links))}"
    header = re.compile(
        rf'^[ \t]*\[[ \t]*projects[ \t]*\.[ \t]*"?{re.escape(name)}"?[ \t]*\][^\n]*\n?', re.MULTILINE
    )
    lines = [f"[projects.{_key(name)}]", line]
    if (found := header.search(text)) is None:
        raise ConfigError(
            [f"projects.{name}: written in a form that is not changed here; write: {'; '.join(lines)}"]
        )
    following = _HEADER.search(text, found.end())
    end = following.start() if following else len(text)
    body = text[found.end() : end]
    changed, count = re.subn(
        r"^[ \t]*linked_projects[ \t]*=[ \t]*\[[^\]]*\]", line, body, count=1, flags=re.MULTILINE
    )
    head = text[: found.end()]
    if not count:
        changed = f"{line}\n{body}"
        head += "" if head.endswith("\n") else "\n"
    _replace(path, head + changed + text[end:], wanted, lines, environ)


def _replace(
    path: Path, text: str, wanted: Mapping[str, Any], lines: Sequence[str], environ: Mapping[str, str]
) -> None:
    """Write the text where it parses to what is wanted and is a valid configuration."""
    draft = path.with_name(f"{path.name}.{os.getpid()}.new")
    try:
        if tomllib.loads(text) != wanted:
            raise ConfigError(
                [f"{path.name} is written in a form that is not changed here; write: {'; '.join(lines)}"]
            )
        mode = path.stat().st_mode & 0o777 if path.exists() else 0o600
        draft.write_text(text, encoding="utf-8")
        draft.chmod(mode)
        load(draft, environ)
        draft.replace(path)
    except tomllib.TOMLDecodeError as error:
        raise ConfigError([f"{path.name}: not valid TOML: {error}"]) from None
    finally:
        draft.unlink(missing_ok=True)


def _key(name: str) -> str:
    return name if re.fullmatch(r"[A-Za-z0-9_-]+", name) else json.dumps(name)


def _value(value: Any) -> str:
    """A TOML value; a JSON string is a TOML basic string, but for DEL (TOML 1.0, Strings)."""
    if isinstance(value, list):
        return f"[{', '.join(map(_value, value))}]"
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
