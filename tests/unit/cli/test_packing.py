"""`egress policy pack|fetch`: what a server of bundles hands out, and fetching it by hand."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from gateway.app.fetching import unpack
from gateway.config import find_bundle, read_bundle
from tests.unit.cli.conftest import CONFIG, Run


def test_a_packed_bundle_holds_its_files_and_is_the_same_every_time(egress: Run, folder: Path) -> None:
    first = egress("policy", "pack", "policies/default", "a.tar.gz")
    egress("policy", "pack", "policies/default", "b.tar.gz")

    assert (first.status, first.out) == (0, "packed: a.tar.gz\n")
    data = (folder / "a.tar.gz").read_bytes()
    assert data == (folder / "b.tar.gz").read_bytes()
    assert unpack(data) == read_bundle(find_bundle("policies/default", folder))


def test_an_archive_that_cannot_be_written_is_said(egress: Run) -> None:
    done = egress("policy", "pack", "policies/default", "nowhere/a.tar.gz")

    assert done.status == 3
    assert "nowhere/a.tar.gz cannot be written: No such file" in done.err


def test_a_current_folder_that_was_removed_is_said(
    egress: Run, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gone = folder / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    done = egress("policy", "check")

    assert (done.status, done.err) == (
        2,
        "egress: the current folder was removed: change to one that exists\n",
    )


def test_without_a_url_there_is_nothing_to_fetch(egress: Run) -> None:
    done = egress("policy", "fetch")

    assert (done.status, done.out) == (0, "no bundle of policy.bundles has a URL\n")


def test_a_server_that_is_not_there_is_said_and_checks_say_what_to_do(egress: Run, folder: Path) -> None:
    (folder / "gateway.toml").write_text(CONFIG + '[policy]\nbundles = ["https://127.0.0.1:9/org.tar.gz"]\n')
    done = egress("policy", "fetch", "--json")
    check = egress("policy", "check")
    warned = egress("config", "check")

    (result,) = json.loads(done.out)
    assert (done.status, result["result"], result["code"]) == (1, "failed", "web.unreachable")
    assert check.status == 2
    assert "egress policy fetch" in check.err
    assert "policy.public_key" in warned.err
