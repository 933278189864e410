"""`egress ca`: rotation that fails no client, revocation, and trust stores that are changed only to what they should hold.

The commands of a trust store are run for real in tests/integration/test_ca.py; here stores are folders of this test.
"""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import pytest

from gateway.cli import truststores
from gateway.cli.truststores import SystemStore
from gateway.store.lock import StateLock
from tests.unit.cli.conftest import Run

PREFIX = truststores.PREFIX


@pytest.fixture
def anchors(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A system store whose refresh only notes that it was run."""
    folder = tmp_path / "anchors"
    folder.mkdir()
    (folder / "somebody-elses.crt").write_text("not ours")
    store = SystemStore(folder, ("touch", str(tmp_path / "refreshed")))
    monkeypatch.setattr(truststores, "system_store", lambda: store)
    return folder


def ours(anchors: Path) -> list[str]:
    assert (anchors / "somebody-elses.crt").read_text() == "not ours"
    return sorted(path.stem.removeprefix(PREFIX) for path in anchors.glob(f"{PREFIX}*"))


def shown(egress: Run) -> dict[str, object]:
    facts: dict[str, object] = json.loads(egress("ca", "show", "--json").out)
    return facts


def test_a_store_is_changed_to_what_it_should_hold_and_back(
    egress: Run, anchors: Path, tmp_path: Path
) -> None:
    egress("ca", "init")
    first = str(shown(egress)["sha256"])[:16]
    told = egress("ca", "install", "--print")
    assert (told.status, ours(anchors)) == (0, [])
    assert "install -m 0644" in told.out
    unasked = egress("ca", "install")
    assert (unasked.status, ours(anchors)) == (2, [])
    assert "--yes" in unasked.err
    assert egress("ca", "install", "--yes").status == 0
    assert (ours(anchors), (tmp_path / "refreshed").exists()) == ([first], True)
    assert "nothing to do" in egress("ca", "install", "--yes").out

    egress("ca", "rotate", "--prepare")
    second = str(shown(egress)["next"]["sha256"])[:16]  # type: ignore[index]
    egress("ca", "install", "-y")
    assert ours(anchors) == sorted([first, second])
    assert json.loads(egress("ca", "rotate", "--json").out)["sha256"].startswith(second)
    egress("ca", "install", "-y")
    assert ours(anchors) == [second]
    done = json.loads(egress("ca", "install", "--undo", "-y", "--json").out)
    assert (done["ok"], ours(anchors)) == (True, [])


def test_printed_commands_are_those_that_are_run(egress: Run, anchors: Path, tmp_path: Path) -> None:
    egress("ca", "init")
    script = "\n".join(
        line.partition("    #")[0] for line in egress("ca", "install", "--print").out.splitlines()
    )
    subprocess.run(["sh", "-e", "-c", script], check=True)
    assert len(ours(anchors)) == 1
    assert (tmp_path / "refreshed").exists()
    assert json.loads(egress("ca", "install", "--print", "--json").out) == {"ok": True, "plan": []}


def test_revoking_ends_the_ca_and_takes_it_out_of_the_store(egress: Run, anchors: Path, folder: Path) -> None:
    egress("ca", "init")
    egress("ca", "install", "-y")
    egress("env")  # makes a bundle that holds the CA
    state = folder / "state"
    assert egress("ca", "revoke").status == 2
    assert (state / "ca.pem").exists()
    done = json.loads(egress("ca", "revoke", "--yes", "--reason", "laptop lost", "--json").out)

    assert (done["ok"], ours(anchors), len(done["next"])) == (True, [], 3)
    assert not list(state.glob("*.pem"))
    assert not any(b"PRIVATE" in path.read_bytes() for path in state.rglob("ca*") if path.is_file())
    for command in (("ca", "show"), ("ca", "init"), ("ca", "install"), ("env",)):
        refused = egress(*command)
        assert refused.status == 3, command
        assert "egress ca rotate" in refused.err
    assert egress("ca", "rotate").status == 0
    (former,) = shown(egress)["former"]  # type: ignore[misc]
    assert (former["sha256"], former["revoked"], former["reason"]) == (done["revoked"], True, "laptop lost")
    assert "laptop lost" in egress("ca", "show").out


def test_what_could_not_be_taken_out_is_said_with_the_command(
    egress: Run, anchors: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    egress("ca", "init")
    egress("ca", "install", "-y")
    monkeypatch.setattr(SystemStore, "problem", lambda self: f"{self.folder} can be changed by root only")
    refused = egress("ca", "install", "--undo", "-y")
    assert (refused.status, len(ours(anchors))) == (3, 1)
    assert "by root only; nothing was changed" in refused.err
    revoked = egress("ca", "revoke", "-y")
    assert (revoked.status, len(ours(anchors))) == (3, 1)
    assert f"run: rm -f {anchors}" in revoked.err
    assert "revoked: " in revoked.out


def test_a_command_of_the_store_that_fails_is_told(
    egress: Run, anchors: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    egress("ca", "init")
    for refresh, told in ((("false",), "false failed (1)"), (("no-such-command",), "cannot be run")):
        monkeypatch.setattr(truststores, "system_store", lambda r=refresh: SystemStore(anchors, r))
        (anchors / "x").touch()
        done = egress("ca", "install", "-y")
        assert done.status == 3
        assert told in done.err
        egress("ca", "install", "--undo", "-y")


def test_a_machine_without_a_known_store(egress: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    egress("ca", "init")
    monkeypatch.setattr(truststores, "ANCHORS", (("/nowhere", ("nothing",)),))
    done = egress("ca", "install", "-y")
    assert done.status == 3
    assert "egress ca show --pem" in done.err
    browsers = egress("ca", "install", "--to", "nss", "-y")
    assert browsers.status == 3
    assert "no browser" in browsers.err


def test_a_ca_in_use_is_not_rotated_but_the_next_one_can_be_prepared(egress: Run, folder: Path) -> None:
    egress("ca", "init")
    lock = StateLock(folder / "state" / "lock")
    lock.acquire()
    try:
        refused = egress("ca", "rotate")
        prepared = egress("ca", "rotate", "--prepare")
    finally:
        lock.release()
    assert (refused.status, prepared.status) == (3, 0)
    assert "stop it first" in refused.err


@pytest.mark.skipif(shutil.which("certutil") is None, reason="needs certutil (libnss3-tools)")
def test_a_browsers_database_holds_it_and_gives_it_up(egress: Run, folder: Path) -> None:
    database = folder / ".pki" / "nssdb"
    database.mkdir(parents=True)
    listing = ["certutil", "-d", f"sql:{database}", "-L"]
    subprocess.run(["certutil", "-d", f"sql:{database}", "-N", "--empty-password"], check=True)
    egress("ca", "init")
    assert egress("ca", "install", "--to", "nss", "-y").status == 0
    held = subprocess.run(listing, capture_output=True, check=True, text=True).stdout
    assert f"{PREFIX}{str(shown(egress)['sha256'])[:16]}" in held
    assert "C,," in held
    assert "nothing to do" in egress("ca", "install", "--to", "nss", "-y").out
    assert egress("ca", "revoke", "-y").status == 0
    assert PREFIX not in subprocess.run(listing, capture_output=True, check=True, text=True).stdout
