"""Stable identities, normalised roots and remotes, and linked projects."""

from __future__ import annotations

import re

import pytest

from gateway.boundary.identity import (
    is_broad,
    linked_projects,
    normal_remote,
    normal_root,
    project_identity,
    within,
)


def test_nothing_known_is_no_identity() -> None:
    assert project_identity() == ""
    assert (
        project_identity(explicit_id=" ", remotes=["", "nonsense"], package="x", roots=["/", "/home/me"])
        == ""
    )


def test_an_identity_is_opaque_and_stable() -> None:
    assert re.fullmatch("[0-9a-f]{32}", project_identity(explicit_id="acme"))
    assert project_identity(explicit_id=" acme ") == project_identity(explicit_id="acme")
    assert project_identity(explicit_id="acme") == "70591f89a9309c241d26c797f21c920b"


@pytest.mark.parametrize(
    "remote",
    [
        "git@github.com:acme/web.git",
        "https://github.com/acme/web",
        "https://user:token@GitHub.com/acme/web.git",
        "ssh://git@github.com:22/acme/web.git/",
        "github.com:acme/web",
    ],
)
def test_every_spelling_of_a_remote_is_the_same_project(remote: str) -> None:
    assert normal_remote(remote) == "github.com/acme/web"
    assert project_identity(remotes=[remote], roots=["/a"]) == project_identity(
        remotes=["https://github.com/acme/web"], roots=["/b/c"]
    )


def test_what_is_written_down_wins() -> None:
    everything = {"explicit_id": "x", "remotes": ["a.b:c/d"], "package": "p", "roots": ["/srv/a"]}
    kinds = [
        project_identity(**everything),  # type: ignore[arg-type]
        project_identity(remotes=["a.b:c/d"], package="p", roots=["/srv/a"]),
        project_identity(package="p", roots=["/srv/a"]),
        project_identity(roots=["/srv/a"]),
    ]
    assert len(set(kinds)) == 4
    assert kinds[0] == project_identity(explicit_id="x")
    assert kinds[1] == project_identity(remotes=["a.b:c/d"])
    assert kinds[2] != project_identity(package="p", roots=["/srv/b"])


@pytest.mark.parametrize(
    ("path", "root"),
    [
        ("/a/b/", "/a/b"),
        ("/a//b/./c", "/a/b/c"),
        ("/a/b/../c", "/a/c"),
        ("/..", "/"),
        ("C:\\Users\\me\\x\\", "c:/Users/me/x"),
        ("", ""),
    ],
)
def test_roots(path: str, root: str) -> None:
    assert normal_root(path) == root


@pytest.mark.parametrize(
    ("root", "broad"),
    [
        ("/", True),
        ("", True),
        ("/home", True),
        ("/home/me", True),
        ("/Users/me", True),
        ("c:", True),
        ("c:/Users/me", True),
        ("/tmp", True),
        ("/var/tmp", True),
        ("/root", True),
        ("/home/me/x", False),
        ("/srv", False),
        ("/tmp/x", False),
        ("c:/work", False),
    ],
)
def test_broad_roots_identify_nothing(root: str, broad: bool) -> None:
    assert is_broad(root) is broad


@pytest.mark.parametrize(
    ("path", "root", "expected"),
    [
        ("/a/b", "/a/b", True),
        ("/a/b/c", "/a/b", True),
        ("/a/b-c", "/a/b", False),
        ("/a/bc", "/a/b", False),
        ("/a", "/a/b", False),
    ],
)
def test_within_is_by_whole_components(path: str, root: str, expected: bool) -> None:
    assert within(path, root) is expected


FOLDERS = {"/srv/lib", "/srv/app", "/opt/x"}


def test_linked_projects() -> None:
    content = b'{"linkedProjects": ["../lib", "/opt/x", "../lib/", ".", "../gone", 7, ""]}'
    links = linked_projects(content, "/srv/app", is_folder=FOLDERS.__contains__)
    assert links.roots == ("/opt/x", "/srv/lib")
    assert links.warnings == (
        "linkedProjects[3] is the project itself",
        "linkedProjects[4] is no folder",
        "linkedProjects[5] is no path",
        "linkedProjects[6] is no path",
    )


def test_links_stay_inside_the_permitted_folders() -> None:
    content = b'{"linkedProjects": ["../lib", "/opt/x"]}'
    links = linked_projects(content, "/srv/app", is_folder=FOLDERS.__contains__, inside=["/srv"])
    assert links.roots == ("/srv/lib",)
    assert links.warnings == ("linkedProjects[1] lies outside the permitted folders",)


@pytest.mark.parametrize("content", [b"", b"[]", b"{", b'{"linkedProjects": {}}', b"\xff", b"[" * 100_000])
def test_a_bad_link_file_is_a_warning(content: bytes) -> None:
    links = linked_projects(content, "/srv/app", is_folder=FOLDERS.__contains__)
    assert links.roots == ()
    assert len(links.warnings) == 1


def test_a_file_without_links_is_fine() -> None:
    assert linked_projects(b"{}", "/srv/app", is_folder=FOLDERS.__contains__).warnings == ()
