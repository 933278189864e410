"""What a project is: its hash from what its folders say, kept apart where they say the same, and its links."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from gateway.app.projects import git_remotes, known_projects, package_name
from gateway.boundary import FactPrivacy, project_identity
from gateway.config import Config, parse


def config(folder: Path, **projects: dict[str, Any]) -> Config:
    return parse({"projects": projects}, folder, {"HOME": str(folder)})


def clone(root: Path, url: str) -> Path:
    (root / ".git").mkdir(parents=True)
    (root / ".git" / "config").write_text(
        f'[core]\n\tbare = false\n[remote "fork"]\n\turl = https://h/x.git\n[remote "origin"]\n\turl = {url}\n'
        '\tfetch = +refs/heads/*:refs/remotes/origin/*\n[branch "main"]\n\tremote = origin\n'
    )
    return root


def test_every_clone_of_a_repository_has_one_identity(tmp_path: Path) -> None:
    one = clone(tmp_path / "one", "git@github.com:acme/web.git")
    two = clone(tmp_path / "two", "https://user:token@GitHub.com/acme/web")
    hashes = [known_projects(config(tmp_path, web={"roots": [str(r)]}))[0]["web"].hash for r in (one, two)]

    assert hashes[0] == hashes[1] == project_identity(remotes=["https://github.com/acme/web"])
    assert git_remotes(one) == ["git@github.com:acme/web.git", "https://h/x.git"]


def test_a_work_tree_finds_the_remotes_of_its_repository(tmp_path: Path) -> None:
    main = clone(tmp_path / "main", "git@github.com:acme/web.git")
    inner = main / ".git" / "worktrees" / "side"
    inner.mkdir(parents=True)
    (inner / "commondir").write_text("../..\n")
    (tmp_path / "side").mkdir()
    (tmp_path / "side" / ".git").write_text(f"gitdir: {inner}\n")

    assert git_remotes(tmp_path / "side") == git_remotes(main)


def test_a_folder_that_claims_anothers_remote_opens_nothing(tmp_path: Path) -> None:
    roots = [clone(tmp_path / name, "git@github.com:acme/web.git") for name in "ab"]
    found, warnings = known_projects(
        config(tmp_path, a={"roots": [str(roots[0])]}, b={"roots": [str(roots[1])]})
    )

    assert found["a"].hash != found["b"].hash
    assert len(warnings) == 2


def test_an_id_file_wins_and_a_name_is_enough(tmp_path: Path) -> None:
    root = clone(tmp_path / "a", "git@github.com:acme/web.git")
    (root / ".lean-ctx-id").write_text("payments\n")
    found, _ = known_projects(config(tmp_path, a={"roots": [str(root)]}, b={}, c={}))

    assert found["a"].hash == project_identity(explicit_id="payments")
    assert len({p.hash for p in found.values()} | {""}) == 5  # a, b, c, default, and none is empty
    again, _ = known_projects(config(tmp_path, b={}))
    assert again["b"].hash == found["b"].hash


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("pyproject.toml", '[project]\nname = "acme-web"\n'),
        ("package.json", '{"name": "acme-web"}'),
        ("Cargo.toml", '[package]\nname = "acme-web"\n'),
        ("go.mod", "module acme-web\n\ngo 1.24\n"),
    ],
)
def test_a_package_file_names_a_project(tmp_path: Path, name: str, text: str) -> None:
    (tmp_path / name).write_text(text)
    assert package_name(tmp_path) == "acme-web"
    (tmp_path / name).write_text("[[[ {")
    assert package_name(tmp_path) == ""


@pytest.mark.parametrize("file", [".lean-ctx.json", ".leanctx.json", ".socraticode.json"])
def test_links_come_from_the_owners_file_and_configuration(tmp_path: Path, file: str) -> None:
    for name in ("a", "b", "c"):
        (tmp_path / name).mkdir()
    links = ["../b", "../nowhere", "."]
    (tmp_path / "a" / file).write_text(json.dumps({"linkedProjects": links}))
    found, warnings = known_projects(
        config(
            tmp_path,
            a={"roots": [str(tmp_path / "a")], "linked_projects": ["c"]},
            b={"roots": [str(tmp_path / "b")]},
            c={"roots": [str(tmp_path / "c")]},
        )
    )

    assert found["a"].linked == ("b", "c")
    assert found["a"].links == {found["b"].hash, found["c"].hash}
    assert found["a"].privacy is FactPrivacy.LINKED_PROJECTS
    assert found["b"].privacy is FactPrivacy.PROJECT_ONLY
    assert found["b"].links == frozenset()
    assert len(warnings) == 2
    assert not any("nowhere" in warning for warning in warnings)


def test_a_privacy_that_is_written_down_wins(tmp_path: Path) -> None:
    found, _ = known_projects(config(tmp_path, a={"linked_projects": ["b"], "privacy": "team"}, b={}))
    assert found["a"].privacy is FactPrivacy.TEAM
