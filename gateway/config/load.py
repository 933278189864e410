"""From a file, the environment and defaults to a Config, or to every problem at once."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from gateway.config import values
from gateway.config.bundles import find_bundle
from gateway.config.check import conflicts
from gateway.config.remote import current_of, is_remote
from gateway.config.rows import Setting, settings_of
from gateway.config.settings import (
    NAMED_SECTIONS,
    SECTIONS,
    Config,
)
from gateway.config.values import Base, Mode, Unknown
from gateway.errors import ConfigError

_PREFIX: Final = "EGRESS_"
_MAX_FILE_BYTES: Final = 1 << 20  # a configuration is written by hand


def find(path: Path | None, environ: Mapping[str, str]) -> Path | None:
    """The file to read: named, `$EGRESS_CONFIG`, `./gateway.toml`, the user's; None: embedded defaults."""
    if path is not None:
        return path
    if environ.get("EGRESS_CONFIG"):
        return Path(environ["EGRESS_CONFIG"])
    for candidate in (Path("gateway.toml"), _user_folder(environ) / "gateway.toml"):
        if candidate.is_file():
            return candidate
    return None


def _home(environ: Mapping[str, str]) -> Path:
    home = environ.get("HOME") or environ.get("USERPROFILE")
    return Path(home) if home else Path.home()


def _user_folder(environ: Mapping[str, str]) -> Path:
    """XDG Base Directory Specification 0.8; the roaming profile on Windows."""
    folder = environ.get("XDG_CONFIG_HOME") or environ.get("APPDATA")
    return (Path(folder) if folder else _home(environ) / ".config") / "egress"


def load(path: Path | None, environ: Mapping[str, str]) -> Config:
    """The effective configuration.

    Args:
        path: the file named by the user; None searches (`find`).
        environ: the environment, for the search, `~` and `EGRESS_<SECTION>__<KEY>` overrides.

    Raises:
        ConfigError: with every problem and its path.
    """
    source = find(path, environ)
    try:
        here = Path.cwd()
    except FileNotFoundError:
        raise ConfigError(["the current folder was removed: change to one that exists"]) from None
    if source is None:
        return parse({}, here, environ)
    source = here / source
    try:
        if source.stat().st_size > _MAX_FILE_BYTES:
            raise ConfigError([f"{source}: larger than {_MAX_FILE_BYTES} bytes"])
        document = tomllib.loads(source.read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigError([f"{source}: cannot be read ({error.strerror})"]) from None
    except UnicodeDecodeError:
        raise ConfigError([f"{source}: not valid TOML: it is not UTF-8"]) from None
    except tomllib.TOMLDecodeError as error:
        raise ConfigError([f"{source}: not valid TOML: {error}"]) from None
    return replace(parse(document, source.parent, environ), source=source)


def parse(document: Mapping[str, Any], folder: Path, environ: Mapping[str, str]) -> Config:
    """The configuration of a parsed document whose relative paths start at `folder`; raises ConfigError."""
    problems: list[str] = []
    base = Base(folder, _home(environ))
    document = _overridden(document, environ, problems)
    tables = {key: table for key, table in document.items() if _is_section(key, table, problems)}
    read: dict[str, Any] = {
        key: section(**_read(settings_of(section), tables.get(key, {}), key, base, problems))
        for key, section in SECTIONS.items()
    }
    for key, section in NAMED_SECTIONS.items():
        read[key] = _read_named(key, section, tables.get(key, {}), base, problems)
    policy, hosts = read["policy"], read["hosts"]
    if hosts.unknown is None:
        unknown = Unknown.TUNNEL if policy.mode is Mode.DEVELOPER else Unknown.REFUSE
        read["hosts"] = replace(hosts, unknown=unknown)
    read["policy"] = replace(
        policy,
        folders=(
            *_bundle_folders("bundles", policy.bundles, folder, read["state"].dir, problems),
            *_bundle_folders("run", policy.run, folder, read["state"].dir, problems),
        ),
        trial_folders=_bundle_folders("trial", policy.trial, folder, read["state"].dir, problems),
    )
    config = Config(**read)
    problems += conflicts(config)
    if problems:
        raise ConfigError(problems)
    return config


def _is_section(key: str, table: object, problems: list[str]) -> bool:
    if key not in SECTIONS and key not in NAMED_SECTIONS:
        problems.append(f"{key}: no such section; there are " + ", ".join([*SECTIONS, *NAMED_SECTIONS]))
        return False
    if not isinstance(table, dict):
        problems.append(f"{key}: must be a table")
        return False
    return True


def _read(
    rows: tuple[Setting, ...], table: Mapping[str, Any], path: str, base: Base, problems: list[str]
) -> dict[str, Any]:
    """Every row of a section; where a value is wrong its default stands in, so that reading goes on."""
    known = {row.key for row in rows}
    problems.extend(f"{path}.{key}: no such setting" for key in table if key not in known)
    read: dict[str, Any] = {}
    for row in rows:
        try:
            read[row.key] = row.kind.read(table.get(row.key, row.default), base)
        except ValueError as error:
            problems.append(f"{path}.{row.key}: {error}")
            read[row.key] = row.kind.read(row.default, base)
    return read


def _read_named(
    path: str, section: type, tables: Mapping[str, Any], base: Base, problems: list[str]
) -> dict[str, Any]:
    read: dict[str, Any] = {}
    for key, table in tables.items():
        try:
            name = values.name(key)
        except ValueError as error:
            problems.append(f"{path}.{key!r}: the name {error}")
            continue
        if not isinstance(table, dict):
            problems.append(f"{path}.{name}: must be a table")
            continue
        read[name] = section(
            name=name, **_read(settings_of(section), table, f"{path}.{name}", base, problems)
        )
    return read


def _bundle_folders(
    key: str, names: tuple[str, ...], folder: Path, state: Path, problems: list[str]
) -> tuple[Path, ...]:
    folders: list[Path] = []
    for index, name in enumerate(names):
        if is_remote(name):
            folders.append(current_of(state, name))
            continue
        try:
            folders.append(find_bundle(name, folder))
        except FileNotFoundError:
            problems.append(
                f"policy.{key}: item {index}: no such folder, and no packaged bundle of that name"
            )
    return tuple(folders)


def _overridden(
    document: Mapping[str, Any], environ: Mapping[str, str], problems: list[str]
) -> dict[str, Any]:
    """The document with `EGRESS_<SECTION>__<KEY>` laid over it; text settings take the text, others TOML."""
    merged = {key: dict(table) if isinstance(table, dict) else table for key, table in document.items()}
    for variable in sorted(environ):
        if not variable.startswith(_PREFIX):
            continue
        if "__" not in variable:
            if meant := _meant(variable):
                problems.append(f"{variable}: no such setting; write {meant}")
            continue
        section, _, key = variable.removeprefix(_PREFIX).lower().partition("__")
        rows = {row.key: row for row in settings_of(SECTIONS[section])} if section in SECTIONS else {}
        if key not in rows:
            problems.append(f"{variable}: no such setting")
            continue
        try:
            value = tomllib.loads(f"value = {environ[variable]}\n") if rows[key].kind.toml else None
        except tomllib.TOMLDecodeError:
            problems.append(f"{variable}: must be written as in the file ({rows[key].kind.name})")
            continue
        if value is not None and set(value) != {"value"}:
            problems.append(f"{variable}: must hold one value")
            continue
        table = merged.setdefault(section, {})
        if isinstance(table, dict):
            table[key] = environ[variable] if value is None else value["value"]
    return merged


def _meant(variable: str) -> str:
    """The variable of a setting that somebody wrote with one underscore too few; empty for what names none."""
    section, _, key = variable.removeprefix(_PREFIX).partition("_")
    known = section.lower() in SECTIONS and key.lower() in {
        row.key for row in settings_of(SECTIONS[section.lower()])
    }
    return f"{_PREFIX}{section}__{key}" if known else ""
