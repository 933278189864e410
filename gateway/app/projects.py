"""Projects as the boundary knows them: a stable hash, roots, remotes and links, read from configuration and folders.

What lies in a folder only names a project for evidence. Who a request belongs to comes from its credentials, and what a
project may see from the configuration and the policy: a remote that is written into a folder opens nothing.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from gateway.boundary import FactPrivacy, linked_projects, project_identity
from gateway.boundary.identity import LINK_FILES, is_broad, normal_root, within
from gateway.config import DEFAULT_PROJECT, Config
from gateway.config.projects import Project

ID_FILE = ".lean-ctx-id"
"""File in a root that names the project, whatever else is found there (contract.md §9.3)."""

_MAX_BYTES = 1 << 20
_REMOTE = re.compile(r'^\s*\[remote "([^"\n]*)"\]\s*$|^\s*url\s*=\s*(.+?)\s*$|^\s*\[', re.MULTILINE)


@dataclass(frozen=True, slots=True)
class ProjectFacts:
    """What the boundary rule knows of one project. `links` are hashes of the projects that may see its content."""

    name: str
    hash: str
    team: str = ""
    privacy: FactPrivacy = FactPrivacy.PROJECT_ONLY
    links: frozenset[str] = frozenset()
    roots: tuple[str, ...] = ()
    remotes: tuple[str, ...] = ()
    linked: tuple[str, ...] = ()  # the names behind `links`


def known_projects(config: Config) -> tuple[dict[str, ProjectFacts], list[str]]:
    """Every project by name, the one of requests without credentials included, and warnings for a person.

    Two projects whose folders name the same thing (two clones of one repository) stay two projects.
    """
    found = {name: _facts(project) for name, project in config.projects.items()}
    found.setdefault(DEFAULT_PROJECT, ProjectFacts(DEFAULT_PROJECT, _by_name(DEFAULT_PROJECT)))
    counts = Counter(facts.hash for facts in found.values())
    warnings = []
    for name, facts in found.items():
        if counts[facts.hash] > 1:
            found[name] = replace(facts, hash=project_identity(explicit_id=f"{facts.hash}+{name}"))
            warnings.append(
                f"project {name} has the same identity as another one; they are kept apart by name"
            )
    for name, project in config.projects.items():
        links, problems = _links(project, found)
        warnings += [f"project {name}: {problem}" for problem in problems]
        privacy = FactPrivacy(project.privacy) if project.privacy else FactPrivacy.PROJECT_ONLY
        if not project.privacy and links:
            privacy = FactPrivacy.LINKED_PROJECTS
        hashes = frozenset(found[link].hash for link in links)
        found[name] = replace(found[name], privacy=privacy, links=hashes, linked=tuple(sorted(links)))
    return found, warnings


def _facts(project: Project) -> ProjectFacts:
    roots = tuple(str(root) for root in project.roots)
    explicit, remotes, package = "", [], ""
    for root in project.roots:
        explicit = explicit or _read(root / ID_FILE).strip()[:256]
        remotes += git_remotes(root)
        package = package or package_name(root)
    identity = project_identity(explicit_id=explicit, remotes=remotes, package=package, roots=roots)
    return ProjectFacts(
        project.name,
        identity or _by_name(project.name),
        project.team,
        roots=roots,
        remotes=tuple(dict.fromkeys(remotes)),
    )


def _by_name(name: str) -> str:
    """The hash of a project of which only the configured name is known."""
    return project_identity(explicit_id=f"configured project {name}")


def _links(project: Project, known: Mapping[str, ProjectFacts]) -> tuple[set[str], list[str]]:
    """Projects that may see this one's content: those of the configuration, and those of its roots' link files."""
    links = set(project.linked_projects)
    problems: list[str] = []
    owners = [(normal_root(root), facts.name) for facts in known.values() for root in facts.roots]
    for root in project.roots:
        path = next((root / name for name in LINK_FILES if (root / name).is_file()), None)
        if path is None:
            continue
        read = linked_projects(_read(path).encode(), str(root), is_folder=lambda p: Path(p).is_dir())
        problems += read.warnings
        for target in read.roots:
            named = {name for owner, name in owners if within(target, owner) and not is_broad(owner)}
            links |= named
            if not named:
                problems.append("a linked folder belongs to no configured project")
    return links - {project.name}, problems


# -- what a root says of itself --------------------------------------------------------------------------------------


def git_remotes(root: Path) -> list[str]:
    """The remotes of the repository at a root, `origin` first; read from its configuration, git is not run."""
    remotes: dict[str, str] = {}
    current = ""
    for match in _REMOTE.finditer(_read(_git_folder(root) / "config")):
        if match.group(2) is None:
            current = match.group(1) or ""
        elif current:
            remotes.setdefault(current, match.group(2))
    return [remotes[name] for name in sorted(remotes, key=lambda name: (name != "origin", name))]


def _git_folder(root: Path) -> Path:
    """The folder with the configuration: a work tree's `.git` is a file that names its own."""
    folder = root / ".git"
    if folder.is_file():
        folder = root / _read(folder).partition("gitdir:")[2].strip()
        common = _read(folder / "commondir").strip()
        folder = folder / common if common else folder
    return folder


def package_name(root: Path) -> str:
    """The name that a package file at a root gives; empty where there is none."""
    return next((name for name in _package_names(root) if name), "")


def _package_names(root: Path) -> Iterator[str]:
    yield _at(_toml(root / "pyproject.toml"), "project", "name")
    yield _at(_json(root / "package.json"), "name")
    yield _at(_toml(root / "Cargo.toml"), "package", "name")
    found = re.search(r"^module\s+(\S+)", _read(root / "go.mod"), re.MULTILINE)
    yield found.group(1) if found else ""


def _at(document: Any, *names: str) -> str:
    for name in names:
        document = document.get(name) if isinstance(document, dict) else None
    return document if isinstance(document, str) else ""


def _toml(path: Path) -> Any:
    try:
        return tomllib.loads(_read(path))
    except tomllib.TOMLDecodeError:
        return None  # somebody else's file: it names nothing


def _json(path: Path) -> Any:
    try:
        return json.loads(_read(path) or "null")
    except (ValueError, RecursionError):
        return None


def _read(path: Path) -> str:
    """The text of a small file of a project; empty where there is none that can be read."""
    try:
        with path.open("rb") as file:
            return file.read(_MAX_BYTES).decode("utf-8", "replace")
    except OSError:
        return ""
