"""Which project something is: a stable opaque hash from what is known of it, and the links its owner declares."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath

LINK_FILES = (".lean-ctx.json", ".leanctx.json", ".socraticode.json")
"""Files of a project's root that may name linked projects, the first that exists counts (contract.md §9.3)."""

_SCP = re.compile(r"(?:[^@/\s]+@)?([^:/\s]+):(?!//)(.+)")
_URL = re.compile(r"[a-z][a-z0-9+.\-]*://(?:[^@/\s]*@)?([^/:\s]+)(?::\d+)?/(.+)", re.IGNORECASE)


def project_identity(
    *, explicit_id: str = "", remotes: Sequence[str] = (), package: str = "", roots: Sequence[str] = ()
) -> str:
    """The hash of a project, 32 lower-case hex digits; empty where nothing is known, and then it equals none.

    What is written down wins over what is found: an explicit id, then the first git remote (the same for
    every clone and protocol), then package name and root together, then the root. Roots so broad that they
    hold other projects, such as `/` or a home folder, identify nothing (contract.md §9.3).
    """
    root = next((r for r in map(normal_root, roots) if not is_broad(r)), "")
    remote = next((r for r in map(normal_remote, remotes) if r), "")
    if explicit_id.strip():
        kind, value = "id", explicit_id.strip()
    elif remote:
        kind, value = "remote", remote
    elif package.strip() and root:
        kind, value = "package", f"{package.strip()}\x00{root}"
    elif root:
        kind, value = "root", root
    else:
        return ""
    return hashlib.sha256(f"gateway project\x00{kind}\x00{value}".encode()).hexdigest()[:32]


def normal_root(path: str) -> str:
    """A folder's path with forward slashes, without `.`, `..`, doubled and trailing slashes; drive letters lower."""
    text = path.strip().replace("\\", "/")
    if re.match(r"[A-Za-z]:/", text):
        text = text[0].lower() + text[1:]
    absolute = text.startswith("/")
    parts: list[str] = []
    for part in text.split("/"):
        if part == ".." and parts:
            parts.pop()
        elif part not in {"", ".", ".."}:
            parts.append(part)
    return ("/" if absolute else "") + "/".join(parts)


def is_broad(root: str) -> bool:
    """Whether a normalised root is too broad to be one project's: no folder, a drive, a home, a temporary folder."""
    parts = [p for p in root.split("/") if p]
    if parts and parts[0].endswith(":"):
        parts = parts[1:]
    if not parts or parts in (["root"], ["tmp"], ["var", "tmp"], ["private", "tmp"]):
        return True
    return len(parts) <= 2 and parts[0].lower() in {"home", "users"}


def normal_remote(remote: str) -> str:
    """A git remote as `host/path`: protocol, user, port, `.git` and the case of the host do not matter."""
    text = remote.strip()
    found = _URL.fullmatch(text) or _SCP.fullmatch(text)
    if not found:
        return ""
    path = found.group(2).strip("/").removesuffix(".git").strip("/")
    return f"{found.group(1).lower()}/{path}" if path else ""


@dataclass(frozen=True, slots=True)
class Links:
    """Linked projects of a root: normalised folders, sorted and unique, and what was wrong with the others."""

    roots: tuple[str, ...]
    warnings: tuple[str, ...]


def linked_projects(
    content: bytes, root: str, *, is_folder: Callable[[str], bool], inside: Sequence[str] = ()
) -> Links:
    """Read `linkedProjects` of a link file that lies in `root` (contract.md §9.3).

    A link is a folder relative to the root, or an absolute one; it must exist, must not be the root itself,
    and must lie inside one of the `inside` folders where such are given. Problems are warnings that name
    the place in the list, not the path.
    """
    try:
        document = json.loads(content)
    except (ValueError, RecursionError):
        return Links((), ("the link file is not JSON",))
    items = document.get("linkedProjects", []) if isinstance(document, dict) else None
    if not isinstance(items, list):
        return Links((), ("linkedProjects is not a list",))
    home, jails = normal_root(root), [normal_root(j) for j in inside]
    found: set[str] = set()
    warnings: list[str] = []
    for position, item in enumerate(items):
        if not isinstance(item, str) or not item.strip():
            warnings.append(f"linkedProjects[{position}] is no path")
            continue
        target = normal_root(str(PurePosixPath(home) / item.strip().replace("\\", "/")))
        if target == home:
            warnings.append(f"linkedProjects[{position}] is the project itself")
        elif jails and not any(within(target, j) for j in jails):
            warnings.append(f"linkedProjects[{position}] lies outside the permitted folders")
        elif not is_folder(target):
            warnings.append(f"linkedProjects[{position}] is no folder")
        else:
            found.add(target)
    return Links(tuple(sorted(found)), tuple(warnings))


def within(path: str, root: str) -> bool:
    """Whether a normalised path is a root or lies below it, by whole components: `/a/b-c` is not in `/a/b`."""
    return path == root or path.startswith(f"{root.rstrip('/')}/")
