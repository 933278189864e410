"""Mentions of projects in text: by whole path components, and never by a prefix."""

from __future__ import annotations

import pytest

from gateway.boundary import KnownProjects, MentionKind

KNOWN = KnownProjects(
    {
        "b": ["/a/b"],
        "inner": ["/a/b/vendor/inner"],
        "c": ["/a/b-c"],
        "win": ["C:\\work\\win"],
        "home": ["/home/me"],
        "spaced": ["/srv/my project"],
        "acme-web": ["/home/dev/acme-web"],
        "plain": [],
    },
    {"acme-web": ["git@github.com:acme/web.git"]},
)


@pytest.mark.parametrize(
    ("path", "project"),
    [
        ("/a/b", "b"),
        ("/a/b/src/x.py", "b"),
        ("/a/b-c", "c"),
        ("/a/b-c/x", "c"),
        ("/a/b-d", ""),
        ("/a/bc", ""),
        ("/a", ""),
        ("/a/b/vendor/inner/x", "inner"),
        ("/a/b/../b-c/x", "c"),
        ("/a/b/../../etc", ""),
        ("c:/work/win/x", "win"),
        ("C:\\work\\win\\x", "win"),
        ("C:\\work\\window", ""),
        ("/home/me/anything", ""),
        ("", ""),
    ],
)
def test_owner_of_a_path(path: str, project: str) -> None:
    assert KNOWN.owner(path) == project


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("see /a/b/src/x.py, please", [("b", "path", "/a/b/src/x.py")]),
        ("see /a/b.", [("b", "path", "/a/b.")]),
        ("/a/b-c/x and /a/b-d/x", [("c", "path", "/a/b-c/x")]),
        ("not /x/a/b/y nor ./a/b", []),
        ("file:///a/b/x", [("b", "path", "/a/b/x")]),
        ("/a/b/../b-c/x", [("c", "path", "/a/b/../b-c/x")]),
        ("/a/b/vendor/inner/x", [("inner", "path", "/a/b/vendor/inner/x")]),
        ('{"file":"C:\\\\work\\\\win\\\\x.py"}', [("win", "path", "C:\\\\work\\\\win\\\\x.py")]),
        ("C:\\work\\win\\x.py", [("win", "path", "C:\\work\\win\\x.py")]),
        ("in '/srv/my project/x'", [("spaced", "path", "/srv/my project/x")]),
        ("<cwd>/home/dev/acme-web</cwd>", [("acme-web", "cwd", "/home/dev/acme-web")]),
        ("Working directory: /home/dev/acme-web\n", [("acme-web", "cwd", "/home/dev/acme-web")]),
        ('"cwd": "/home/dev/acme-web/src"', [("acme-web", "cwd", "/home/dev/acme-web/src")]),
        ("origin git@github.com:acme/web.git (push)", [("acme-web", "remote", "github.com:acme/web")]),
        ("https://github.com/acme/web/pull/1", [("acme-web", "remote", "github.com/acme/web")]),
        ("https://github.com/acme/website and https://xgithub.com/acme/web", []),
        ("project: plain", [("plain", "tag", "project: plain")]),
        ("[project=acme-web]", [("acme-web", "tag", "project=acme-web")]),
        ("project: unheard-of, subproject: plain", []),
        ("/home/me/notes.txt", []),
    ],
)
def test_mentions(text: str, expected: list[tuple[str, str, str]]) -> None:
    found = [(m.project, str(m.kind), text[m.start : m.end]) for m in KNOWN.mentions(text)]
    assert found == expected


def test_mentions_are_bounded() -> None:
    assert len(KNOWN.mentions("/a/b/x " * 5000)) == 256


def test_a_working_directory_says_more_than_a_path() -> None:
    (cwd,) = KNOWN.mentions("cwd: /a/b")
    (path,) = KNOWN.mentions("open /a/b")
    (tag,) = KNOWN.mentions("project: b")
    assert [m.kind for m in (cwd, path, tag)] == [MentionKind.CWD, MentionKind.PATH, MentionKind.TAG]
    assert cwd.confidence_milli > path.confidence_milli > tag.confidence_milli
