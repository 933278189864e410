"""Whose text it says it is: paths below known roots, working directories, git remotes and project tags.

Evidence of this kind is only a hint. Text can name any path, so it never makes a request belong to a
project; it can only say that an object speaks of one. Every root is looked for as a literal, so the cost is
that of `str.find`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from gateway.boundary.identity import is_broad, normal_remote, normal_root, within

MAX_MENTIONS = 256
"""Mentions that are collected from one text; more add nothing to what is already known."""

_COMPONENT = re.compile(r"[A-Za-z0-9_\-+@~%]")
_IN_HOST = re.compile(r"[A-Za-z0-9_\-.]")
_PATH_END = re.compile(r"[\s\"'`<>|,;:()\[\]{}\x00]")
_CWD = re.compile(r"(?i)(?:\bcwd|working[ _-]?dir(?:ectory)?|\bpwd|workspace(?:folder|[ _-]root)?)\W{0,12}\Z")
_TAG = re.compile(r"(?i)(?<![a-z0-9_])project\s{0,2}[:=]\s{0,2}[\"'`]?([a-z0-9][a-z0-9._\-]{0,62})")


class MentionKind(StrEnum):
    """How a text names a project, the surest first."""

    CWD = "cwd"
    PATH = "path"
    REMOTE = "remote"
    TAG = "tag"


CONFIDENCE_MILLI = {
    MentionKind.CWD: 800,
    MentionKind.PATH: 500,
    MentionKind.REMOTE: 500,
    MentionKind.TAG: 300,
}
"""How much a mention says about whose an object is; a fingerprint match says more than any of them."""


@dataclass(frozen=True, slots=True)
class Mention:
    """One place, half-open in characters, where a text names a project."""

    project: str
    kind: MentionKind
    start: int
    end: int

    @property
    def confidence_milli(self) -> int:
        """See CONFIDENCE_MILLI."""
        return CONFIDENCE_MILLI[self.kind]


class KnownProjects:
    """The roots, remotes and names of every project; roots too broad to be one project's are left out."""

    def __init__(
        self, roots: Mapping[str, Sequence[str]], remotes: Mapping[str, Sequence[str]] | None = None
    ) -> None:
        """Both map a project's name to what it has; a name may have no roots at all."""
        self.names = frozenset(roots)
        pairs = {normal_root(r): p for p, found in roots.items() for r in found}
        # The longest first: a project inside another one's folder owns what lies in its own.
        self._roots = sorted(((r, p) for r, p in pairs.items() if not is_broad(r)), key=lambda x: -len(x[0]))
        self._needles = [(n, p) for r, p in self._roots for n in _spellings(r)]
        known = {normal_remote(r): p for p, found in (remotes or {}).items() for r in found}
        self._remotes = [(r, p) for r, p in known.items() if r]

    def owner(self, path: str) -> str:
        """The project that a path lies in, by whole components; empty where it lies in none."""
        target = normal_root(path)
        return next((p for r, p in self._roots if within(target, r)), "")

    def mentions(self, text: str) -> tuple[Mention, ...]:
        """Every place where the text names a project, in the order of the text."""
        found: list[Mention] = []
        for needle, _ in self._needles:
            found += self._paths(text, needle)
            if len(found) >= MAX_MENTIONS:
                break
        found += self._remote_mentions(text)
        found += [
            Mention(m.group(1), MentionKind.TAG, m.start(), m.end())
            for m in _TAG.finditer(text)
            if m.group(1) in self.names
        ]
        unique = {(m.start, m.kind): m for m in sorted(found, key=lambda m: m.end)}
        return tuple(sorted(unique.values(), key=lambda m: (m.start, m.kind)))[:MAX_MENTIONS]

    def _paths(self, text: str, needle: str) -> Iterator[Mention]:
        for start in _occurrences(text, needle):
            if _inside_longer(text, start):
                continue
            end = _path_end(text, start + len(needle))
            # The whole path decides: it may climb out of the root again, or go on inside another component.
            project = self.owner(text[start:end].replace("\\\\", "\\").rstrip("."))
            if project:
                kind = MentionKind.CWD if _CWD.search(text[max(0, start - 40) : start]) else MentionKind.PATH
                yield Mention(project, kind, start, end)

    def _remote_mentions(self, text: str) -> Iterator[Mention]:
        for remote, project in self._remotes:
            host, _, path = remote.partition("/")
            for spelling in (remote, f"{host}:{path}"):
                for start in _occurrences(text, spelling):
                    end = start + len(spelling)
                    after = text[end : end + 5].removeprefix(".git")[:1]
                    if not _COMPONENT.match(after) and not _IN_HOST.match(text[start - 1 : start]):
                        yield Mention(project, MentionKind.REMOTE, start, end)


def _spellings(root: str) -> tuple[str, ...]:
    """A root as it may stand in text: with slashes, and for a drive also with backslashes, single and escaped."""
    if root[1:2] != ":":
        return (root,)
    drives = (root, root[0].upper() + root[1:])
    return tuple(d.replace("/", s) for d in drives for s in ("/", "\\", "\\\\"))


def _occurrences(text: str, needle: str) -> Iterator[int]:
    start = text.find(needle)
    while start >= 0:
        yield start
        start = text.find(needle, start + len(needle))


def _inside_longer(text: str, start: int) -> bool:
    """Whether the path at `start` is only the end of a longer one."""
    before = text[start - 1 : start]
    if before == "/":
        return text[max(0, start - 7) : start] != "file://"
    return bool(_COMPONENT.match(before)) or before in {".", "\\"}


def _path_end(text: str, start: int) -> int:
    found = _PATH_END.search(text, start)
    return found.start() if found else len(text)
