"""`egress project` and `egress boundary`: the file a person wrote is changed where it must be, and read back."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path

import pytest

from tests.unit.cli.conftest import Run

CODE = "def settle_open_positions(ledger, fee_schedule):\n    return ledger.positions_with_state('open')\n"


def document(folder: Path) -> dict[str, object]:
    return tomllib.loads((folder / "gateway.toml").read_text())


def test_a_project_is_added_linked_indexed_and_listed(egress: Run, folder: Path) -> None:
    for name in ("kestrel", "zoo"):
        (folder / name).mkdir()
        (folder / name / f"{name}.py").write_text(CODE.replace("settle", name))
        done = egress("project", "add", name, "--root", name, "--team", "blue")
        assert done.status == 0, done.err
    assert egress("project", "link", "kestrel", "zoo").status == 0
    assert document(folder)["projects"] == {
        "kestrel": {"roots": [str(folder / "kestrel")], "team": "blue", "linked_projects": ["zoo"]},
        "zoo": {"roots": [str(folder / "zoo")], "team": "blue"},
    }

    indexed = egress("project", "index", "--json")
    assert indexed.status == 0, indexed.err
    rows = [json.loads(line) for line in indexed.out.splitlines()]
    assert [(r["project"], r["files"], r["read"]) for r in rows] == [("kestrel", 1, 1), ("zoo", 1, 1)]
    assert json.loads(egress("project", "index", "zoo", "--json").out)["read"] == 0
    assert "1 files, 1 read" in egress("project", "index", "zoo", "--full").out

    listed = [json.loads(line) for line in egress("project", "list", "--json").out.splitlines()]
    assert [(p["name"], p["privacy"], p["linked_projects"]) for p in listed] == [
        ("default", "project_only", []),
        ("kestrel", "linked_projects", ["zoo"]),
        ("zoo", "project_only", []),
    ]
    assert len({p["hash"] for p in listed}) == 3
    assert listed[1]["hash"] in egress("project", "list").out

    assert egress("project", "link", "kestrel", "zoo", "--remove").status == 0
    assert json.loads(egress("project", "list", "--json").out.splitlines()[1])["linked_projects"] == []


def test_comments_and_order_stay(egress: Run, folder: Path) -> None:
    path = folder / "gateway.toml"
    text = (
        path.read_text()
        + "# ours\n[projects.kestrel]  # the engine\nteam = 'blue'\nlinked_projects = [ # who\n"
        "  'zoo',\n]\nroots = []\n\n[projects.zoo]\n[projects.ark]\n"
    )
    path.write_text(text)
    assert egress("project", "link", "kestrel", "ark").status == 0
    old = "linked_projects = [ # who\n  'zoo',\n]"
    assert path.read_text() == text.replace(old, 'linked_projects = ["ark", "zoo"]')


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("add", "kestrel"), "exists"),
        (("add", "Bad Name"), "name"),
        (("link", "nobody", "kestrel"), "no such project"),
        (("link", "kestrel", "nobody"), "nobody"),
    ],
)
def test_what_would_not_be_valid_is_not_written(
    egress: Run, folder: Path, words: tuple[str, ...], said: str
) -> None:
    assert egress("project", "add", "kestrel").status == 0
    before = (folder / "gateway.toml").read_text()
    done = egress("project", *words)
    assert done.status == 2
    assert said in done.err
    assert (folder / "gateway.toml").read_text() == before
    assert [p.name for p in folder.glob("*.new")] == []


def test_a_form_that_cannot_be_changed_is_said(egress: Run, folder: Path) -> None:
    path = folder / "gateway.toml"
    path.write_text(path.read_text() + "[projects]\nkestrel = {}\nzoo = {}\n")
    done = egress("project", "link", "kestrel", "zoo")
    assert done.status == 2
    assert 'linked_projects = ["zoo"]' in done.err


def test_a_canary_is_the_projects_own(egress: Run) -> None:
    for name in ("kestrel", "zoo"):
        egress("project", "add", name)
    one, two = (egress("project", "canary", name).out for name in ("kestrel", "zoo"))
    assert one.startswith("egc-")
    assert one != two
    assert egress("project", "canary", "kestrel").out == one
    assert egress("project", "canary", "nobody").status != 0


def test_events_need_a_store(egress: Run) -> None:
    assert egress("boundary", "events").status == 3
