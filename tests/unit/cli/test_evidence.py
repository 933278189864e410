"""Commands that read evidence, over a store that was really written."""

import asyncio
import json
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from gateway.contract.canonical import canonical_json
from gateway.egress.records import record
from gateway.store.keys import Keyring
from gateway.store.sqlite import SqliteStore
from tests.support.evidence import Sample, TestClock, sample
from tests.unit.cli.conftest import Run

COUNT = 3


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A state folder with three requests in it."""
    state = tmp_path_factory.mktemp("written") / "state"
    state.mkdir(mode=0o700)

    async def write() -> None:
        store = SqliteStore(state / "egress.db", Keyring(state / "keys").signing_key(), TestClock()).open()
        for number in range(COUNT):
            made = sample(number, 2)
            await store.append(made.records, made.row)
        await store.close()

    asyncio.run(write())
    return state


@pytest.fixture
def folder(tmp_path: Path, written: Path) -> Path:
    shutil.copytree(written, tmp_path / "state")
    (tmp_path / "gateway.toml").write_text('[state]\ndir = "state"\n')
    return tmp_path


def append(folder: Path, made: Sample, said: dict[str, object]) -> None:
    """Store a request to example.org with this evaluation record."""
    evaluation = record("evaluation", (canonical_json(said),))
    row = replace(made.row, provider="example.org", evaluation=evaluation.digest)
    state = folder / "state"

    async def write() -> None:
        store = SqliteStore(state / "egress.db", Keyring(state / "keys").signing_key(), TestClock()).open()
        await store.append([made.records[0], evaluation], row)
        await store.close()

    asyncio.run(write())


def lines(text: str) -> list[dict[str, object]]:
    return [json.loads(line) for line in text.splitlines()]


def test_a_list_is_paged_newest_first(egress: Run) -> None:
    everything = lines(egress("receipts", "list", "--json").out)
    first = egress("receipts", "list", "--json", "--limit", "2")
    cursor = first.err.strip().rpartition(" ")[2]
    rest = egress("receipts", "list", "--json", "--after", cursor)

    assert len(everything) == COUNT
    assert lines(first.out) + lines(rest.out) == everything
    assert rest.err == ""
    assert [row["time"] for row in everything] == sorted((row["time"] for row in everything), reverse=True)  # type: ignore[type-var]


def test_the_table_shows_every_row(egress: Run) -> None:
    done = egress("receipts", "list")
    digests = [str(row["digest"]) for row in lines(egress("receipts", "list", "--json").out)]

    assert len(done.out.splitlines()) == COUNT + 1
    assert all(digest[:20] in done.out for digest in digests)


def test_a_refused_host_is_told_with_its_reason_and_by_the_doctor(egress: Run, folder: Path) -> None:
    made = sample(9, 0, refused=True)
    said = {"schema_version": 1, "request_id": "req-9", "reason_codes": ["host.unknown"]}
    append(folder, made, said)

    assert "host.unknown" in egress("receipts", "list", "--effect", "refused").out
    assert "example.org (1)  -> name in [hosts]" in egress("doctor").out


def test_why_a_request_was_refused_before_any_rule_is_said(egress: Run, folder: Path) -> None:
    made = sample(9, 0, refused=True)
    said = {
        "schema_version": 1, "request_id": "req-9", "reason_codes": ["policy.kill_switch"], "project": "default",
        "mode": "governed", "time": "2026-01-01T00:00:09.000000Z", "objects": [],
        "principal": {"id": "unknown", "kind": "unknown"}, "provider": "example.org", "locality": "remote",
        "organization_managed": False, "route": "proxy",
    }  # fmt: skip
    append(folder, made, said)

    assert "policy.kill_switch\n      The operator has stopped" in egress("policy", "explain").out
    nowhere = egress("policy", "explain", "--pointer", "/nope")
    assert (nowhere.status, "no object there" in nowhere.err) == (2, True)


def test_filters_reach_the_store_and_wrong_ones_are_usage(egress: Run) -> None:
    assert egress("receipts", "list", "--json", "--project", "no-such").out == ""
    assert egress("receipts", "list", "--after", "x").status == 2
    assert egress("receipts", "list", "--effect", "lost").status == 2


def test_one_is_shown_by_its_digest_or_the_beginning_of_it(egress: Run) -> None:
    row = lines(egress("receipts", "list", "--json").out)[1]
    digest = str(row["digest"])

    assert json.loads(egress("receipts", "show", digest).out) == row
    assert lines(egress("receipts", "show", digest[:24], "--json").out) == [row]
    assert egress("receipts", "show", "sha256:").status == 1, "more than one begins so"
    assert egress("receipts", "show", "sha256:" + "0" * 64).status == 1


def test_an_undamaged_log_verifies_and_a_damaged_one_does_not(egress: Run, folder: Path) -> None:
    good = egress("receipts", "verify", "--json")
    assert good.status == 0
    assert json.loads(good.out) == {
        "ok": True,
        "entries": COUNT,
        "not_yet_logged": 0,
        "torn": 0,
        "first_bad": None,
    }
    assert "holds" in egress("receipts", "verify").out
    for path in (folder / "state").glob("egress.db*"):
        path.unlink()

    bad = egress("receipts", "verify", "--json")
    assert bad.status == 1
    assert json.loads(bad.out)["first_bad"]["kind"] == "truncated"
    assert "does not hold" in egress("receipts", "verify").out


def test_an_exported_piece_verifies_without_the_store(egress: Run, folder: Path) -> None:
    assert egress("receipts", "export", "-o", "piece.jsonl").status == 0
    shutil.copy(folder / "state" / "keys" / "signing.pub", folder / "signing.pub")
    piece = (folder / "piece.jsonl").read_text()
    assert egress("receipts", "export").out == piece
    shutil.rmtree(folder / "state")
    done = egress("receipts", "verify", "piece.jsonl", "--key", "signing.pub", "--json")

    assert done.status == 0
    assert json.loads(done.out)["entries"] == COUNT
    (folder / "piece.jsonl").write_text(piece.replace('"index":1', '"index":2', 1))
    assert egress("receipts", "verify", "piece.jsonl", "--key", "signing.pub").status == 1


def test_a_lineage_that_is_not_there_is_status_1(egress: Run) -> None:
    assert egress("lineage", "show", "sha256:" + "0" * 64).status == 1


def test_an_export_that_fails_leaves_the_file_that_is_there(egress: Run, folder: Path) -> None:
    target = folder / "piece"
    assert egress("receipts", "export", "-o", str(target)).status == 0
    before = target.read_bytes()
    assert before
    failed = egress(
        "receipts", "export", "--receipt", "sha256:" + "0" * 64, "--object", "/x", "-o", str(target)
    )
    assert failed.status == 1
    assert target.read_bytes() == before
    assert [path.name for path in folder.iterdir() if path.name.startswith(".piece")] == []
    nowhere = egress("receipts", "export", "-o", str(folder / "none" / "piece"))
    assert (nowhere.status, "cannot be written" in nowhere.err) == (3, True)
    assert egress("receipts", "export", "-o", "/dev/null").status == 0
