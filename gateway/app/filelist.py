"""The files that belong to a project: what git would track, else what the ignore files leave.

git is asked where there is a repository, with every setting switched off by which a repository could run a command.
Elsewhere `.gitignore` files are read here (gitignore(5)), and folders that hold what was made or fetched are left out.
"""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

GENERATED: Final = frozenset(
    {
        ".git", ".hg", ".svn", ".jj", "node_modules", "bower_components", ".venv", "venv", "__pycache__", ".tox",
        ".nox", ".mypy_cache", ".ruff_cache", ".pytest_cache", ".hypothesis", ".gradle", ".next", ".nuxt",
        ".terraform", "target", ".eggs", ".cache",
    }
)  # fmt: skip
"""Folders that are never a project's own words."""

_GIT: Final = (
    "git", "-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null", "-c", "core.untrackedCache=false",
    "ls-files", "-z", "--cached", "--others", "--exclude-standard", "--deduplicate",
)  # fmt: skip
_GIT_S: Final = 120


def project_files(root: Path) -> Iterator[str]:
    """Names relative to the root, with forward slashes, sorted within each folder."""
    listed = _by_git(root) if (root / ".git").exists() else None
    names = _walk(root, (), "") if listed is None else iter(listed)
    return (name for name in names if not GENERATED & set(name.split("/")[:-1]))


def _by_git(root: Path) -> list[str] | None:
    """What git lists; None where there is no git, or it will not look at this repository."""
    environment = {k: v for k, v in os.environ.items() if not k.startswith("GIT_")}
    try:
        done = subprocess.run(  # noqa: S603 - fixed arguments
            _GIT, cwd=root, env=environment, capture_output=True, timeout=_GIT_S, check=True
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return sorted(os.fsdecode(name) for name in done.stdout.split(b"\0") if name)


@dataclass(frozen=True, slots=True)
class _Rule:
    folder: str
    pattern: re.Pattern[str]
    keeps: bool
    folders_only: bool

    def matches(self, name: str, *, is_folder: bool) -> bool:
        inside = name.removeprefix(self.folder) if name.startswith(self.folder) else None
        return (
            inside is not None
            and (is_folder or not self.folders_only)
            and self.pattern.fullmatch(inside) is not None
        )


def _walk(folder: Path, rules: tuple[_Rule, ...], prefix: str) -> Iterator[str]:
    try:
        entries = sorted(os.scandir(folder), key=lambda entry: entry.name)
    except OSError:
        return
    if any(entry.name == ".gitignore" for entry in entries):
        rules = (*rules, *_rules(folder / ".gitignore", prefix))
    for entry in entries:
        name, is_folder = prefix + entry.name, entry.is_dir(follow_symlinks=False)
        if _ignored(rules, name, is_folder=is_folder):
            continue
        if not is_folder:
            yield name
        elif entry.name not in GENERATED:
            yield from _walk(Path(entry.path), rules, f"{name}/")


def _ignored(rules: tuple[_Rule, ...], name: str, *, is_folder: bool) -> bool:
    """The last rule that matches decides."""
    found = next((r for r in reversed(rules) if r.matches(name, is_folder=is_folder)), None)
    return found is not None and not found.keeps


def _rules(path: Path, prefix: str) -> list[_Rule]:
    try:
        lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return []
    return [rule for line in lines if (rule := _rule(line, prefix)) is not None]


def _rule(line: str, prefix: str) -> _Rule | None:
    text = re.sub(r"(?<!\\)\s+$", "", line)
    if not text or text.startswith("#"):
        return None
    keeps = text.startswith("!")
    text = text.removeprefix("!").removeprefix("\\")
    folders_only = text.endswith("/")
    text = text.rstrip("/")
    anchored = "/" in text
    text = text.removeprefix("/")
    start = "" if anchored else "(?:.*/)?"
    try:
        return _Rule(prefix, re.compile(start + _expression(text)), keeps, folders_only)
    except re.error:
        return None  # git takes a pattern that is none for one that matches nothing


def _expression(glob: str) -> str:
    """A glob of gitignore(5) as a regular expression: `*` stays within a component, `**` does not."""
    out, at = [], 0
    while at < len(glob):
        if glob.startswith("**/", at):
            out.append("(?:.*/)?")
            at += 3
        elif glob.startswith("**", at):
            out.append(".*")
            at += 2
        elif glob[at] == "*":
            out.append("[^/]*")
            at += 1
        elif glob[at] == "?":
            out.append("[^/]")
            at += 1
        elif glob[at] == "[" and (end := glob.find("]", at + 2)) > 0:
            inner = glob[at + 1 : end].replace("\\", "\\\\")
            out.append(f"[{'^' + inner[1:] if inner[:1] in '!^' else inner}]")
            at = end + 1
        else:
            at += glob[at] == "\\" and at + 1 < len(glob)
            out.append(re.escape(glob[at]))
            at += 1
    return "".join(out)
