"""`egress account`: a hash from standard input, never from the arguments."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest

from tests.unit.cli.conftest import CONFIG, Run

KEY = "sk-ant-api03-made-up-1"


def give(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO(text))


def test_a_hash_is_made_listed_and_found_again(
    egress: Run, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    give(monkeypatch, KEY + "\n")
    made = egress("account", "hash")
    give(monkeypatch, KEY)
    again = json.loads(egress("account", "hash", "--json").out)["hash"]
    accounts = f'[accounts.acme]\nprovider = "anthropic"\nhashes = ["{again}"]\norganization_managed = true\n'
    (folder / "gateway.toml").write_text(CONFIG + accounts)
    give(monkeypatch, KEY)
    mine = egress("account", "check")
    give(monkeypatch, KEY + "2")
    other = egress("account", "check", "--json")
    listed = egress("account", "list")
    shown = egress("config", "show", "--json")

    assert made.status == 0
    assert made.out == again + "\n"
    assert (mine.status, mine.out) == (0, "acme (anthropic)\n")
    assert (other.status, json.loads(other.out)) == (1, {"account": None, "provider": None})
    assert listed.out.splitlines()[1].split() == ["acme", "anthropic", "1", "-", "yes", "-"]
    assert KEY not in made.out + made.err + listed.out + shown.out


def test_the_state_folder_it_makes_is_the_owners_alone(
    egress: Run, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    give(monkeypatch, KEY)
    egress("account", "hash")

    assert (folder / "state").stat().st_mode & 0o777 == 0o700
    assert "open to others" not in egress("doctor").out


@pytest.mark.parametrize("text", ["", "\n", "two\nlines", "ké"])
def test_what_is_no_credential_is_refused(egress: Run, monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    give(monkeypatch, text)
    done = egress("account", "hash")

    assert done.status == 2
    assert text.strip() in {"", *done.err.split("\n")} or text not in done.err


def test_every_problem_of_an_account_is_told(egress: Run, folder: Path) -> None:
    (folder / "gateway.toml").write_text(
        CONFIG
        + '[accounts.a]\nprovider = "anthropic"\ntenants = ["t"]\n[accounts.b]\nprovider = "anthropic"\ntenants = ["t"]\n'
        + '[accounts.c]\nhashes = ["sk-ant-api03-pasted"]\nprojects = ["nowhere"]\norganization_managed = "yes"\n'
    )
    done = egress("config", "check")

    assert done.status == 2
    assert "accounts.b: accounts.a has the same hash or tenant" in done.err
    assert "accounts.c.provider: required" in done.err
    assert "accounts.c.hashes: item 0: must be a keyed hash" in done.err
    assert "accounts.c.projects: no project nowhere" in done.err
    assert "accounts.c.organization_managed: must be true or false" in done.err
    assert "pasted" not in done.err
